"""List every place in a tree that holds a FlashInfer version, whatever its format, and what it is for.

Only a pin moves with a bump. Pins are grouped by version where they disagree; comments, locks and derived files that a
bump would leave stale come with what renews them. Changes nothing, and needs no configuration.

Examples:
  tooling sites                          this tree
  tooling --root ../vllm sites           any other one
  tooling sites --all --json             minimums, uses and every mention too, for machines
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from tooling.commands.report import Report
from tooling.commands.terminal import Terminal
from tooling.edges.files.reading import check_root
from tooling.edges.files.tree import load_tree
from tooling.edges.packaged_data import load_library
from tooling.errors import ExitCode
from tooling.findings import Finding, Severity
from tooling.pins.derived import renewal
from tooling.pins.drift import groups_by_version
from tooling.pins.leftovers import check_leftovers
from tooling.pins.scan import Tree
from tooling.pins.sites import PinSite, Role

_COPIES = (Role.LOCK, Role.DERIVED, Role.PROSE)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="also list minimums, uses, and mentions of other versions")


def run(args: argparse.Namespace, terminal: Terminal) -> Report:
    args.root = check_root(args.root)
    tree = load_tree(args.root, load_library())
    groups = groups_by_version(tree.pins)
    findings = [*tree.unread, *check_leftovers(tree, severity=Severity.WARNING), *_none(tree)]
    _say(terminal, tree, groups, shows_all=args.all)
    terminal.say_findings(findings)
    return Report(
        command="sites",
        status="none" if not groups else "agree" if len(groups) == 1 else "disagree",
        exit_code=ExitCode.OK,
        findings=tuple(findings),
        fields={
            "version": None if tree.truth is None else str(tree.truth),
            "versions_file": tree.versions_file,
            "groups": {version: [f"{site.path}:{site.line}" for site in sites] for version, sites in groups.items()},
            "sites": [{**site.as_json(), "renew": _renewal(tree, site)} for site in tree.sites],
        },
    )


def _say(terminal: Terminal, tree: Tree, groups: dict[str, list[PinSite]], *, shows_all: bool) -> None:
    if len(groups) > 1:
        terminal.say(terminal.paint(f"the pins hold {len(groups)} versions:", "yellow", "bold"))
    for version, sites in groups.items():
        terminal.say(terminal.paint(f"{version}: {_count(sites)}", "bold"))
        _say_sites(terminal, sites)
    held = {site.version.public for site in tree.pins if site.version is not None}
    copies = [
        site
        for site in tree.sites
        if site.role in _COPIES and (shows_all or (site.version is not None and site.version.public in held))
    ]
    if copies:
        terminal.say(terminal.paint("stale after a bump:" if not shows_all else "copies and mentions:", "bold"))
        _say_sites(terminal, copies, tree)
    others = [site for site in tree.sites if site.role in {Role.MINIMUM, Role.USE}]
    if others and shows_all:
        terminal.say(terminal.paint("no pins, never moved:", "bold"))
        _say_sites(terminal, others)


def _say_sites(terminal: Terminal, sites: Sequence[PinSite], tree: Tree | None = None) -> None:
    """A line each, in columns: place, spelling, role, shape, package, and what renews it."""
    places = [f"{site.path}:{site.line}" for site in sites]
    widths = max(map(len, places)), max(len(site.spelling) for site in sites)
    for place, site in zip(places, sites, strict=True):
        words = [str(site.role), site.shape, *([site.package] if site.package else [])]
        renew = _renewal(tree, site) if tree is not None else ""
        line = f"  {place:<{widths[0]}}  {site.spelling:<{widths[1]}}  {' '.join(words)}"
        terminal.say(line + (terminal.paint(f"  renew: {renew}", "dim") if renew else ""))


def _renewal(tree: Tree, site: PinSite) -> str | None:
    if site.role not in _COPIES:
        return None
    source = tree.text(site.path)
    return renewal(site, "" if source is None else source.text, version="VERSION")


def _none(tree: Tree) -> list[Finding]:
    if tree.pins:
        return []
    detail = f"no pin of {tree.library.name} was found."
    hint = "point --root at a tree that pins it, or look at [scan] leave_out in release.toml"
    return [Finding(check="no-pins", severity=Severity.WARNING, detail=detail, hint=hint, reason="NO_PINS")]


def _count(sites: Sequence[PinSite]) -> str:
    files = len({site.path for site in sites})
    return f"{len(sites)} pin{'s' * (len(sites) != 1)} in {files} file{'s' * (files != 1)}"
