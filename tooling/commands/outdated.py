"""Say whether a newer release could be taken, and what stands in the way of newer ones. For a scheduled job.

Exit code 0: the pin is the newest that can be installed. Exit code 4: a newer one can, or the pinned one was withdrawn,
or the pins do not agree. Nothing is written. The flags say what a bump would be allowed to do.

Examples:
  tooling outdated                                     may the pin move as things are?
  tooling outdated --drop-cubin --with-companions      and if cubin may go and companions may move?
  tooling outdated --json                              for a job that opens an issue or a pull request
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from packaging.version import Version

from tooling.commands.bump_checks import Outcome, add_release_arguments, release_flags, settle
from tooling.commands.report import Report
from tooling.commands.terminal import Terminal
from tooling.edges.files.reading import check_root
from tooling.edges.files.tree import load_tree
from tooling.edges.packaged_data import load_library
from tooling.errors import ExitCode
from tooling.findings import Finding, Severity, has_errors
from tooling.pins.drift import check_pins
from tooling.pins.scan import Tree


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_release_arguments(parser)
    parser.set_defaults(
        version=None, latest=True, offline=False, from_any=False, allow_prerelease=False, allow_blocked=False
    )


def run(args: argparse.Namespace, terminal: Terminal) -> Report:
    args.root = check_root(args.root)
    tree = load_tree(args.root, load_library())
    problems = [item for item in check_pins(tree) if item.severity is Severity.ERROR]
    if tree.truth is None or problems:
        return _refuse(tree, problems, terminal)
    outcome = settle(args, tree, None)
    findings = [*_withdrawn(args, tree), *_findings(args, tree, outcome)]
    terminal.say(_summary(tree, outcome))
    for line in outcome.lines:
        terminal.say(f"  {line}")
    terminal.say_findings(findings)
    is_behind = has_errors(findings)
    return Report(
        command="outdated",
        status="outdated" if is_behind else "current",
        exit_code=ExitCode.FINDINGS if is_behind else ExitCode.OK,
        findings=tuple(findings),
        fields={"current": str(tree.truth), "reachable": str(outcome.plan.to), **outcome.fields},
    )


def _refuse(tree: Tree, problems: Sequence[Finding], terminal: Terminal) -> Report:
    """What `check` says of the pins: where they do not hold one version, there is nothing to compare."""
    terminal.say_findings(problems)
    return Report(
        command="outdated",
        status="refused",
        exit_code=ExitCode.FINDINGS,
        findings=tuple(problems),
        fields={"current": None if tree.truth is None else str(tree.truth), "reachable": None},
    )


def _findings(args: argparse.Namespace, tree: Tree, outcome: Outcome) -> Sequence[Finding]:
    """`outdated` if a bump could go further than the pin; what the outcome found, without its errors, stays."""
    if has_errors(outcome.findings):
        return outcome.findings
    if outcome.plan.to == tree.truth:
        return [item for item in outcome.findings if item.severity is not Severity.ERROR]
    behind = Finding(
        check="outdated",
        path=tree.versions_file,
        detail=f"{tree.library.name} {outcome.plan.to} can be taken, and the pin is {tree.truth}.",
        hint=" ".join(["bump", str(outcome.plan.to), *release_flags(args)]),
        reason="OUTDATED",
    )
    return [behind, *outcome.findings]


def _withdrawn(args: argparse.Namespace, tree: Tree) -> list[Finding]:
    """The pinned release itself, asked about again: it may have been yanked since."""
    from tooling.commands.bump_index import make_client  # noqa: PLC0415  # costs half a second
    from tooling.commands.bump_release import read_choices  # noqa: PLC0415  # goes with it
    from tooling.releases.availability import check_availability  # noqa: PLC0415  # goes with it

    assert tree.truth is not None
    pages = make_client(tree, read_choices(args)).fetch_project(tree.library.main_package)
    found = check_availability(tree.library.main_package, Version(tree.truth.public), pages)
    return [item for item in found if item.check == "yanked"]


def _summary(tree: Tree, outcome: Outcome) -> str:
    newest = outcome.fields.get("newest")
    known = f", the newest published final is {newest}" if newest else ""
    if outcome.plan.to == tree.truth:
        return f"{tree.library.name} {tree.truth} is the newest that can be installed{known}"
    return f"{tree.library.name} {tree.truth} could move to {outcome.plan.to}{known}"
