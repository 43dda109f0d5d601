"""Whether one run's score is valid and high enough, and how much its gate can see."""

from __future__ import annotations

from dataclasses import dataclass

from tooling.findings import Finding, Severity
from tooling.gsm8k.config import LOOSE_TOLERANCE, Config
from tooling.gsm8k.score import Counts
from tooling.gsm8k.statistics import (
    Interval,
    detectable_drop,
    distance_in_sigmas,
    gate_detectable_drop,
    wilson,
)

CHECK = "gsm8k-score"


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """What the number of questions allows to say; shares of 1, None where nothing can be said."""

    interval: Interval
    detectable_drop: float | None
    gate_detectable_drop: float | None
    sigmas_above_floor: float | None


def measure_precision(counts: Counts, config: Config) -> Precision | None:
    """The precision of a run's accuracy, or None without replies."""
    accuracy, total = counts.accuracy, counts.replied
    if accuracy is None:
        return None
    return Precision(
        interval=wilson(counts.correct, total),
        detectable_drop=detectable_drop(accuracy, total),
        gate_detectable_drop=gate_detectable_drop(accuracy, config.floor, total),
        sigmas_above_floor=distance_in_sigmas(accuracy, config.floor, total),
    )


def check_score(counts: Counts, config: Config) -> list[Finding]:
    """Findings on one finished run: first whether it is valid at all, then its accuracy, then its gate."""
    invalid = _check_valid(counts, config)
    precision = measure_precision(counts, config)
    accuracy = counts.accuracy
    if invalid or precision is None or accuracy is None:
        return invalid
    if accuracy < config.floor:
        return [_below(accuracy, precision, config)]
    return [*_check_gate(precision), *_check_tolerated(accuracy, config)]


def allowed_lost(config: Config, total: int) -> int:
    """How many requests may fail or time out before the result is invalid."""
    return int(config.max_failed_rate * total + 1e-9)


def _check_valid(counts: Counts, config: Config) -> list[Finding]:
    if counts.lost > allowed_lost(config, counts.total):
        detail = f"{counts.lost} of {counts.total} requests brought no reply; allowed is {config.max_failed_rate:.1%}"
        return [Finding(check=CHECK, detail=detail, reason="EVAL_ABORTED")]
    if counts.replied == 0:
        return [Finding(check=CHECK, detail="no question has a reply", reason="NO_VALID_RESULT")]
    without = counts.unparsable + counts.empty
    if without / counts.replied > config.max_unparsable_rate:
        detail = (
            f"{without} of {counts.replied} replies hold no number ({counts.empty} of them are empty); "
            f"allowed is {config.max_unparsable_rate:.1%}"
        )
        return [Finding(check=CHECK, detail=detail, reason="NO_VALID_RESULT", hint="see the replies in the JSONL file")]
    return []


def _below(accuracy: float, precision: Precision, config: Config) -> Finding:
    detail = (
        f"accuracy {accuracy:.3f} is below {config.floor:.3f} "
        f"(accuracy_threshold {config.accuracy_threshold:g} less tolerance {config.tolerance:g})"
        f"{_sigmas(precision)}"
    )
    return Finding(check=CHECK, detail=detail, reason="BELOW_THRESHOLD")


def _sigmas(precision: Precision) -> str:
    distance = precision.sigmas_above_floor
    return "" if distance is None else f", {abs(distance):.1f} standard errors away"


def _check_gate(precision: Precision) -> list[Finding]:
    drop = precision.gate_detectable_drop
    if drop is not None and drop <= LOOSE_TOLERANCE:
        return []
    seen = "no drop at all" if drop is None else f"only a drop of {100 * drop:.1f} points or more"
    detail = f"threshold, tolerance and number of questions make a gate that catches {seen} (at 80 % power)"
    hint = "set accuracy_threshold to what this model reaches, tolerance below 0.05, and ask more questions"
    return [Finding(check=CHECK, detail=detail, severity=Severity.WARNING, reason="LOOSE_GATE", hint=hint)]


def _check_tolerated(accuracy: float, config: Config) -> list[Finding]:
    if accuracy >= config.accuracy_threshold:
        return []
    detail = f"accuracy {accuracy:.3f} is below accuracy_threshold {config.accuracy_threshold:g}, within its tolerance"
    return [Finding(check=CHECK, detail=detail, severity=Severity.NOTE, reason="WITHIN_TOLERANCE")]
