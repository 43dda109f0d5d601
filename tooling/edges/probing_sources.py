"""Where a release's files are: on the index, or at a path that was given."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from packaging.version import Version

from tooling.capabilities.table import Published
from tooling.edges.archives import Archive, open_local
from tooling.edges.index import IndexClient
from tooling.edges.index_http import HttpReader
from tooling.edges.pip_config import load_index_settings
from tooling.errors import EdgeError, ExitCode, InputError
from tooling.pins.library import Library
from tooling.releases.addresses import AddressRole
from tooling.releases.files import ProjectFiles, ReleaseFile, parse_file_name


class NotPublishedError(InputError):
    """No index has the release."""

    reason = "NONEXISTENT"
    exit_code = ExitCode.FINDINGS


@dataclass(kw_only=True)
class Listing:
    """What the indexes of this machine have of a library; asked once, when first needed. Offline it has nothing."""

    library: Library
    client: IndexClient | None
    _files: dict[Version, list[ReleaseFile]] = field(default_factory=dict)

    def http(self) -> HttpReader:
        if self.client is None:
            raise EdgeError("no index is asked with --from", reason="OFFLINE")
        return self.client.http

    @cached_property
    def main(self) -> dict[Version, list[ReleaseFile]]:
        """The main package's files by public version."""
        files: dict[Version, list[ReleaseFile]] = {}
        for page in self._pages(self.library.main_package):
            for file in page.files:
                files.setdefault(Version(file.version.public), []).append(file)
        return files

    @cached_property
    def cubin(self) -> frozenset[Version]:
        """The versions of the cubin package on the main index and what stands beside it, but find-links."""
        pages = self._pages(self.library.packages[1])
        indexes = (page for page in pages if page.role is not AddressRole.FIND_LINKS)
        return frozenset(Version(file.version.public) for page in indexes for file in page.files)

    def finals(self) -> list[tuple[Version, ReleaseFile]]:
        """Every final and post release with the file to read, oldest first."""
        return [(release, self.file(release)) for release in sorted(self.main) if not release.is_prerelease]

    def file(self, release: Version) -> ReleaseFile:
        """The wheel of the release, or its sdist where there is none.

        Raises:
            NotPublishedError: no index has it.
        """
        files = self.main.get(Version(release.public), [])
        if not files:
            newest = max((version for version in self.main if not version.is_prerelease), default=None)
            raise NotPublishedError(
                f"no index has {self.library.main_package} {release}",
                hint=f"the newest release is {newest}" if newest else "is pip's index configured?",
            )
        return min(files, key=lambda file: (file.kind != "wheel", file.yanked, file.filename))

    def published(self, release: Version) -> Published | None:
        """What the calendar says of the release; None offline and for what no index has."""
        if self.client is None or Version(release.public) not in self.main:
            return None
        file = self.file(release)
        return Published(
            file=file.filename,
            kind=file.kind,
            size_bytes=file.size_bytes or 0,
            sha256=file.sha256 or "",
            uploaded=None if file.uploaded is None else file.uploaded.date().isoformat(),
            yanked=file.yanked,
            cubin_on_index=Version(release.public) in self.cubin,
        )

    def _pages(self, project: str) -> list[ProjectFiles]:
        return [] if self.client is None else self.client.fetch_project(project)


@contextmanager
def load_listing(library: Library, *, offline: bool) -> Iterator[Listing]:
    """The listing of this machine's indexes; its connections are closed when the block ends."""
    if offline:
        yield Listing(library=library, client=None)
        return
    with IndexClient(load_index_settings()) as client:
        yield Listing(library=library, client=client)


def open_given(path: Path, release: Version, library: Library) -> Archive:
    """The release in a wheel, an sdist, an unpacked folder, or a folder of wheels and sdists.

    Raises:
        InputError: there is none.
    """
    return open_local(_choose(path, release, library))


def _choose(path: Path, release: Version, library: Library) -> Path:
    if not path.is_dir() or (path / library.name).is_dir():
        return path
    found = [
        (parsed[1] != "wheel", file.name)
        for file in path.iterdir()
        if (parsed := parse_file_name(file.name, library.main_package)) and parsed[0] == release
    ]
    if not found:
        raise InputError(
            f"{path}: neither {library.name}/ nor a wheel or sdist of {library.main_package} {release} is in it",
            hint="name the file itself, or the folder that holds it",
            reason="MISSING",
        )
    return path / min(found)[1]
