"""What a passing smoke record shows beside its status: which scenarios ran, what it saw, what it leaves uncovered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from tooling.capabilities.table import Row
from tooling.evidence import Record
from tooling.findings import Severity
from tooling.gate.image_rules import COMPANIONS, MAIN_PACKAGE
from tooling.gate.policy import Channel
from tooling.gate.remarks import Remark, contradiction, failure, note, public
from tooling.smoke.checks import judge_smoke
from tooling.smoke.judgement import Judgement
from tooling.smoke.observations import ScenarioSeen, Seen
from tooling.smoke.orders import MAX_TOKENS, choose_workload
from tooling.smoke.scenarios import FORCED, SCENARIOS, Scenario


def check_smoke_record(record: Record, channel: Channel, *, row: Row | None, as_of: datetime) -> Iterator[Remark]:
    """A record whose measurements have another shape contradicts its pass."""
    try:
        seen = Seen.from_json(record.measurements)
        judged = judge_smoke(seen, row, requested=[_requested(one) for one in seen.scenarios])
        remarks = [
            *_machine(record, seen),
            *_again(record, judged),
            *_scenarios(seen, judged, channel),
            *_workload(seen, channel),
            *_environment(seen, channel),
            *_uncovered(seen, channel),
            *_speedup(judged, channel),
            *_faults(judged, channel, as_of),
        ]
    except (KeyError, TypeError, AttributeError, ValueError, IndexError, ArithmeticError, RecursionError) as cause:
        remarks = [contradiction(f"the record says pass and its measurements are not those of a smoke: {cause!r}")]
    yield from remarks


def _requested(scenario: ScenarioSeen) -> Scenario:
    """The scenario as it was asked for; a machine with more GPUs may run one of several ranks with more of them."""
    asked = FORCED if scenario.name == FORCED.name else SCENARIOS[scenario.name]
    ranks = max((len(run.ranks) for run in (scenario.cold, scenario.warm) if run is not None), default=0)
    return replace(asked, ranks=max(asked.ranks, ranks)) if asked.ranks > 1 else asked


def _machine(record: Record, seen: Seen) -> Iterator[Remark]:
    if not seen.machine.gpus:
        yield contradiction("the record says pass and no GPU was there")
    if record.gpu is None or record.gpu.get("arch", seen.machine.arch) != seen.machine.arch:
        yield contradiction(
            f"the record names the GPU {record.gpu and record.gpu.get('arch')}, its measurements another"
        )
    if seen.machine.arch != record.subject:
        yield contradiction(f"the record is of {record.subject} and ran on {seen.machine.arch or 'an unknown GPU'}")
    pinned = public(record.flashinfer_version or "")
    for name in (MAIN_PACKAGE, *COMPANIONS):
        found = seen.machine.packages.get(name)
        if found is not None and public(found) != pinned:
            yield contradiction(f"the record says pass for {pinned} and {name} {found} was installed")
    if MAIN_PACKAGE not in seen.machine.packages:
        yield contradiction(f"the record says pass and {MAIN_PACKAGE} was not installed")


def _again(record: Record, judged: Judgement) -> Iterator[Remark]:
    """The stage's own judgement, made again from what the record says was seen."""
    if judged.status != "pass":
        first = next((item for item in judged.findings if item.severity is Severity.ERROR), None)
        shown = f": {first.detail} [{first.reason}]" if first else ""
        yield contradiction(f"the record says pass and what it saw comes to {judged.status}{shown}")
    told = record.measurements.get("judged")
    if isinstance(told, Mapping) and told.get("status") != "pass":
        yield contradiction(f"the record says pass and its own judgement {told.get('status')}")


def _scenarios(seen: Seen, judged: Judgement, channel: Channel) -> Iterator[Remark]:
    if seen.scenario(FORCED.name) is not None:
        detail = "it holds a diagnosis (`--force-persistent`), which is no evidence for a release"
        yield Remark(word="DIAGNOSIS", detail=detail)
    names = [one.name for one in seen.scenarios]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield contradiction(f"the scenario {name} stands there twice")
    for name in channel.smoke.scenarios:
        scenario, outcome = seen.scenario(name), judged.scenario(name)
        if scenario is None or outcome is None:
            yield Remark(word="NOT_COVERED", detail=f"the scenario {name} was not tried")
        elif outcome.status in {"not-run", "nothing_to_tune"}:
            why = f": {scenario.not_run}" if scenario.not_run else ""
            yield Remark(word="NOT_COVERED", detail=f"the scenario {name} came to {outcome.status}{why}")


def _workload(seen: Seen, channel: Channel) -> Iterator[Remark]:
    """A run over few tokens (`--max-tokens`) tunes few buckets. Look-ups are counted at the largest token count too."""
    for name in channel.smoke.scenarios:
        scenario, wanted = seen.scenario(name), choose_workload(SCENARIOS[name], MAX_TOKENS).max_tokens
        runs = [run for run in (scenario.cold, scenario.warm) if run is not None] if scenario else []
        sizes = [int(size) for run in runs for rank in run.ranks for size in rank.lookups]
        if sizes and max(sizes) < wanted:
            detail = f"the scenario {name} had {max(sizes)} tokens at most; a release's has {wanted} (`--max-tokens`)"
            yield Remark(word="NOT_COVERED", detail=detail)


def _environment(seen: Seen, channel: Channel) -> Iterator[Remark]:
    for name, value in sorted(seen.bypasses.items()):
        detail = f"{name}={value} was set; the smoke took it out, and nothing else would"
        yield note("BYPASS", detail) if channel.allows("bypasses") else Remark(word="BYPASS", detail=detail)
    for name, value in sorted(seen.overrides.items()):
        detail = f"the operator's {name}={value} was in force"
        yield note("OVERRIDE", detail) if channel.allows("overrides") else Remark(word="OVERRIDE", detail=detail)


def _uncovered(seen: Seen, channel: Channel) -> Iterator[Remark]:
    """What the run says nothing about; an entry begins with the name of what is not covered."""
    absent = [
        f"{name} is not installed"
        for name in COMPANIONS
        if seen.machine.packages.get(name) is None and not any(item.startswith(name) for item in seen.not_covered)
    ]
    for what in dict.fromkeys([*absent, *seen.not_covered]):
        if any(what == name or what.startswith(f"{name} ") for name in channel.smoke.not_covered):
            yield note("NOT_COVERED", f"not covered, as {channel.name} allows: {what}")
        else:
            key = f"channels.{channel.name}.smoke.not_covered"
            detail = f"not covered: {what}; a release that may go without it says so in {key}"
            yield Remark(word="NOT_COVERED", detail=detail)


def _speedup(judged: Judgement, channel: Channel) -> Iterator[Remark]:
    """Where a warm start must use the cache, it must be as many times faster as the channel wants."""
    wanted = channel.smoke.min_speedup
    for outcome in judged.scenarios if wanted is not None else ():
        if outcome.ratio is not None and outcome.ratio < (wanted or 0.0):
            detail = (
                f"{outcome.name}: a warm start is {outcome.ratio:.1f} times as fast; {channel.name} wants {wanted:g}"
            )
            yield failure("WARM_TOO_SLOW", detail)


def _faults(judged: Judgement, channel: Channel, as_of: datetime) -> Iterator[Remark]:
    """Known faults that showed: the channel lists each with a day until which it is taken, or the release fails."""
    allowed = {fault.id: fault for fault in channel.known_faults}
    for fault in judged.faults:
        if fault.state != "seen":
            continue
        listed = allowed.get(fault.id)
        if listed is None:
            yield failure("KNOWN_FAULT", f"{fault.id} shows, and {channel.name} does not allow it: {fault.detail}")
        elif as_of.astimezone(UTC).date() > listed.expires:
            detail = f"{fault.id} shows, and {channel.name} allowed it until {listed.expires}: {fault.detail}"
            yield failure("ALLOWANCE_EXPIRED", detail)
        else:
            detail = f"{fault.id} shows, allowed until {listed.expires} ({listed.reason}): {fault.detail}"
            yield note("KNOWN_FAULT", detail)
