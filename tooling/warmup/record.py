"""What a warm-up did, as values that every rank holds alike. Nothing here runs anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tooling.warmup.cache_file import Written
from tooling.warmup.cache_text import CacheState
from tooling.warmup.counts import Counts, total
from tooling.warmup.round_trip import RoundTrip

Phases = Mapping[str, Mapping[str, Counts]]
"""Pass, then operation. Passes, in this order, where they took place: `tune` (in tuning mode; followers of a leader run
it outside), `verify` (outside), `complete` (in tuning mode, if a rank missed), `recheck`, `check 1`, `check 2`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankReport:
    """One rank's part. `seconds` by pass, and `jit_s` of them while FlashInfer compiled, in so many `builds`.

    `waits_s` at each meeting; `written` None where this rank writes no file.
    `tactics` maps keys on disk to `[runner, tactic]`; it is left out of the JSON, which has its digest.
    """

    rank: int
    cache: CacheState
    loaded: int = 0
    phases: Phases = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    jit_s: Mapping[str, float] = field(default_factory=dict)
    builds: Mapping[str, int] = field(default_factory=dict)
    waits_s: Mapping[str, float] = field(default_factory=dict)
    round_trip: RoundTrip = field(default_factory=RoundTrip)
    written: Written | None = None
    digest: str = ""

    @property
    def tuned(self) -> int:
        """Buckets that this rank tuned, of all operations."""
        return sum(total(phase.values()).tuned for phase in self.phases.values())

    @property
    def hits(self) -> int:
        return sum(total(phase.values()).hits for phase in self.phases.values())

    def as_json(self) -> dict[str, object]:
        return {
            "rank": self.rank,
            "cache": self.cache.as_json(),
            "loaded": self.loaded,
            "tuned": self.tuned,
            "hits": self.hits,
            "passes": {
                name: {operation: counts.as_json() for operation, counts in sorted(phase.items())}
                for name, phase in self.phases.items()
            },
            "seconds": dict(self.seconds),
            "jit_s": dict(self.jit_s),
            "builds": dict(self.builds),
            "waits_s": dict(self.waits_s),
            "round_trip": self.round_trip.as_json(),
            "written": self.written and self.written.as_json(),
            "digest": self.digest,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmupRecord:
    """What was done, why, and what came of it; alike on every rank.

    `file` is this rank's cache file or folder, None where the strategy keeps none. `warm`: it was used; else `why_cold`
    is a reason word. `difference` is the first key on which two ranks hold other tactics, "" if there is none.
    """

    strategy: str
    persistent: bool
    rule: int
    why: str
    release: str
    arch: str
    ranks: tuple[RankReport, ...] = ()
    file: str | None = None
    warm: bool = False
    why_cold: str = ""
    skip_ops: tuple[str, ...] = ()
    skip_source: str = ""
    skip_passed: bool = False
    difference: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def loaded(self) -> int:
        return max((rank.loaded for rank in self.ranks), default=0)

    @property
    def tuned(self) -> int:
        return sum(rank.tuned for rank in self.ranks)

    @property
    def jit_s(self) -> float:
        """Seconds that the slowest rank compiled, in all passes."""
        return max((sum(rank.jit_s.values()) for rank in self.ranks), default=0.0)

    @property
    def nothing_to_tune(self) -> bool:
        """Nothing was tuned and nothing loaded: no evidence for or against a cache."""
        return self.tuned == 0 and self.loaded == 0

    @property
    def spread_s(self) -> dict[str, float]:
        """How far apart the ranks came to each meeting: the longest wait less the shortest."""
        steps = list(self.ranks[0].waits_s) if self.ranks else []
        waits = {step: [rank.waits_s.get(step, 0.0) for rank in self.ranks] for step in steps}
        return {step: max(values) - min(values) for step, values in waits.items()}

    def as_json(self) -> dict[str, object]:
        return {
            "strategy": self.strategy,
            "persistent": self.persistent,
            "rule": self.rule,
            "why": self.why,
            "release": self.release,
            "arch": self.arch,
            "file": self.file,
            "warm": self.warm,
            "why_cold": self.why_cold,
            "loaded": self.loaded,
            "tuned": self.tuned,
            "jit_s": self.jit_s,
            "nothing_to_tune": self.nothing_to_tune,
            "skip_ops": list(self.skip_ops),
            "skip_source": self.skip_source,
            "skip_passed": self.skip_passed,
            "difference": self.difference,
            "spread_s": self.spread_s,
            "warnings": list(self.warnings),
            "ranks": [rank.as_json() for rank in self.ranks],
        }
