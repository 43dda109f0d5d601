"""What a bump says: to people a diff and findings, to machines the fields of DESIGN's output section."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence

from packaging.version import Version

from tooling.commands.bump_capabilities import say_changes
from tooling.commands.bump_checks import Outcome, unchecked
from tooling.commands.report import Report
from tooling.commands.terminal import Terminal
from tooling.edges.files.applying import Healing
from tooling.errors import ExitCode, ToolingError
from tooling.findings import Finding, Severity, has_errors
from tooling.pins.plan import BumpPlan, Move
from tooling.pins.texts import render_diff
from tooling.redaction import redact_text

_NO_FIELDS: Mapping[str, object] = {"from": None, "to": None, "healed": None, "sites": [], "unchecked": []}


def make_report(args: argparse.Namespace, outcome: Outcome, healed: Healing | None) -> Report:
    """The report of a plan before it is applied; `moved` says what will be done."""
    plan, findings = outcome.plan, outcome.findings
    status = _status(plan, findings, dry_run=args.dry_run)
    return Report(
        command="bump",
        status=status,
        exit_code=ExitCode.FINDINGS if status == "refused" else ExitCode.OK,
        findings=findings,
        fields={
            "from": None if plan.from_version is None else str(plan.from_version),
            "to": str(plan.to),
            "direction": plan.direction,
            "healed": None if healed is None else {"to": healed.to, "version": healed.version},
            "sites": [_site(move, outcome) for move in plan.moves],
            "unchecked": unchecked(args, plan),
            **outcome.fields,
        },
    )


def say(terminal: Terminal, outcome: Outcome, report: Report) -> None:
    """The plan for people: what was healed, where it goes, the diff, what was not checked, findings, the end."""
    plan = outcome.plan
    if isinstance(healed := report.fields["healed"], dict):
        terminal.say(f"healed an interrupted bump: every file is {healed['to']} ({healed['version']})")
    if report.status == "already":
        terminal.say(f"every pin holds {plan.to} already")
    else:
        _say_move(terminal, plan, report)
    for line in outcome.lines:
        terminal.say(line)
    terminal.say_findings(report.findings)
    if report.status == "would-move":
        terminal.say(f"dry run: {tell_moved(report)} would move, nothing was written")
    if report.status == "refused":
        terminal.say(terminal.paint("refused: nothing was written", "red", "bold"))


def refuse_interrupted(terminal: Terminal, to: Version | None, interrupted: tuple[str, str]) -> Report:
    """A dry run's answer on a tree that a bump left half way."""
    finding = interrupted_finding(interrupted)
    terminal.say_findings([finding])
    return Report(
        command="bump",
        status="refused",
        exit_code=ExitCode.FINDINGS,
        findings=(finding,),
        fields={**_NO_FIELDS, "to": None if to is None else str(to)},
    )


def report_error(error: ToolingError) -> Report:
    """A bump that ended in an error: refused before any write, unless the error says that the tree is half way."""
    status = "error" if error.reason == "INTERRUPTED" else "refused"
    return Report(command="bump", status=status, exit_code=error.exit_code, error=error, fields=_NO_FIELDS)


def interrupted_finding(versions: tuple[str, str]) -> Finding:
    """Says that a bump was cut short here, and what to do."""
    return Finding(
        check="interrupted",
        detail=f"a bump from {versions[0]} to {versions[1]} was interrupted here.",
        hint="`check --heal`, or the next bump that is no dry run, finishes or undoes it",
        reason="INTERRUPTED",
    )


def tell_moved(report: Report) -> str:
    """How many pins the bump moves, in how many files; one that it drops does not count, nor does release.toml."""
    sites = report.fields["sites"]
    moved = [site["path"] for site in sites if site["after"] is not None] if isinstance(sites, list) else []
    return f"{len(moved)} pins in {len(set(moved))} files"


def first_reason(findings: Iterable[Finding]) -> str | None:
    """The reason of the first finding that is an error."""
    return next((item.reason for item in findings if item.severity is Severity.ERROR and item.reason), None)


def _site(move: Move, outcome: Outcome) -> dict[str, object]:
    """A pin before and after; a dropped one has nothing after."""
    dropped = outcome.fields.get("dropped")
    gone = isinstance(dropped, list) and move.site.package in dropped
    return {**move.as_json(), "after": None} if gone else move.as_json()


def _say_move(terminal: Terminal, plan: BumpPlan, report: Report) -> None:
    old = plan.from_version or "several versions"
    label = terminal.paint(" (downgrade)", "yellow") if plan.direction == "downgrade" else ""
    where = f"{old} -> {plan.to}" if plan.from_version != plan.to else f"stays at {plan.to}"
    terminal.say(terminal.paint(f"FlashInfer {where}", "bold") + label)
    if report.status != "refused":
        terminal.say_diff(redact_text(line) for line in render_diff(plan.edits))
        if isinstance(capabilities := report.fields["capabilities"], dict):
            say_changes(terminal, capabilities["changes"])
        if isinstance(left_out := report.fields["unchecked"], list):
            for item in left_out:
                terminal.say(terminal.paint(f"not checked (offline): {item}", "yellow"))


def _status(plan: BumpPlan, findings: Sequence[Finding], *, dry_run: bool) -> str:
    if has_errors(findings):
        return "refused"
    if not plan.edits:
        return "already"
    return "would-move" if dry_run else "moved"
