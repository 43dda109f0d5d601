"""`--only`: the part of a tree's pins that a bump is about, by path and line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatch

from packaging.version import Version

from tooling.errors import InputError
from tooling.findings import Finding, Severity
from tooling.pins.scan import Tree, shared_version
from tooling.pins.sites import PinSite, Role


def restrict(tree: Tree, only: Sequence[str]) -> Tree:
    """The tree with no other pins than those; its truth is the one version that they share.

    A place is a file, a folder (`.` is all), a pattern such as `docker/*`, or `FILE:LINE`, seen from the root.

    Raises:
        InputError: a place at which no pin stands.
    """
    if not only:
        return tree
    empty = [place for place in only if not any(_stands_at(site, place) for site in tree.pins)]
    if empty:
        raise InputError(
            f"--only {' '.join(empty)}: no pin stands there",
            hint="`sites` lists every pin with its path and line",
            reason="NO_SUCH_SITE",
        )
    kept = tuple(site for site in tree.sites if site.role is not Role.PIN or _is_kept(site, only))
    required = tuple(item for item in tree.settings.required if any(_covers(item.path, place) for place in only))
    return replace(tree, sites=kept, truth=shared_version(kept), settings=replace(tree.settings, required=required))


def check_left_out(tree: Tree, part: Tree, to: Version) -> list[Finding]:
    """A warning for each pin that `--only` leaves where it is, unless it holds that version already."""
    kept = {(site.path, site.start) for site in part.pins}
    return [
        Finding(
            check="left-out",
            severity=Severity.WARNING,
            path=site.path,
            line=site.line,
            detail=f"{site.spelling} stays here, since --only does not name this place.",
            reason="LEFT_OUT",
        )
        for site in tree.pins
        if (site.path, site.start) not in kept and (site.version is None or site.version.public != to.public)
    ]


def _is_kept(site: PinSite, only: Iterable[str]) -> bool:
    return any(_stands_at(site, place) for place in only)


def _stands_at(site: PinSite, place: str) -> bool:
    path, colon, line = place.rpartition(":")
    if colon and line.isdigit():
        return _covers(site.path, path) and site.line == int(line)
    return _covers(site.path, place)


def _covers(path: str, place: str) -> bool:
    plain = place.removeprefix("./").rstrip("/")
    return place.rstrip("/") == "." or path == plain or path.startswith(f"{plain}/") or fnmatch(path, plain)
