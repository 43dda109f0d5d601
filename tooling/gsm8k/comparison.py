"""Two runs over the same questions, question by question: flips, McNemar's test, speed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tooling.errors import InputError
from tooling.findings import Finding, Severity
from tooling.gsm8k.config import Config
from tooling.gsm8k.score import Speed, Verdict
from tooling.gsm8k.statistics import ALPHA, mcnemar_exact

MIN_SPEED_S = 10.0
"""A shorter run's speed is mostly its first and last requests."""

LOST = {Verdict.FAILED, Verdict.TIMEOUT, Verdict.NOT_ASKED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """A question that one of the two runs got right: its id and both verdicts."""

    id: str
    before: Verdict
    after: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two runs, paired. Accuracies are over the `paired` questions, to which the server replied in both."""

    paired: int
    unpaired: int
    accuracy_before: float
    accuracy_after: float
    lost: int
    gained: int
    p_value: float
    flips: tuple[Flip, ...]

    @property
    def delta(self) -> float:
        return self.accuracy_after - self.accuracy_before


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What an earlier record says: its verdicts by question, and how fast it was and how it was asked.

    `seconds` is how long its run lasted, `concurrency` how many requests ran at a time; None where it does not say.
    """

    verdicts: Mapping[str, Verdict]
    questions_per_second: float | None
    startup_s: float | None
    conditions: Mapping[str, object]
    seconds: float | None = None
    concurrency: int | None = None


def compare(before: Mapping[str, Verdict], after: Mapping[str, Verdict]) -> Comparison | None:
    """The comparison over the questions that both runs have a reply to; None if there are none."""
    paired = [key for key in after if key in before and before[key] not in LOST and after[key] not in LOST]
    if not paired:
        return None
    right_before = {key for key in paired if before[key] is Verdict.CORRECT}
    right_after = {key for key in paired if after[key] is Verdict.CORRECT}
    lost, gained = len(right_before - right_after), len(right_after - right_before)
    return Comparison(
        paired=len(paired),
        unpaired=len(before.keys() | after.keys()) - len(paired),
        accuracy_before=len(right_before) / len(paired),
        accuracy_after=len(right_after) / len(paired),
        lost=lost,
        gained=gained,
        p_value=mcnemar_exact(lost, gained),
        flips=tuple(
            Flip(id=key, before=before[key], after=after[key]) for key in paired if key in right_before ^ right_after
        ),
    )


def parse_baseline(measurements: Mapping[str, object], *, path: str) -> Baseline:
    """The baseline in another record's measurements.

    Raises:
        InputError: they are not those of a finished evaluation, or it measured nothing.
    """
    try:
        verdicts, run = measurements["verdicts"], measurements["runs"][0]  # type: ignore[index]
        conditions, speed = measurements["conditions"], run["speed"]
        if run["accuracy"] is None:
            raise ValueError(f"it measured no accuracy ({run['reason'] or 'no replies'})")
        config = measurements.get("config", {})
        return Baseline(
            verdicts={str(key): Verdict(value) for key, value in verdicts.items()},  # type: ignore[attr-defined]
            questions_per_second=speed["questions_per_second"],
            startup_s=run["startup_seconds"],
            conditions=dict(conditions),  # type: ignore[call-overload]
            seconds=speed["seconds"],
            concurrency=config.get("concurrency"),  # type: ignore[attr-defined]
        )
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as cause:
        raise InputError(
            f"{path}: is no record of a finished GSM8K evaluation: {type(cause).__name__}: {cause}",
            hint="--baseline takes an evidence/gsm8k-….json of an earlier release",
            reason="BAD_BASELINE",
        ) from cause


def check_conditions(baseline: Baseline, conditions: Mapping[str, object], *, path: str) -> None:
    """Does nothing if the two evaluations ask the same thing.

    Raises:
        InputError: another model, number of shots, endpoint, …: such accuracies do not compare.
    """
    keys = sorted(conditions)
    differ = [key for key in keys if baseline.conditions.get(key) != conditions[key]]
    if differ:
        parts = [f"{key} was {baseline.conditions.get(key)!r} and is {conditions[key]!r}" for key in differ]
        raise InputError(
            f"{path}: the baseline was measured under other conditions: {'; '.join(parts)}",
            hint="evaluate the earlier release again with this configuration",
            reason="BASELINE_MISMATCH",
        )


def check_comparison(comparison: Comparison | None, config: Config, *, warm: bool) -> list[Finding]:
    """Findings on the accuracy of a second run: against a warm cache any change counts, against a baseline a drop.

    A change counts when it is larger than `max_delta` by more than a single question, or significant at 5 %.
    """
    subject, reason = ("the warm cache", "WARM_CACHE_CHANGES_ACCURACY") if warm else ("the baseline", "ACCURACY_DROP")
    if comparison is None:
        detail = f"no question has a reply in both runs, so {subject} was not compared"
        return [Finding(check="gsm8k-comparison", detail=detail, reason="NOT_COMPARED")]
    moved = abs(comparison.lost - comparison.gained)
    large = abs(comparison.delta) > config.max_delta and moved > 1
    significant = comparison.p_value < ALPHA
    if not (large or significant) or (comparison.delta > 0 and not warm):
        return []
    detail = (
        f"accuracy went from {comparison.accuracy_before:.3f} to {comparison.accuracy_after:.3f} against {subject}: "
        f"{comparison.lost} questions lost, {comparison.gained} gained of {comparison.paired} "
        f"(McNemar's exact test: p = {comparison.p_value:.2g})"
    )
    return [Finding(check="gsm8k-comparison", detail=detail, reason=reason, hint="the report lists every flip")]


def check_speed(baseline: Baseline, speed: Speed, config: Config) -> list[Finding]:
    """An error if questions per second fell by more than `max_slowdown`, a note if that cannot be said."""
    before, after = baseline.questions_per_second, speed.questions_per_second
    if not before or not after:
        return [_not_compared("the baseline has no speed to compare with")]
    if baseline.concurrency != config.concurrency:
        detail = f"the baseline asked {baseline.concurrency or 'an unknown number'} at a time, not {config.concurrency}"
        return [_not_compared(detail)]
    shortest = min(baseline.seconds or 0.0, speed.seconds)
    if shortest < MIN_SPEED_S:
        return [_not_compared(f"a run of {shortest:.1f} s is too short; both must last {MIN_SPEED_S:.0f} s")]
    slowdown = 1 - after / before
    if slowdown <= config.max_slowdown:
        return []
    detail = (
        f"{before:.2f} questions/s fell to {after:.2f}, {slowdown:.0%} slower; allowed is {config.max_slowdown:.0%}"
    )
    return [
        Finding(check="gsm8k-speed", detail=detail, reason="SLOWER", hint="same machine? then the release is slower")
    ]


def _not_compared(why: str) -> Finding:
    detail = f"speed was not compared: {why}"
    return Finding(check="gsm8k-speed", detail=detail, severity=Severity.NOTE, reason="NOT_COMPARED")
