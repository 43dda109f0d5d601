"""What a bump asks before it writes: is the release blocked, is it published, and what was not asked."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace

from tooling.findings import Finding, has_errors
from tooling.pins.plan import BumpPlan
from tooling.pins.refusals import check_target
from tooling.pins.scan import Tree


def check_release(args: argparse.Namespace, tree: Tree, plan: BumpPlan) -> list[Finding]:
    """Findings about the target. The index is asked only where something would move and nothing forbids it.

    Raises:
        EdgeError: an index does not answer.
    """
    findings = check_target(
        plan.to, tree.settings, allow_prerelease=args.allow_prerelease, allow_blocked=args.allow_blocked
    )
    if plan.edits and not args.offline and not has_errors(findings):
        findings += _ask_index(tree, plan)
    return findings


def unchecked(args: argparse.Namespace, plan: BumpPlan) -> list[str]:
    """What `--offline` left out, in words."""
    if args.offline and plan.edits:
        return [f"whether {plan.to} is published and not yanked"]
    return []


def _ask_index(tree: Tree, plan: BumpPlan) -> Iterator[Finding]:
    from tooling.edges.index import IndexClient  # noqa: PLC0415  # costs half a second
    from tooling.edges.pip_config import load_index_settings  # noqa: PLC0415  # goes with the index
    from tooling.releases.availability import check_availability  # noqa: PLC0415  # only needed with an index

    client = IndexClient(load_index_settings())
    for package, (path, line) in _packages(tree).items():
        for finding in check_availability(package, plan.to, client.fetch_project(package)):
            yield replace(finding, path=path, line=line)


def _packages(tree: Tree) -> dict[str, tuple[str | None, int | None]]:
    """Every package that a pin names, with the place of its first pin; the main one always."""
    places: dict[str, tuple[str | None, int | None]] = {}
    for site in tree.pins:
        if site.package is not None:
            places.setdefault(site.package, (site.path, site.line))
    places.setdefault(tree.library.main_package, (None, None))
    return places
