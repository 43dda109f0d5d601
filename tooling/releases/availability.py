"""Is a package published at exactly one version? The answer as findings, with the nearest releases as hints."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from packaging.version import Version

from tooling.findings import Finding
from tooling.releases.files import ProjectFiles, files_of, released_versions


def check_availability(package: str, version: Version, pages: Sequence[ProjectFiles]) -> list[Finding]:
    """`not-published` if no index has that version, `yanked` if every file of it is withdrawn; else nothing.

    `pages` is what each index answered for the package. The caller says where the pin stands (path and line).
    """
    files = files_of(pages, version)
    if not files:
        return [_not_published(package, version, pages)]
    if all(file.yanked for file in files):
        return [
            _yanked(package, version, pages, next((file.yanked_reason for file in files if file.yanked_reason), ""))
        ]
    return []


def nearest_releases(version: Version, pages: Sequence[ProjectFiles], *, count: int = 4) -> list[Version]:
    """The published versions around that one, oldest first; pre-releases only beside a pre-release."""
    known = [found for found in released_versions(pages) if version.is_prerelease or not found.is_prerelease]
    known = [found for found in known if found != version]
    middle = bisect_left(known, version)
    start = max(0, min(middle - count // 2, len(known) - count))
    return known[start : start + count]


def _not_published(package: str, version: Version, pages: Sequence[ProjectFiles]) -> Finding:
    places = ", ".join(page.index for page in pages) or "no index at all (pip is set to no-index)"
    if not any(page.files for page in pages):
        detail, hint = f"{package}: no index has such a package; asked: {places}", "is an extra index missing?"
    else:
        near = ", ".join(str(found) for found in nearest_releases(version, pages))
        detail = f"{package} {version} is not published; asked: {places}"
        hint = f"nearest releases: {near}" if near else "no release of it can be installed"
    return Finding(check="not-published", detail=detail, hint=hint, reason="NOT_PUBLISHED")


def _yanked(package: str, version: Version, pages: Sequence[ProjectFiles], why: str | None) -> Finding:
    near = ", ".join(str(found) for found in nearest_releases(version, pages))
    because = f": {why}" if why else ", without a reason"
    return Finding(
        check="yanked",
        detail=f"{package} {version} was withdrawn (yanked){because}",
        hint=f"take another release, such as {near}" if near else "there is no other release",
        reason="YANKED",
    )
