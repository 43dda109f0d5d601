"""Move the FlashInfer pin in every file at once, or in none.

The tree is read, every edit is planned, the index is asked whether each pinned package exists at that version, and only
then are the files written, all or nothing: after a crash at any instant the next bump or `check --heal` finishes or
undoes it.

Examples:
  tooling bump 0.6.13                 move every pin to 0.6.13
  tooling bump 0.6.13 --dry-run       show the same plan and diff, write nothing
  tooling bump 0.6.12 --offline       go back without asking the index (says "not checked")
  tooling bump 0.6.13 --from-any      also from files that disagree with each other
  tooling bump 0.7.4 --drop-cubin --with-companions
                                      without the cubin package, companions moved to what 0.7.4 needs
  tooling bump 0.7.4 --add-index --with-companions
                                      with the cubin package from the library's own index
  tooling bump --latest --dry-run     the newest release that can be installed, and why no newer one
  tooling --root ../vllm bump 0.6.13 --only docker requirements/cuda.txt    a part of any tree
"""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from packaging.version import Version

from tooling.commands import bump_report
from tooling.commands.bump_capabilities import add_unknown_argument, check_known, look_up, spelled_as_released
from tooling.commands.bump_checks import Outcome, add_release_arguments, check_arguments, settle
from tooling.commands.recording import (
    add_evidence_argument,
    evidence_folder,
    load_pinned_tree,
    make_record,
    save_record,
)
from tooling.commands.report import Report
from tooling.commands.terminal import Terminal
from tooling.edges import clock
from tooling.edges.evidence_files import prepare_folder
from tooling.edges.files.applying import apply_edits, find_interrupted, heal
from tooling.edges.files.journal import lock_tree
from tooling.edges.files.reading import check_root, load_bytes
from tooling.edges.files.tree import load_tree
from tooling.edges.packaged_data import load_library
from tooling.errors import ExitCode, ToolingError
from tooling.findings import Severity
from tooling.pins.leftovers import check_leftovers, list_stale_copies
from tooling.pins.plan import BumpPlan, check_written
from tooling.pins.refusals import parse_target
from tooling.pins.scan import Tree
from tooling.pins.scope import check_left_out, restrict


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("version", metavar="VERSION", nargs="?", help="the release to move to, such as 0.6.13")
    parser.add_argument("--latest", action="store_true", help="the newest final release that can be installed")
    parser.add_argument("--dry-run", action="store_true", help="show the plan and the diff, write nothing")
    parser.add_argument("--offline", action="store_true", help="do not ask the index; says what was not checked")
    parser.add_argument("--allow-prerelease", action="store_true", help="take an rc, alpha, beta or dev release")
    parser.add_argument("--allow-blocked", action="store_true", help="take a release that release.toml blocks")
    parser.add_argument("--from-any", action="store_true", help="move pins that disagree, whatever they hold")
    parser.add_argument(
        "--only", nargs="+", action="extend", default=[], metavar="PATH",
        help="move only the pins there: files, folders, patterns, or FILE:LINE",
    )  # fmt: skip
    add_release_arguments(parser)
    add_unknown_argument(parser)
    add_evidence_argument(parser)


def run(args: argparse.Namespace, terminal: Terminal) -> Report:
    started = clock.now()
    check_arguments(args)
    to = None if args.latest else spelled_as_released(parse_target(args.version))
    args.root = check_root(args.root)
    if args.dry_run and (interrupted := find_interrupted(args.root)):
        return bump_report.refuse_interrupted(terminal, to, interrupted)
    with nullcontext() if args.dry_run else lock_tree(args.root):
        report, versions_file = _bump(args, to, terminal)
        if not args.dry_run:
            after = load_pinned_tree(args.root, versions_file=versions_file, commit=args.commit)
            record = make_record(
                replace(after, started=started),
                stage="bump",
                status="fail" if report.exit_code else "pass",
                reason=bump_report.first_reason(report.findings),
                findings=report.findings,
                measurements=report.fields,
            )
            save_record(args, record)
    return report


def report_error(error: ToolingError) -> Report:
    """A bump that ended in an error: refused before any write, unless it says that the tree holds two versions."""
    return bump_report.report_error(error)


def _bump(args: argparse.Namespace, to: Version | None, terminal: Terminal) -> tuple[Report, str | None]:
    """Heal, load, plan, ask, say, apply, load again."""
    healed = None if args.dry_run else heal(args.root)
    whole = load_tree(args.root, load_library())
    tree = restrict(whole, [_seen_from(args.root, place) for place in args.only])
    outcome = _with_leftovers(whole, tree, _with_row(args, settle(args, tree, to)))
    report = bump_report.make_report(args, outcome, healed)
    bump_report.say(terminal, outcome, report)
    if report.status == "moved":
        prepare_folder(evidence_folder(args))
        report = _apply(args, outcome.plan, report, terminal)
    return report, whole.versions_file


def _seen_from(root: Path, place: str) -> str:
    """A place of `--only` as the tree's own paths are written; one that is not below the root stays as it is."""
    path = Path(place)
    for base in (root.absolute(), root.resolve()):
        if path.is_absolute() and path.is_relative_to(base):
            return path.relative_to(base).as_posix()
    return place


def _with_row(args: argparse.Namespace, outcome: Outcome) -> Outcome:
    """The outcome with the target's row of the capabilities table, or the refusal where it has none."""
    target = look_up(outcome.plan)
    known = check_known(outcome.plan, target, args)
    fields = {**outcome.fields, "capabilities": target.as_json()}
    return replace(outcome, findings=(*outcome.findings, *known), fields=fields)


def _with_leftovers(whole: Tree, tree: Tree, outcome: Outcome) -> Outcome:
    """The outcome with what stays behind: pins that `--only` leaves out, suspects, copies that go stale."""
    left = check_left_out(whole, tree, outcome.plan.to)
    stale = [*check_leftovers(tree, severity=Severity.WARNING), *list_stale_copies(tree, outcome.plan.to)]
    return replace(outcome, findings=(*outcome.findings, *left, *stale))


def _apply(args: argparse.Namespace, plan: BumpPlan, report: Report, terminal: Terminal) -> Report:
    apply_edits(args.root, plan.edits, from_label=str(plan.from_version), to_label=str(plan.to))
    left = check_written(plan.edits, {edit.path: load_bytes(args.root, edit.path) for edit in plan.edits})
    if left:
        terminal.say_findings(left)
        return replace(report, exit_code=ExitCode.FINDINGS, findings=(*report.findings, *left))
    terminal.say(terminal.paint(f"moved {bump_report.tell_moved(report)} to {plan.to}", "green"))
    return report
