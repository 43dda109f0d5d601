"""What is wrong with a tree's pins, as findings: disagreement, a pin that is missing, one that nobody listed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from packaging.version import Version

from tooling.findings import Finding, Severity
from tooling.pins.readers.phrases import has_bare_repository
from tooling.pins.readers.requirement_lines import has_requirements_name as is_requirements_file
from tooling.pins.requirements import parse_requirements
from tooling.pins.scan import Tree
from tooling.pins.settings import RequiredSite
from tooling.pins.sites import PinSite, Role, is_plain_spelling, same_release


def check_pins(tree: Tree) -> list[Finding]:
    """Everything that a bump refuses and a check reports."""
    return [*check_drift(tree), *check_places(tree)]


def check_drift(tree: Tree) -> list[Finding]:
    """Every pin that does not hold the tree's version; where no file decides, the groups that disagree."""
    if tree.truth is None:
        return _disagreement(tree)
    return [finding for site in tree.pins for finding in _check_site(tree, site, tree.truth)]


def check_places(tree: Tree) -> list[Finding]:
    """Required sites found too seldom or too often, pins outside the list, and requirements without a version."""
    return [*_check_required(tree), *_check_listed(tree), *_check_exact(tree)]


def _check_site(tree: Tree, site: PinSite, truth: Version) -> Iterator[Finding]:
    if not same_release(site.version, truth):
        source = tree.versions_file or "the other pins"
        yield Finding(
            check="drift",
            path=site.path,
            line=site.line,
            detail=f"{_subject(site)} holds {site.version}, and {source} says {truth}.",
            hint=f"`bump {truth} --from-any` makes every pin {truth}",
            reason="DRIFT",
        )
    elif not is_plain_spelling(site.spelling.strip("'\"`")):
        yield Finding(
            check="spelling",
            severity=Severity.WARNING,
            path=site.path,
            line=site.line,
            detail=f"{site.spelling} is spelled {truth} by PEP 440.",
            hint="the next bump spells it so",
        )


def _disagreement(tree: Tree) -> list[Finding]:
    groups = groups_by_version(tree.pins)
    if not groups:
        return [
            Finding(
                check="no-pins",
                detail="no pin of the library was found.",
                hint="point --root at a tree that pins it, or look at what release.toml leaves out",
                reason="NO_PINS",
            )
        ]
    return [
        Finding(
            check="drift",
            path=sites[0].path,
            line=sites[0].line,
            detail=f"{version} stands in {_listed(sites)}; the pins hold {len(groups)} versions, and no file decides.",
            hint="name the files that belong together with --only, or make all agree with --from-any",
            reason="DRIFT",
        )
        for version, sites in groups.items()
    ]


def _listed(sites: list[PinSite], *, most: int = 3) -> str:
    shown = ", ".join(f"{site.path}:{site.line}" for site in sites[:most])
    return shown if len(sites) <= most else f"{shown} and {len(sites) - most} more places"


def _check_required(tree: Tree) -> Iterator[Finding]:
    for required in tree.settings.required:
        found = [site for site in tree.pins if _belongs(site, required)]
        count = required.count - tree.settings.releases.count_dropped(required.path)
        if len(found) != count:
            shape = f" of shape {required.shape}" if required.shape else ""
            yield Finding(
                check="missing-site" if len(found) < count else "extra-site",
                path=required.path,
                line=found[-1].line if found else None,
                detail=f"{_times(len(found))} pin{shape} stands here, and release.toml requires {count}.",
                hint="put the pin back, or correct [[pins.required]] in release.toml",
                reason="MISSING_SITE" if len(found) < count else "EXTRA_SITE",
            )


def _check_listed(tree: Tree) -> Iterator[Finding]:
    listed = {required.path for required in tree.settings.required}
    for site in tree.pins if listed else ():
        if site.path not in listed:
            yield Finding(
                check="unlisted-site",
                path=site.path,
                line=site.line,
                detail=f"{site.path} holds a pin ({site.spelling}) that release.toml does not list.",
                hint="add it as [[pins.required]], or leave it out by [scan] leave_out",
                reason="UNLISTED_SITE",
            )


def _check_exact(tree: Tree) -> Iterator[Finding]:
    """Requirements on the library without `==`, and without a direct reference that names a version."""
    held = [site for site in tree.sites if site.role in {Role.PIN, Role.LOCK}]
    for source in tree.texts:
        if not is_requirements_file(source.path):
            continue
        for line in parse_requirements(source.text, keeps=tree.library.is_named_in):
            is_loose = line.name in tree.library.packages and line.exact_version is None
            if not is_loose and not has_bare_repository(line.text, tree.library):
                continue
            if not any(site.path == source.path and line.covers(site.start) for site in held):
                yield Finding(
                    check="unpinned",
                    path=source.path,
                    line=source.line_and_column(line.offset)[0],
                    detail=f"`{line.text.strip()}` is no exact pin.",
                    hint="write it with ==",
                    reason="UNPINNED",
                )


def _belongs(site: PinSite, required: RequiredSite) -> bool:
    return site.path == required.path and required.shape in {None, site.shape}


def _subject(site: PinSite) -> str:
    return site.package or f"this {site.shape}"


def _times(count: int) -> str:
    return "no" if count == 0 else str(count)


def groups_by_version(sites: Iterable[PinSite]) -> dict[str, list[PinSite]]:
    """Pins grouped by the public version that they hold, in the order found."""
    groups: dict[str, list[PinSite]] = defaultdict(list)
    for site in sites:
        groups[site.version.public if site.version else site.spelling].append(site)
    return dict(groups)
