"""Move the FlashInfer pin in every file at once, or in none.

The tree is read, every edit is planned, the index is asked whether each pinned package exists at that version, and only
then are the files written, all or nothing: after a crash at any instant the next bump or `check --heal` finishes or
undoes it.

Examples:
  tooling bump 0.6.13                 move every pin to 0.6.13
  tooling bump 0.6.13 --dry-run       show the same plan and diff, write nothing
  tooling bump 0.6.12 --offline       go back without asking the index (says "not checked")
  tooling bump 0.6.13 --from-any      also from files that disagree with each other
"""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from packaging.version import Version

from tooling.commands import bump_report
from tooling.commands.bump_capabilities import add_unknown_argument, check_known, look_up
from tooling.commands.bump_checks import check_release
from tooling.commands.recording import add_evidence_argument, load_pinned_tree, make_record, save_record
from tooling.commands.report import Report
from tooling.commands.terminal import Terminal
from tooling.edges import clock
from tooling.edges.files.applying import apply_edits, find_interrupted, heal
from tooling.edges.files.journal import lock_tree
from tooling.edges.files.reading import check_root
from tooling.edges.files.tree import load_tree
from tooling.edges.packaged_data import load_library
from tooling.errors import ExitCode
from tooling.findings import has_errors
from tooling.pins.plan import BumpPlan, check_moved, plan_bump
from tooling.pins.refusals import parse_target


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("version", metavar="VERSION", help="the release to move to, such as 0.6.13 or 0.6.16.post3")
    parser.add_argument("--dry-run", action="store_true", help="show the plan and the diff, write nothing")
    parser.add_argument("--offline", action="store_true", help="do not ask the index; says what was not checked")
    parser.add_argument("--allow-prerelease", action="store_true", help="take an rc, alpha, beta or dev release")
    parser.add_argument("--allow-blocked", action="store_true", help="take a release that release.toml blocks")
    parser.add_argument("--from-any", action="store_true", help="move pins that disagree, whatever they hold")
    add_unknown_argument(parser)
    add_evidence_argument(parser)


def run(args: argparse.Namespace, terminal: Terminal) -> Report:
    started = clock.now()
    to = parse_target(args.version)
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


def _bump(args: argparse.Namespace, to: Version, terminal: Terminal) -> tuple[Report, str | None]:
    """Heal, load, plan, ask, say, apply, load again."""
    healed = None if args.dry_run else heal(args.root)
    tree = load_tree(args.root, load_library())
    plan = plan_bump(tree, to, from_any=args.from_any)
    target = look_up(plan)
    findings = [*tree.unread, *plan.refusals, *check_known(plan, target, allow_unknown=args.allow_unknown)]
    if not has_errors(findings):
        findings += check_release(args, tree, plan)
    report = bump_report.make_report(args, plan, findings, healed, target)
    bump_report.say(terminal, plan, report)
    if report.status == "moved":
        report = _apply(args.root, plan, report, terminal)
    return report, tree.versions_file


def _apply(root: Path, plan: BumpPlan, report: Report, terminal: Terminal) -> Report:
    apply_edits(root, plan.edits, from_label=str(plan.from_version), to_label=str(plan.to))
    left = check_moved(load_tree(root, load_library()), plan.to)
    if left:
        terminal.say_findings(left)
        return replace(report, exit_code=ExitCode.FINDINGS, findings=(*report.findings, *left))
    terminal.say(terminal.paint(f"moved {len(plan.moves)} pins in {len(plan.edits)} files to {plan.to}", "green"))
    return report
