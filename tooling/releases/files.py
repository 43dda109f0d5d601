"""Files of releases as an index shows them, as values. Reading index pages is `tooling.edges.index`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version

from tooling.releases.addresses import AddressRole

FileKind = Literal["wheel", "sdist"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseFile:
    """One wheel or sdist on one index.

    `project` is normalised; `url` has no credentials in it; `index` is the index's printable label; `sha256` is what
    the index claims, 64 hex digits; `uploaded` is aware (PEP 700; None on indexes that do not tell); `has_metadata`:
    the index serves the METADATA file apart (PEP 658) at `url + ".metadata"`, with `metadata_sha256` if it says so.
    """

    filename: str
    project: str
    version: Version
    kind: FileKind
    url: str
    index: str
    size_bytes: int | None = None
    sha256: str | None = None
    requires_python: str | None = None
    yanked: bool = False
    yanked_reason: str | None = None
    uploaded: datetime | None = None
    has_metadata: bool = False
    metadata_sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectFiles:
    """What one index has of one project: no files if it does not know the project.

    `skipped` are names on the page that are no wheel (PEP 427) or sdist (PEP 625) of that project.
    """

    project: str
    index: str
    role: AddressRole = AddressRole.MAIN
    files: tuple[ReleaseFile, ...] = ()
    skipped: tuple[str, ...] = ()

    def of(self, version: Version) -> tuple[ReleaseFile, ...]:
        """The files of exactly that public version; a local label (`+cu130`) counts as the version it extends."""
        return tuple(file for file in self.files if matches(file.version, version))


def matches(found: Version, wanted: Version) -> bool:
    """As `==wanted` of PEP 440: a local label on the file counts only if one is wanted."""
    return found == wanted if wanted.local else Version(found.public) == wanted


def all_files(pages: Iterable[ProjectFiles]) -> list[ReleaseFile]:
    return [file for page in pages for file in page.files]


def files_of(pages: Iterable[ProjectFiles], version: Version) -> list[ReleaseFile]:
    """The files of that version on every index, in the order of the indexes."""
    return [file for page in pages for file in page.of(version)]


def released_versions(pages: Iterable[ProjectFiles]) -> list[Version]:
    """Every public version that has a file which is not yanked, oldest first."""
    return sorted({Version(file.version.public) for file in all_files(pages) if not file.yanked})


def first_uploaded(files: Sequence[ReleaseFile]) -> datetime | None:
    """When the first of them was published, or None if the index does not tell."""
    return min((file.uploaded for file in files if file.uploaded is not None), default=None)


def parse_file_name(filename: str, project: str) -> tuple[Version, FileKind] | None:
    """Version and kind of a wheel (PEP 427) or sdist (PEP 625) of that project; None for every other name."""
    try:
        if filename.endswith(".whl"):
            name, version, _, _ = parse_wheel_filename(filename)
            kind: FileKind = "wheel"
        else:
            name, version = parse_sdist_filename(filename)
            kind = "sdist"
    except (InvalidWheelFilename, InvalidSdistFilename):
        return None
    return (version, kind) if name == canonicalize_name(project) else None
