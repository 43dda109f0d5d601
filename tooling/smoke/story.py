"""The story of a smoke record, for somebody who was not there: the cause first, then scenario by scenario."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from tooling.errors import InputError
from tooling.findings import Finding, Severity
from tooling.smoke.case import ENDS, passes, tuned, was_warm
from tooling.smoke.checks_cache import kept_files
from tooling.smoke.observations import RankSeen, RunSeen, ScenarioSeen, Seen
from tooling.smoke.one_line import one_line
from tooling.smoke.summary import describe_machine


class Record(Protocol):
    """What the story needs of an evidence record; records themselves stand above the stages."""

    @property
    def stage(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def findings(self) -> tuple[Finding, ...]: ...
    @property
    def measurements(self) -> Mapping[str, Any]: ...


def render_story(record: Record) -> list[str]:
    """The lines of the story.

    Raises:
        InputError: not a smoke record, or its measurements are not what a smoke run writes.
    """
    if record.stage != "smoke":
        raise InputError(f"this is a record of {record.stage}, not of smoke", reason="OTHER_STAGE")
    try:
        seen = Seen.from_json(record.measurements)
        judged: Mapping[str, Any] = record.measurements.get("judged") or {"scenarios": [], "faults": []}
        by_name = {one["name"]: one for one in judged["scenarios"]}
        return [
            *_head(record, seen, judged["faults"]),
            *_machine(record, by_name),
            *(line for scenario in seen.scenarios for line in _scenario(scenario, by_name.get(scenario.name, {}))),
            *_absent(seen, by_name),
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as cause:
        detail = f"the measurements of this record are not those of a smoke run: {type(cause).__name__}: {cause}"
        raise InputError(detail, hint="run the smoke stage again", reason="UNPARSABLE") from cause


def _head(record: Record, seen: Seen, faults: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The outcome, known faults that showed, the first cause, and faults that did not show or were not looked at."""
    reason = f" ({record.reason})" if record.reason else ""
    took = f", in {seen.took_s:.0f} s" if seen.took_s is not None else ""
    yield f"Smoke on {describe_machine(seen.machine)}: {record.status}{reason}{took}."
    yield from (f"Known fault {fault['id']}: {fault['detail']}." for fault in faults if fault["seen"] is True)
    errors = [finding for finding in record.findings if finding.severity is Severity.ERROR]
    if errors:
        yield f"First cause: {_told(errors[0])}"
    if len(errors) > 1:
        yield f"{len(errors) - 1} more {'error follows' if len(errors) == 2 else 'errors follow'} below."
    yield from (
        f"Table out of date: {fault['id']} did not show; {fault['detail']}."
        for fault in faults
        if fault["seen"] is False
    )
    yield from (f"Not looked at: {fault['id']}; {fault['detail']}." for fault in faults if fault["seen"] is None)


def _machine(record: Record, scenarios: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Findings that belong to no scenario, but for the first cause and the faults, which stand above."""
    inside = {one["detail"] for scenario in scenarios.values() for one in scenario["findings"]}
    rest = [one for one in record.findings if one.detail not in inside and one.check != "smoke-fault"]
    first = next((one for one in record.findings if one.severity is Severity.ERROR), None)
    lines = [f"  {one.severity}: {_told(one)}" for one in rest if one is not first]
    if lines:
        yield ""
        yield "Machine and record"
        yield from lines


def _scenario(scenario: ScenarioSeen, judged: Mapping[str, Any]) -> Iterator[str]:
    status = judged.get("status")
    yield ""
    yield f"{scenario.name}: {str(status).replace('_', ' ').replace('-', ' ')}" if status else scenario.name
    if expected := judged.get("expected"):
        yield f"  expected: {_expected(expected)}"
    if scenario.not_run:
        yield f"  not run: {scenario.not_run}"
    for name, run in (("cold", scenario.cold), ("warm", scenario.warm)):
        if run is not None:
            yield from _run(name, run, judged)
    if judged.get("lookups"):
        yield f"  look-ups after the warm-up: {judged['lookups']}, {judged['hits']} hit, {judged['misses']} miss"
    yield from (f"  known: {trace}" for trace in judged.get("known", ()))
    yield from (f"  {one['severity']}: {_told(Finding.from_json(one))}" for one in judged.get("findings", ()))


def _expected(expected: Mapping[str, Any]) -> str:
    kept = "a cache that persists" if expected["persistent"] else "no cache"
    forced = ", forced as a diagnosis" if expected["forced"] else ""
    return f"{expected['strategy']}{forced}, {kept} (rule {expected['rule']}: {expected['why']})"


def _run(name: str, run: RunSeen, judged: Mapping[str, Any]) -> Iterator[str]:
    """What one run did, or which ranks failed and where."""
    if not run.ended:
        for rank in run.ranks:
            yield f"  {name}, rank {rank.rank}: {_ended(rank)}"
        if not run.ranks:
            yield f"  {name}: no rank ran"
        return
    parts = [f"{run.seconds:.2f} s" if run.seconds is not None else "not timed"]
    compiling = max((rank.jit_s or 0.0 for rank in run.ranks), default=0.0)
    if compiling >= 0.05:
        parts[0] += f", {compiling:.1f} s of them compiling"
    parts.append(_tuning(run))
    if files := kept_files(run.files):
        parts.append(f"wrote {len(files)} {'file' if len(files) == 1 else 'files'}")
    if name == "warm" and judged.get("ratio"):
        parts.append(f"{judged['ratio']:.1f} times faster than cold, compiling left out")
    if worst := [one for rank in run.ranks for one in rank.errors if one.largest is not None]:
        error = max(worst, key=lambda one: one.largest or 0.0)
        parts.append(f"largest error {error.largest:.4f} ({error.label})")
    spread = run.record.get("spread_s", {}).get("barrier", 0.0)
    if len(run.ranks) > 1:
        parts.append(f"ranks {spread * 1000:.1f} ms apart at the barrier")
    yield f"  {name}: {'; '.join(parts)}"


def _tuning(run: RunSeen) -> str:
    """What was loaded, tuned and skipped, on all ranks together."""
    buckets: dict[str, int] = {}
    for rank in run.ranks:
        for operation, count in tuned(rank).items():
            buckets[operation] = buckets.get(operation, 0) + count
    done = ", ".join(f"{count} of {operation}" for operation, count in sorted(buckets.items()) if count)
    skipped = sorted(
        {name for rank in run.ranks for name, one in passes(rank).get("tune", {}).items() if one["skipped"]}
    )
    words = f"tuned {done}" if done else "tuned nothing"
    if was_warm(run):
        words = f"loaded {run.record.get('loaded', 0)} entries, {words}"
    elif run.record.get("why_cold"):
        words = f"{words} ({run.record['why_cold']})"
    return f"{words}, skipped {', '.join(skipped)}" if skipped else words


def _ended(rank: RankSeen) -> str:
    if rank.end == "ended":
        return "ended well"
    step = f"at step {rank.step!r}" if rank.step else "before its first step"
    status = f", exit status {rank.exit_status}" if rank.exit_status else ""
    return f"{ENDS[rank.end]} {step}{status}{f': {one_line(rank.why)}' if rank.why else ''}"


def _absent(seen: Seen, judged: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Scenarios that were asked for and of which the record holds nothing."""
    for name in judged:
        if seen.scenario(name) is None:
            yield ""
            yield f"{name}: asked for, and not in the record"


def _told(finding: Finding) -> str:
    reason = f"{finding.reason}: " if finding.reason else ""
    return f"{reason}{finding.detail}{f' ({finding.hint})' if finding.hint else ''}"
