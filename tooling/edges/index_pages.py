"""Index pages and folders read into release files: PEP 691 JSON, PEP 503 HTML, find-links pages and folders."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from packaging.utils import canonicalize_name

from tooling.errors import EdgeError
from tooling.redaction import redact_text
from tooling.releases.addresses import AddressRole, split_credentials
from tooling.releases.files import ProjectFiles, ReleaseFile, parse_file_name

if TYPE_CHECKING:
    from pypi_simple import DistributionPackage, ProjectPage

ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
_ARCHIVES = (".whl", ".tar.gz", ".zip", ".tar.bz2", ".egg")
_DISTRIBUTIONS = (".whl", ".tar.gz", ".zip")


def parse_page(
    body: bytes, content_type: str, *, url: str, project: str, label: str, role: AddressRole
) -> ProjectFiles:
    """A project's page (or a find-links page, whose other projects are left out).

    Raises:
        EdgeError: `MALFORMED`: not JSON or HTML, or JSON of another shape than PEP 691 gives.
    """
    kind, _, parameters = content_type.partition(";")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            page = _parse(body, kind.strip().lower(), parameters, url, project)
        except (ValueError, TypeError, LookupError, AssertionError, RecursionError) as cause:
            raise _malformed(label, project, _first_line(cause)) from cause
    return collect_files(
        (_release_file(package, project, label) for package in page.packages),
        [package.filename or package.url.rpartition("/")[2] for package in page.packages],
        project=project,
        label=label,
        role=role,
    )


def parse_listing(body: bytes, url: str) -> list[str]:
    """The last path segments of the links on an HTML page, without slashes; none if it is no HTML."""
    from pypi_simple import RepositoryPage  # noqa: PLC0415 - 400 ms, not for everybody

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            links = RepositoryPage.from_html(body, url).links
        except (ValueError, TypeError, LookupError, AssertionError, RecursionError):
            return []
    return [unquote(urlsplit(link.url).path.rstrip("/").rpartition("/")[2]) for link in links]


def list_folder(folder: Path, *, project: str, label: str, role: AddressRole) -> ProjectFiles:
    """The files of a find-links folder; none if there is no such folder.

    Raises:
        EdgeError: the folder is there and cannot be read.
    """
    try:
        paths = sorted(path for path in folder.iterdir() if path.name.endswith(_DISTRIBUTIONS))
    except (FileNotFoundError, NotADirectoryError):
        paths = []
    except OSError as cause:
        raise EdgeError(f"{label}: cannot be read: {cause.strerror}", reason="UNREADABLE") from cause
    files = (_local_file(path, project, label) for path in paths)
    return collect_files(files, [], project=project, label=label, role=role)


def single_file(url: str, *, project: str, label: str, role: AddressRole) -> ProjectFiles:
    """A find-links address that is itself a wheel or sdist."""
    file = _named_file(unquote(urlsplit(url).path.rpartition("/")[2]), url, project, label)
    return collect_files([file], [], project=project, label=label, role=role)


def is_archive(url: str) -> bool:
    return urlsplit(url).path.endswith(_ARCHIVES)


def collect_files(
    found: Iterable[ReleaseFile | None], names: Iterable[str], *, project: str, label: str, role: AddressRole
) -> ProjectFiles:
    """The files of that project, each once; two claims about one file's bytes are both kept, for a check to see."""
    files = {(file.filename, file.sha256): file for file in found if file is not None}
    known = {filename for filename, _ in files}
    skipped = sorted({name for name in names if name not in known and name.endswith(_DISTRIBUTIONS)})
    return ProjectFiles(
        project=canonicalize_name(project),
        index=label,
        role=role,
        files=tuple(files.values()),
        skipped=tuple(skipped) if role is not AddressRole.FIND_LINKS else (),
    )


def _parse(body: bytes, kind: str, parameters: str, url: str, project: str) -> ProjectPage:
    from pypi_simple import ProjectPage, UnsupportedRepoVersionError  # noqa: PLC0415 - 400 ms, not for everybody

    if kind.endswith("+json"):
        try:
            return ProjectPage.from_json_data(json.loads(body), url)
        except UnsupportedRepoVersionError as cause:
            raise ValueError(str(cause)) from cause
    if kind not in {"text/html", "application/vnd.pypi.simple.v1+html", ""}:
        raise ValueError(f"its content type is {kind}")
    start = body[:2000].lower()
    if b"<a" not in body.lower() and b"<html" not in start and b"<!doctype" not in start:
        raise ValueError("it is no HTML")
    charset = parameters.partition("charset=")[2].strip().strip('"') or None
    return ProjectPage.from_html(project, body, url, charset)


def _release_file(package: DistributionPackage, project: str, label: str) -> ReleaseFile | None:
    url = split_credentials(package.url)[0]
    in_address = unquote(urlsplit(package.url).path.rpartition("/")[2])
    found = _named_file(package.filename, url, project, label) or _named_file(in_address, url, project, label)
    if found is None:
        return None
    return replace(
        found,
        size_bytes=package.size,
        sha256=_sha256(package.digests),
        requires_python=package.requires_python or None,
        yanked=package.is_yanked,
        yanked_reason=package.yanked_reason or None,
        uploaded=_utc(package.upload_time),
        has_metadata=bool(package.has_metadata),
        metadata_sha256=_sha256(package.metadata_digests or {}),
    )


def _sha256(digests: dict[str, str]) -> str | None:
    value = digests.get("sha256")
    return value.lower() if value else None


def _utc(moment: datetime | None) -> datetime | None:
    if moment is None:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _local_file(path: Path, project: str, label: str) -> ReleaseFile | None:
    return _named_file(path.name, path.resolve().as_uri(), project, label, size_bytes=path.stat().st_size)


def _named_file(name: str, url: str, project: str, label: str, *, size_bytes: int | None = None) -> ReleaseFile | None:
    parsed = parse_file_name(name, project)
    if parsed is None:
        return None
    version, kind = parsed
    return ReleaseFile(
        filename=name,
        project=canonicalize_name(project),
        version=version,
        kind=kind,
        url=url,
        index=label,
        size_bytes=size_bytes,
    )


def _malformed(label: str, project: str, why: str) -> EdgeError:
    return EdgeError(
        f"{label}: the page of {project} is malformed: {why}",
        hint="is this the address of a simple index (it often ends in /simple/)?",
        reason="MALFORMED",
    )


def _first_line(cause: BaseException) -> str:
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return redact_text("; ".join(lines[:2]))[:300] or type(cause).__name__
