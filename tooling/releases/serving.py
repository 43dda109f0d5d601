"""Which index would serve a package: pip's and uv's rules as functions, and whether that is the expected index.

pip looks at every index and has no order among equals (its documentation of `--extra-index-url`). uv stops at the first
index that has the package at all, extra indexes before the main one, unless it is told `unsafe-best-match`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from packaging.version import Version

from tooling.findings import Finding, Severity
from tooling.releases.addresses import AddressRole, redact_url, same_address
from tooling.releases.files import ProjectFiles, released_versions


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """Labels of indexes: pip and uv may take any of theirs; `uv_stops_at` is the index that hides the rest from uv.

    `stops_with` is the newest version there.
    """

    package: str
    version: Version
    pip: tuple[str, ...]
    uv: tuple[str, ...]
    uv_stops_at: str | None = None
    stops_with: Version | None = None

    def as_json(self) -> dict[str, object]:
        return {"pip": list(self.pip), "uv": list(self.uv), "uv_stops_at": self.uv_stops_at}

    def render(self) -> str:
        """One line for people."""
        if not self.pip:
            return f"{self.package} {self.version}: no index serves it"
        pip = " or ".join(self.pip) + (" (pip gives no order)" if len(self.pip) > 1 else "")
        if self.pip == self.uv:
            return f"{self.package} {self.version}: pip and uv take it from {pip}"
        stops = f"uv stops at {self.uv_stops_at}, which has up to {self.stops_with}, unless told unsafe-best-match"
        uv = f"uv from {' or '.join(self.uv)}" if self.uv else stops
        return f"{self.package} {self.version}: pip from {pip}; {uv}"


def find_serving(package: str, version: Version, pages: Sequence[ProjectFiles]) -> Serving:
    """Who serves that version, if all pages are asked as pip's configuration orders them."""
    having = [page for page in pages if any(not file.yanked for file in page.of(version))]
    first = next((page for page in _uv_order(pages) if page.files), None)
    uv = [page for page in having if page.role is AddressRole.FIND_LINKS or page is first]
    stops = None if uv else first
    return Serving(
        package=package,
        version=version,
        pip=tuple(page.index for page in having),
        uv=tuple(page.index for page in uv),
        uv_stops_at=None if stops is None else stops.index,
        stops_with=None if stops is None else max(released_versions([stops]), default=None),
    )


def check_serving(
    serving: Serving, *, stated: str | None, own_index: str, own_only: bool, pages: Sequence[ProjectFiles]
) -> list[Finding]:
    """`other-index` if an index other than the expected one would serve the package.

    `stated` is what release.toml expects (then it is an error); without it the library's own index is expected where
    `own_only`, else the main index or the library's own (then it is a warning, since a mirror may be meant).
    """
    if not serving.pip:
        return []
    if stated is not None:
        return _strangers(serving, [redact_url(stated)], Severity.ERROR, "release.toml, [releases.indexes]")
    main = [page.index for page in pages if page.role is AddressRole.MAIN]
    links = [page.index for page in pages if page.role is AddressRole.FIND_LINKS]
    expected = [*links, redact_url(own_index), *([] if own_only else main)]
    return _strangers(serving, expected, Severity.WARNING, "what is published where")


def is_own_only(package: str, version: Version, own_index_from: Mapping[str, str]) -> bool:
    """True if the library serves that version of the package from its own index only."""
    return package in own_index_from and version >= Version(own_index_from[package])


def _strangers(serving: Serving, expected: Sequence[str], severity: Severity, source: str) -> list[Finding]:
    strange = [label for label in serving.pip if not any(_is_below(label, home) for home in expected)]
    if not strange:
        return []
    return [
        Finding(
            check="other-index",
            severity=severity,
            detail=f"{serving.package} {serving.version} would come from {', '.join(strange)}; "
            f"by {source} it comes from {' or '.join(expected)}.",
            hint="is that index yours? If so, name it in release.toml: "
            f'[releases.indexes] {serving.package} = "{strange[0]}"',
            reason="OTHER_INDEX",
        )
    ]


def _is_below(label: str, home: str) -> bool:
    return same_address(label, home) or label.rstrip("/").startswith(home.rstrip("/") + "/")


def _uv_order(pages: Sequence[ProjectFiles]) -> list[ProjectFiles]:
    extra = [page for page in pages if page.role is AddressRole.EXTRA]
    return [*extra, *(page for page in pages if page.role is AddressRole.MAIN)]
