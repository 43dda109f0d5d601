"""One scenario as the checks see it: what is expected beside what was seen, and how a finding about it is worded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tooling.capabilities.gating import Strategy
from tooling.findings import Finding, Severity
from tooling.smoke.expectations import Expected
from tooling.smoke.observations import RankSeen, RunSeen, ScenarioSeen

OUTSIDE = ("verify", "recheck", "check 1", "check 2")
"""Passes of the warm-up outside of tuning mode, after tuning or loading: what is tuned must be hit there."""
CHECKS = ("check 1", "check 2")

ENDS = {
    "error": "its warm-up raised",
    "died": "died",
    "hung": "made no progress and was killed",
    "not-started": "never came to life",
}
"""What is said of a rank that did not end well."""

Counts = Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A scenario that took place, at least in part."""

    expected: Expected
    seen: ScenarioSeen

    @property
    def name(self) -> str:
        return self.seen.name

    @property
    def runs(self) -> tuple[tuple[str, RunSeen], ...]:
        """The runs that took place, by name."""
        both = (("cold", self.seen.cold), ("warm", self.seen.warm))
        return tuple((name, run) for name, run in both if run is not None)

    @property
    def ended_runs(self) -> tuple[tuple[str, RunSeen], ...]:
        """The runs whose ranks all wrote their answer: only these are evidence."""
        return tuple((name, run) for name, run in self.runs if run.ended)

    @property
    def left_out(self) -> frozenset[str]:
        """Operations that FlashInfer is told to skip; where it takes no such argument, none."""
        return frozenset(self.expected.passed or ())

    def finding(
        self,
        check: str,
        reason: str,
        detail: str,
        *,
        run: str = "",
        rank: int | None = None,
        severity: Severity = Severity.ERROR,
        hint: str = "",
    ) -> Finding:
        """A finding that says where: scenario, run and rank."""
        place = self.name + (f", {run} run" if run else "") + (f", rank {rank}" if rank is not None else "")
        return Finding(check=check, reason=reason, detail=f"{place}: {detail}", severity=severity, hint=hint)


def passes(rank: RankSeen) -> Mapping[str, Mapping[str, Counts]]:
    """The counts of the warm-up's passes, by pass and operation."""
    found: Mapping[str, Mapping[str, Counts]] = rank.report.get("passes", {})
    return found


def tuned(rank: RankSeen) -> dict[str, int]:
    """Buckets tuned, by operation; operations that were called and not tuned have 0."""
    totals: dict[str, int] = {}
    for by_operation in passes(rank).values():
        for operation, counts in by_operation.items():
            totals[operation] = totals.get(operation, 0) + counts["tuned"]
    return totals


def called(rank: RankSeen) -> frozenset[str]:
    """The operations that the warm-up's passes called."""
    return frozenset(
        name for by_operation in passes(rank).values() for name, one in by_operation.items() if one["calls"]
    )


def looked_up(rank: RankSeen) -> Iterator[tuple[str, str, Counts]]:
    """Every count outside of tuning mode: the pass or token count, the operation, and the counts."""
    for name in OUTSIDE:
        for operation, counts in sorted(passes(rank).get(name, {}).items()):
            yield name, operation, counts
    for size in sorted(rank.lookups, key=lambda text: (len(text), text)):
        for operation, counts in sorted(rank.lookups[size].items()):
            yield size, operation, counts


def is_bucket(size: str) -> bool:
    """Whether FlashInfer tunes for that token count: its own buckets are powers of two."""
    count = int(size) if size.isdigit() else 0
    return count > 0 and count & (count - 1) == 0


def was_warm(run: RunSeen) -> bool:
    """Whether the warm-up says that it used what it found; else it tuned."""
    return run.record.get("warm") is True


def enters_tuning(rank: RankSeen, strategy: Strategy) -> bool:
    """Whether that rank called FlashInfer's `autotune`, by the passes that it went through."""
    names = set(passes(rank))
    if strategy is Strategy.LEADER_BROADCAST:
        return "complete" in names or ("tune" in names and rank.rank == 0)
    return "tune" in names or (strategy is Strategy.MANAGED and "verify" in names)


def text(value: Any) -> str:
    """A value of either side of a difference, in one spelling: lists sorted."""
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(sorted(map(str, value))) or "none"
    return "nothing" if value is None or value == "" else str(value)
