"""What a bump leaves behind: variables that look like pins, commits, and copies that something else must renew."""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.version import Version

from tooling.findings import Finding, Severity
from tooling.pins.derived import renewal
from tooling.pins.library import Library
from tooling.pins.patterns import late
from tooling.pins.readers.dockerfile_arg import matches as is_dockerfile
from tooling.pins.readers.hcl_default import blank_hcl_comments
from tooling.pins.readers.hcl_default import matches as is_hcl
from tooling.pins.readers.phrases import VERSION
from tooling.pins.readers.shell_text import find_assignments
from tooling.pins.readers.shell_text import matches as is_shell
from tooling.pins.readers.yaml_values import matches as is_yaml
from tooling.pins.scan import Tree
from tooling.pins.shell_syntax import blank_comments
from tooling.pins.sites import PinSite, Role, parse_spelling, same_release
from tooling.pins.texts import SourceText

_OTHER_FORM = late(
    rf"(?m)^[ \t]*(?:ENV[ \t]+(?P<env>\w+)[ \t]+[\"']?|-?[ \t]*(?P<key>[\w-]+):[ \t]+[\"']?)(?P<version>{VERSION})"
)
_VERSION_NAME = late(r"(?i)(?:^|[_-])(?:ver|version|ref|tag)$")
_BOUND_NAME = late(r"(?:^|_)(?:MIN|MAX|MINIMUM|MAXIMUM|LEAST|REQUIRED)(?:_|$)")


def check_leftovers(tree: Tree, *, severity: Severity = Severity.ERROR) -> list[Finding]:
    """Variables that may be a pin and are not known as one, with that severity, and commits as warnings."""
    known: dict[str, list[PinSite]] = {}
    for site in tree.sites:
        known.setdefault(site.path, []).append(site)
    held = {site.version.public for site in tree.pins if site.version is not None}
    suspects = [
        finding
        for source in tree.texts
        for finding in _suspects(tree.library, source, known.get(source.path, []), held, severity)
    ]
    return [*suspects, *_commits(tree)]


def check_locks(tree: Tree) -> list[Finding]:
    """Lock files none of whose entries for a package holds the tree's version."""
    if tree.truth is None:
        return []
    entries: dict[tuple[str, str | None], list[PinSite]] = {}
    for site in tree.sites:
        if site.role is Role.LOCK and site.shape != "image-tag":
            entries.setdefault((site.path, site.package), []).append(site)
    truth = tree.truth
    return [
        Finding(
            check="stale-lock",
            path=path,
            line=sites[0].line,
            detail=f"{package} is locked at {sites[0].version}, and the pins say {truth}.",
            hint=_renewal(tree, sites[0], truth),
            reason="STALE_LOCK",
        )
        for (path, package), sites in entries.items()
        if not any(same_release(site.version, truth) for site in sites)
    ]


def list_stale_copies(tree: Tree, to: Version) -> list[Finding]:
    """Every lock, derived file and comment that holds the tree's version now and will not after a bump to `to`."""
    if tree.truth is None or same_release(to, tree.truth):
        return []
    return [
        Finding(
            check="stale-after-bump",
            severity=Severity.NOTE if site.role is Role.PROSE else Severity.WARNING,
            path=site.path,
            line=site.line,
            detail=f"this {site.shape} still says {site.spelling} after the bump.",
            hint=_renewal(tree, site, to),
            reason="STALE_AFTER_BUMP",
        )
        for site in tree.sites
        if site.role in {Role.LOCK, Role.DERIVED, Role.PROSE} and same_release(site.version, tree.truth)
    ]


def _renewal(tree: Tree, site: PinSite, version: Version) -> str:
    source = tree.text(site.path)
    return renewal(site, source.text if source else "", version=str(version))


def _suspects(
    library: Library, source: SourceText, sites: list[PinSite], held: set[str], severity: Severity
) -> Iterator[Finding]:
    """`sites` are those of the text, `held` the versions that the tree's pins hold."""
    text = _plain(source)
    if text is None:
        return
    pins = {site.start for site in sites}
    installs = any(site.role is not Role.PROSE for site in sites) or f"install {library.mark}" in text
    others = ((match["env"] or match["key"], *match.span("version")) for match in _OTHER_FORM.finditer(text))
    for name, start, end in (*find_assignments(text), *others):
        spelling = text[start:end]
        if start in pins or not _may_be_pin(library, name, spelling):
            continue
        is_copy = installs and _public(spelling) in held and not _serves_another(library, text, name)
        if library.may_name_version(name) or is_copy:
            yield Finding(
                check="unknown-variable",
                severity=severity,
                path=source.path,
                line=source.line_and_column(start)[0],
                detail=f"{name} holds {spelling}, looks like a version of {library.name}, and is not known as one.",
                hint="name it in release.toml, [pins] variable_aliases, or rename it",
                reason="UNKNOWN_VARIABLE",
            )


def _may_be_pin(library: Library, name: str, spelling: str) -> bool:
    """By its name a version that is no bound, by its value a whole release."""
    version = parse_spelling(spelling)
    if version is None or len(version.release) < 3 or library.names_version(name):
        return False
    if _BOUND_NAME.search(name.upper().replace("-", "_")):
        return False
    return library.may_name_version(name) or _VERSION_NAME.search(name) is not None


def _public(spelling: str) -> str | None:
    version = parse_spelling(spelling)
    return None if version is None else version.public


def _serves_another(library: Library, text: str, name: str) -> bool:
    """True if the text uses the variable away from the library, or names what the variable is called after."""
    for use in re.finditer(rf"\$\{{?{re.escape(name)}\b", text):
        line = text[text.rfind("\n", 0, use.start()) + 1 : text.find("\n", use.end()) % (len(text) + 1)]
        if library.mark not in line.lower():
            return True
    stem = re.sub(r"(?i)[_-](?:ver|version|ref|tag|git)(?=[_-]|$)", "", name).lower().replace("_", "[-_]?")
    return re.search(rf"(?i)(?<![\w-]){stem}(?:\[[^\]]*\])?(?:==|[/.@]|\s)", text) is not None


def _plain(source: SourceText) -> str | None:
    """The text without comments, for the formats in which variables are looked for."""
    if is_hcl(source.path):
        return blank_hcl_comments(source.text)
    if is_dockerfile(source.path) or is_shell(source.path) or is_yaml(source.path):
        return blank_comments(source.text)
    return None


def _commits(tree: Tree) -> Iterator[Finding]:
    for site in tree.sites:
        if site.shape == "git-commit":
            yield Finding(
                check="commit-pin",
                severity=Severity.WARNING,
                path=site.path,
                line=site.line,
                detail=f"{tree.library.name} is pinned to the commit {site.spelling} here; which release that is, "
                "nothing in the tree says, and a bump leaves it.",
                hint="pin a release tag, or move it by hand",
                reason="COMMIT_PIN",
            )
