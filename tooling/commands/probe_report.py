"""What a probe says: facts and evidence to people, bytes and seconds, and the JSON of DESIGN's output section."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

from tooling.capabilities.facts import FACTS, Fact
from tooling.capabilities.table import Table, calendar_facts
from tooling.commands.report import Report
from tooling.commands.terminal import Terminal
from tooling.edges.probing import Probed
from tooling.errors import ExitCode
from tooling.findings import Finding, has_errors

LIST_LIMIT = 6
"""Longer lists are cut for people; --json has all."""


def make(
    args: argparse.Namespace,
    terminal: Terminal,
    *,
    probed: Sequence[Probed],
    findings: Sequence[Finding],
    table: Table,
    behaviour: Mapping[str, object],
) -> Report:
    """Says it, and returns the report."""
    failed = has_errors(findings)
    releases = [as_json(item, table) for item in probed]
    if len(probed) == 1 and args.version != "all":
        _say_one(terminal, probed[0], table)
    else:
        _say_many(terminal, probed)
    terminal.say_findings(findings)
    if args.add:
        terminal.say("the table is untouched" if failed else f"written: {args.table.name}, ready to commit")
    return Report(
        command="probe",
        status="differs" if failed else "read",
        exit_code=ExitCode.FINDINGS if failed else ExitCode.OK,
        findings=tuple(findings),
        fields={"releases": releases, "added": bool(args.add and not failed), **behaviour},
    )


def all_facts(item: Probed, table: Table) -> dict[str, Fact]:
    facts = {} if item.derived is None else dict(item.derived.facts)
    facts |= calendar_facts(table, item.release)
    return {name: facts[name] for name in FACTS if name in facts}


def as_json(item: Probed, table: Table) -> dict[str, object]:
    published = table.published.get(item.release)
    return {
        "release": str(item.release),
        "facts": {name: fact.as_json() for name, fact in all_facts(item, table).items()},
        "known_faults": [fault.as_json() for fault in item.derived.known_faults] if item.derived else [],
        "file": item.file,
        "size_bytes": item.size_bytes,
        "sha256": item.sha256,
        "uploaded": published.uploaded if published else None,
        "bytes_read": {"tuner": item.tuner_bytes, "operations": item.operation_bytes},
        "seconds": {"tuner": round(item.tuner_seconds, 3), "all": round(item.seconds, 3)},
        "from_cache": item.from_cache,
        "notes": list(item.notes),
    }


def show(value: object) -> str:
    """A fact's value in words."""
    if value is None:
        return "could not tell"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        more = f", … ({len(value)} in all)" if len(value) > LIST_LIMIT else ""
        return ", ".join(value[:LIST_LIMIT]) + more if value else "none"
    return str(value)


def say_facts(terminal: Terminal, facts: Mapping[str, Fact], *, evidence: bool) -> None:
    for name, fact in facts.items():
        colour = () if fact.value is not None else ("yellow",)
        terminal.say(f"  {name:<28}{terminal.paint(show(fact.value), *colour)}")
        if fact.reason:
            terminal.say(terminal.paint(f"  {'':<28}{fact.reason}", "dim"))
        for item in fact.evidence[:2] if evidence else ():
            terminal.say(terminal.paint(f"  {'':<28}{item}", "dim"))


def _say_one(terminal: Terminal, item: Probed, table: Table) -> None:
    size = f", {item.size_bytes:,} bytes" if item.size_bytes else ""
    terminal.say(terminal.paint(f"FlashInfer {item.release}", "bold") + f"  ({item.file}{size})")
    say_facts(terminal, all_facts(item, table), evidence=True)
    for fault in item.derived.known_faults if item.derived else ():
        terminal.say(f"  {terminal.paint(fault.id, 'yellow')} {', '.join(fault.operations)}: {fault.effect}")
    for note in item.notes:
        terminal.say(terminal.paint(f"note: {note}", "yellow"))
    if item.from_cache:
        terminal.say(terminal.paint("from the cache, by the file's hash; nothing was read", "dim"))
    else:
        terminal.say(
            f"read {item.tuner_bytes:,} bytes in {item.tuner_seconds:.1f} s for metadata and tuner, "
            f"{item.operation_bytes:,} more for operations ({item.seconds:.1f} s in all)"
        )


def _say_many(terminal: Terminal, probed: Sequence[Probed]) -> None:
    for item in probed:
        if item.derived is None:
            continue
        autotuner = show(item.derived.facts["autotuner"].value)
        took = "cached" if item.from_cache else f"{item.tuner_bytes + item.operation_bytes:>12,} bytes"
        faults = ", ".join(fault.id for fault in item.derived.known_faults)
        terminal.say(f"  {item.release!s:<14}{autotuner:<10}{took:<20}{item.size_bytes:>12,}  {faults}")
    fresh = [item for item in probed if not item.from_cache and item.derived is not None]
    read = sum(item.tuner_bytes + item.operation_bytes for item in fresh)
    published = sum(item.size_bytes for item in probed)
    terminal.say(
        f"{len(probed)} releases, {len(fresh)} of them read now: {read:,} bytes read of {published:,} published"
    )
