"""What is judged of a smoke run, as values, and the JSON of it that stands beside the observations in a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tooling.findings import Finding
from tooling.smoke.expectations import Expected
from tooling.smoke.observations import Seen

ScenarioStatus = Literal["pass", "known", "nothing_to_tune", "not-run", "fail"]
"""`known`: passes but for known faults; `nothing_to_tune`: all was skipped, so it shows nothing of a cache."""

FaultState = Literal["seen", "not-seen", "not-looked-at"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """Look-ups of one operation that missed after the warm-up, on one rank of one run.

    `where` is the pass (`verify`, `check 2`) or the token count; `bucket`: that count is one that is tuned for;
    `tuned_here`: the run tuned its entries itself; `healed`: a second round of tuning followed.
    """

    scenario: str
    run: str
    rank: int
    where: str
    bucket: bool
    operation: str
    lookups: int
    misses: int
    fell_back: int
    tuned_here: bool
    healed: bool

    def __str__(self) -> str:
        place = self.where if not self.where.isdigit() else f"{self.where} tokens"
        return (
            f"{self.scenario}, {self.run} run, rank {self.rank}, {place}: {self.misses} of {self.lookups} look-ups of "
            f"{self.operation} miss, {self.fell_back} calls fall back"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultJudged:
    """A known fault of the row, and whether it showed. `symptoms` are its traces; `detail` says it in words."""

    id: str
    state: FaultState
    detail: str
    symptoms: tuple[Symptom, ...] = ()

    def as_json(self) -> dict[str, object]:
        seen = {"seen": True, "not-seen": False, "not-looked-at": None}[self.state]
        return {"id": self.id, "seen": seen, "detail": self.detail, "traces": [str(one) for one in self.symptoms]}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioJudged:
    """One scenario's outcome. `ratio`: how many times faster the warm run was, where it must be, else None.

    `lookups`, `hits` and `misses` are of the passes after the warm-up, of all ranks of both runs; `known` has a
    sentence for each trace that a known fault left.
    """

    name: str
    status: ScenarioStatus
    expected: Expected | None
    cold_s: float | None = None
    warm_s: float | None = None
    ratio: float | None = None
    lookups: int = 0
    hits: int = 0
    misses: int = 0
    known: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    def as_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "status": self.status,
            "expected": self.expected and self.expected.as_json(),
            "cold_s": self.cold_s,
            "warm_s": self.warm_s,
            "ratio": self.ratio,
            "lookups": self.lookups,
            "hits": self.hits,
            "misses": self.misses,
            "known": list(self.known),
            "findings": [finding.as_json() for finding in self.findings],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The stage's outcome. `findings` holds the first cause first, then the rest in the order of the scenarios."""

    status: Literal["pass", "fail", "not-run"]
    reason: str | None
    scenarios: tuple[ScenarioJudged, ...]
    faults: tuple[FaultJudged, ...]
    findings: tuple[Finding, ...]

    def as_json(self) -> dict[str, object]:
        return {
            "status": self.status,
            "reason": self.reason,
            "scenarios": [scenario.as_json() for scenario in self.scenarios],
            "faults": [fault.as_json() for fault in self.faults],
        }

    def scenario(self, name: str) -> ScenarioJudged | None:
        return next((one for one in self.scenarios if one.name == name), None)


def measurements(seen: Seen, judgement: Judgement) -> dict[str, object]:
    """A smoke record's `measurements`: all that was seen, and `judged` beside it.

    `data/schemas/smoke-measurements.schema.json` describes it.
    """
    return {**seen.as_json(), "judged": judgement.as_json()}


def worst_first(findings: Sequence[Finding], order: Mapping[str, int]) -> tuple[Finding, ...]:
    """Errors, then warnings, then notes; errors by the weight of their reason, else as they came."""
    severities = {"error": 0, "warning": 1, "note": 2}
    return tuple(sorted(findings, key=lambda one: (severities[str(one.severity)], order.get(one.reason, len(order)))))
