"""How long starts took, cold and warm, now and with the release before, as values to show. Odd shapes give nothing."""

from __future__ import annotations

from dataclasses import dataclass

from tooling.gate.measured import earlier, number, read_seen, subject_of, taken, why_not
from tooling.gate.values import EvidenceFile, Verdict
from tooling.smoke.observations import RunSeen, ScenarioSeen, Seen

LONGER, LONGER_S = 1.5, 0.5
"""Times as long, and seconds: two runs of one release on one H200 differ by less (tests/data/smoke has such pairs)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """What a start took in seconds, and the part of it that went into compiling: no cache of tactics spares that."""

    seconds: float
    compiling_s: float = 0.0

    @property
    def own_s(self) -> float:
        return max(0.0, self.seconds - self.compiling_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """A scenario's start-up, cold and warm, and of the release before; null is "not measured"."""

    scenario: str
    cold: Took | None
    warm: Took | None
    cold_before: Took | None = None
    warm_before: Took | None = None
    why_not: str = ""

    @property
    def longest_s(self) -> float:
        found = (self.cold, self.warm, self.cold_before, self.warm_before)
        return max((one.seconds for one in found if one is not None), default=0)

    @property
    def longer(self) -> tuple[tuple[str, float, float], ...]:
        """`cold` or `warm`, the seconds now and before, where it takes clearly longer, compiling left out."""
        pairs = (("cold", self.cold, self.cold_before), ("warm", self.warm, self.warm_before))
        told = ((kind, now.own_s, before.own_s) for kind, now, before in pairs if now and before)
        return tuple(one for one in told if one[1] >= LONGER * one[2] and one[1] - one[2] >= LONGER_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartUp:
    """One smoke record's times. `gpu`, `gpu_before` name the machines; `release_before` null: no earlier record."""

    subject: str
    path: str
    gpu: str
    times: tuple[Times, ...]
    release_before: str | None = None
    gpu_before: str = ""

    @property
    def compared(self) -> str:
        """Which starts take clearly longer than with the release before; "" where that ran on another GPU, or not."""
        if self.release_before is None or self.gpu != self.gpu_before:
            return ""
        longer = [
            f"{times.scenario} {kind} {now:.1f} s (was {before:.1f} s)"
            for times in self.times
            for kind, now, before in times.longer
        ]
        if not longer:
            return f"No start takes clearly longer than with {self.release_before}, compiling left out."
        return f"Longer than with {self.release_before}, compiling left out: {', '.join(longer)}."


def start_ups(verdict: Verdict) -> tuple[StartUp, ...]:
    """The times of every smoke record that counts and can be read."""
    return tuple(one for file in taken(verdict, "smoke") if (one := _start_up(file, verdict)) is not None)


def _start_up(file: EvidenceFile, verdict: Verdict) -> StartUp | None:
    seen = read_seen(file)
    if seen is None:
        return None
    older = earlier(verdict, "smoke", file.record.subject if file.record else None)
    before = read_seen(older)
    return StartUp(
        subject=subject_of(file),
        path=file.path,
        gpu=_gpus(seen),
        times=tuple(_times(one, before.scenario(one.name) if before else None) for one in seen.scenarios),
        release_before=(older.record.flashinfer_version or "an earlier release")
        if before and older and older.record
        else None,
        gpu_before=_gpus(before) if before else "",
    )


def _times(now: ScenarioSeen, before: ScenarioSeen | None) -> Times:
    return Times(
        scenario=str(now.name),
        cold=_took(now.cold),
        warm=_took(now.warm),
        cold_before=_took(before.cold) if before else None,
        warm_before=_took(before.warm) if before else None,
        why_not=why_not(now),
    )


def _took(run: RunSeen | None) -> Took | None:
    """A run's time, if all its ranks came to their end: what was killed has no start-up time."""
    seconds = number(run.seconds) if run is not None and run.ended else None
    if run is None or seconds is None:
        return None
    return Took(seconds=seconds, compiling_s=max(number(rank.jit_s) or 0.0 for rank in run.ranks))


def _gpus(seen: Seen) -> str:
    names = [str(name) for name in seen.machine.gpus]
    return ", ".join(
        f"{names.count(name)} x {name}" if names.count(name) > 1 else name for name in dict.fromkeys(names)
    )
