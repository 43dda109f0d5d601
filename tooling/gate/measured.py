"""How records are read for what they measured, and the gating that smoke records saw, as values to show.

A record is sealed, not checked field by field: whatever a stage wrote in `measurements`, reading it here never raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tooling.capabilities.gating import Gating, World, gate
from tooling.capabilities.table import Row
from tooling.gate.values import EvidenceFile, Verdict
from tooling.smoke.expectations import fit_scenario
from tooling.smoke.observations import RunSeen, ScenarioSeen, Seen
from tooling.smoke.scenarios import SCENARIOS

LARGEST = 1e9
"""No start takes longer in seconds, and no evaluation asks more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatingSeen:
    """What one record's warm-up did in a scenario. `agrees` null: not run, or nothing to compare with."""

    strategy: str
    persistent: bool | None
    used_cache: bool | None
    agrees: bool | None
    why_not: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatingRow:
    """A scenario: what the rule expects of the release (null without a row) and what was seen, by smoke subject."""

    scenario: str
    about: str
    expected: Gating | None
    seen: Mapping[str, GatingSeen]


def taken(verdict: Verdict, stage: str) -> tuple[EvidenceFile, ...]:
    """The records of that stage that count, each once."""
    files = {item.file.path: item.file for item in verdict.requirements if item.file and item.file.record}
    return tuple(file for file in files.values() if file.record is not None and file.record.stage == stage)


def earlier(verdict: Verdict, stage: str, subject: str | None) -> EvidenceFile | None:
    """The newest record of the release before for the same subject."""
    found = [
        (file.record.ended, file)
        for file in verdict.earlier
        if file.record is not None and file.record.stage == stage and file.record.subject == subject
    ]
    return max(found, key=lambda pair: pair[0])[1] if found else None


def gating_rows(verdict: Verdict) -> tuple[GatingRow, ...]:
    """Every scenario that a smoke record names, in the table's order, strangers last."""
    seen = {subject_of(file): body for file in taken(verdict, "smoke") if (body := read_seen(file)) is not None}
    named = {scenario.name: None for body in seen.values() for scenario in body.scenarios}
    order = [*(name for name in SCENARIOS if name in named), *(name for name in named if name not in SCENARIOS)]
    return tuple(_gating_row(str(name), verdict.row, seen) for name in order)


def unreadable(verdict: Verdict) -> tuple[EvidenceFile, ...]:
    """Smoke records that count and whose measurements have another shape than the stage writes."""
    return tuple(file for file in taken(verdict, "smoke") if read_seen(file) is None)


def read_seen(file: EvidenceFile | None) -> Seen | None:
    """What a smoke record holds; null if it is none, or has another shape."""
    if file is None or file.record is None:
        return None
    try:
        seen = Seen.from_json(file.record.measurements)
    except (KeyError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError):
        return None
    names: list[object] = [scenario.name for scenario in seen.scenarios]
    return seen if all(isinstance(name, str) for name in names) else None


def subject_of(file: EvidenceFile) -> str:
    """`sm90`; the file's path where the record has no subject."""
    return (file.record and file.record.subject) or file.path


def mapping(value: object) -> Mapping[str, object]:
    """The value if it is a JSON object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def number(value: object) -> float | None:
    """The value if it is a number that a measurement can be: finite, not negative, not beyond `LARGEST`."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if 0 <= found <= LARGEST else None


def why_not(scenario: ScenarioSeen) -> str:
    if scenario.not_run:
        return f"not run: {scenario.not_run}"
    ends = [f"rank {rank.rank} {rank.end}" for run in _runs(scenario) for rank in run.ranks if rank.end != "ended"]
    return ", ".join(dict.fromkeys(ends))


def _runs(scenario: ScenarioSeen) -> Iterable[RunSeen]:
    return [run for run in (scenario.cold, scenario.warm) if run is not None]


def _gating_row(name: str, row: Row | None, seen: Mapping[str, Seen]) -> GatingRow:
    scenario = SCENARIOS.get(name)
    expected = None
    if scenario is not None and row is not None:
        ran = fit_scenario(scenario, row)
        world = World(ranks=ran.ranks, backend=ran.backend, cache_off=ran.cache_off)
        expected = gate(row.facts, world, deepep_synchronized=row.deepep_synchronized is not None)
    return GatingRow(
        scenario=name,
        about=scenario.about if scenario else "",
        expected=expected,
        seen={
            subject: _gating_seen(one, expected)
            for subject, body in seen.items()
            if (one := body.scenario(name)) is not None
        },
    )


def _gating_seen(scenario: ScenarioSeen, expected: Gating | None) -> GatingSeen:
    records = [record for run in _runs(scenario) if (record := mapping(run.record)).get("strategy")]
    used = mapping(scenario.warm.record).get("warm") if scenario.warm else None
    told = [(str(one["strategy"]), one.get("persistent")) for one in records]
    agrees = all(one == (str(expected.strategy), expected.persistent) for one in told) if expected and told else None
    # Where the two runs differ, the one that is not as expected is shown.
    shown = next((one for one in told if expected and one != (str(expected.strategy), expected.persistent)), None)
    strategy, persistent = shown or (told[0] if told else ("", None))
    return GatingSeen(
        strategy=strategy,
        persistent=persistent if isinstance(persistent, bool) else None,
        used_cache=used if isinstance(used, bool) else None,
        agrees=agrees,
        why_not=why_not(scenario),
    )
