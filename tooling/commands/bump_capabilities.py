"""What a bump asks the capabilities table: is the target in it, and what changes for who serves with it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass

from packaging.version import Version

from tooling.capabilities.comparing import Change, compare, gate_row
from tooling.capabilities.table import NoRowError, Row, lookup
from tooling.commands.terminal import Terminal
from tooling.edges.capability_table import load_rows
from tooling.findings import Finding, Severity
from tooling.pins.plan import BumpPlan

COLOURS = {"breaks": "red", "changes": "yellow", "gains": "green"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetRow:
    """The target's row and the changes since the release that is pinned now; None and () where the table has no row."""

    row: Row | None
    changes: tuple[Change, ...] = ()

    def as_json(self) -> dict[str, object]:
        gating = None if self.row is None else {name: item.as_json() for name, item in gate_row(self.row).items()}
        return {"gating": gating, "changes": [change.as_json() for change in self.changes]}


def add_unknown_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--allow-unknown", action="store_true", help="take a release without a row in the capabilities")


def spelled_as_released(to: Version) -> Version:
    """The release as it was published: `0.6` is 0.6.0 for PEP 440, but its tag and its files carry the full name."""
    row = lookup(load_rows(to), to)
    return to if row is None else next(release for release in row.releases if release == to)


def look_up(plan: BumpPlan) -> TargetRow:
    """The target in the shipped table."""
    table = load_rows(*filter(None, (plan.from_version, plan.to)))
    row = lookup(table, plan.to)
    before = None if plan.from_version is None else lookup(table, plan.from_version)
    return TargetRow(row=row, changes=compare(before, row) if before and row else ())


def check_known(plan: BumpPlan, target: TargetRow, args: argparse.Namespace) -> list[Finding]:
    """A refusal if the table has no row for the target, or a warning if that was allowed.

    No pre-release ever has a row, so that `--allow-prerelease` allows this, too.
    """
    if target.row is not None or not plan.edits:
        return []
    allow_unknown = args.allow_unknown or (args.allow_prerelease and plan.to.is_prerelease)
    error = NoRowError(plan.to)
    more = "" if allow_unknown else "; --allow-unknown takes it without knowing what it can do"
    return [
        Finding(
            check="capabilities",
            severity=Severity.WARNING if allow_unknown else Severity.ERROR,
            detail=error.message,
            hint=error.hint + more,
            reason=error.reason,
        )
    ]


def say_changes(terminal: Terminal, changes: object) -> None:
    """One line a change, of the JSON's `changes`."""
    for change in changes if isinstance(changes, list) else ():
        if isinstance(change, Mapping):
            effect = str(change["effect"])
            terminal.say(f"  {terminal.paint(f'{effect:<8}', COLOURS[effect])} {change['text']}")
