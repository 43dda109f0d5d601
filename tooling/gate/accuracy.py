"""What gsm8k records measured, as values to show: accuracy with its interval, flips. Odd shapes give nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tooling.gate.measured import earlier, mapping, number, subject_of, taken
from tooling.gate.values import EvidenceFile, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """One run's accuracy, 0 to 1, with its 95 % interval; null where it did not come to its end."""

    name: str
    accuracy: float | None
    low: float | None = None
    high: float | None = None
    startup_s: float | None = None
    why_not: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """A question that one of two runs got right."""

    id: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two runs over the same questions. `against` says what the run is compared with, `source` where that is from."""

    against: str
    source: str
    paired: int
    accuracy_before: float
    accuracy_after: float
    lost: int
    gained: int
    p_value: float | None
    flips: tuple[Flip, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One gsm8k record: its runs, the release before's (last) if there is a record of it, and the comparisons.

    `floor` is the threshold less the tolerance: below it the stage fails.
    """

    subject: str
    path: str
    evaluations: tuple[Evaluation, ...]
    threshold: float | None
    floor: float | None
    pairs: tuple[Pair, ...]


def scores(verdict: Verdict) -> tuple[Score, ...]:
    """Every gsm8k record that counts."""
    return tuple(_score(file, verdict) for file in taken(verdict, "gsm8k"))


def _score(file: EvidenceFile, verdict: Verdict) -> Score:
    body = _measurements(file)
    older = earlier(verdict, "gsm8k", file.record.subject if file.record else None)
    config = mapping(body.get("config"))
    threshold, tolerance = number(config.get("accuracy_threshold")), number(config.get("tolerance"))
    return Score(
        subject=subject_of(file),
        path=file.path,
        evaluations=(*_evaluations(body), *_before(older)),
        threshold=threshold,
        floor=None if threshold is None else max(0.0, threshold - (tolerance or 0.0)),
        pairs=tuple(
            pair
            for key, against in (("baseline", "the baseline"), ("warm_against_cold", "the cold start"))
            if (pair := _pair(body.get(key), against)) is not None
        ),
    )


def _evaluations(body: Mapping[str, object], *, name: str = "") -> list[Evaluation]:
    return [_evaluation(mapping(run), name) for run in _list(body.get("runs"))]


def _evaluation(run: Mapping[str, object], name: str) -> Evaluation:
    interval = [number(bound) for bound in _list(run.get("interval"))]
    low, high = interval if len(interval) == 2 else (None, None)
    cache = str(run.get("cache"))
    return Evaluation(
        name=name or ("a running server" if cache == "unknown" else f"{cache} cache"),
        accuracy=_fraction(run.get("accuracy")),
        low=_fraction(low),
        high=_fraction(high),
        startup_s=number(run.get("startup_seconds")),
        why_not=": ".join(str(run[key]) for key in ("reason", "detail") if run.get(key)),
    )


def _before(older: EvidenceFile | None) -> list[Evaluation]:
    if older is None or older.record is None:
        return []
    release = older.record.flashinfer_version or "an earlier release"
    return _evaluations(_measurements(older), name=f"{release}, before")[:1]


def _pair(value: object, against: str) -> Pair | None:
    body = mapping(value)
    before, after = _fraction(body.get("accuracy_before")), _fraction(body.get("accuracy_after"))
    lost, gained, paired = (number(body.get(key)) for key in ("lost", "gained", "paired"))
    if before is None or after is None or lost is None or gained is None or paired is None:
        return None
    flips = [mapping(flip) for flip in _list(body.get("flips"))]
    return Pair(
        against=against,
        source=str(body.get("source") or ""),
        paired=int(paired),
        accuracy_before=before,
        accuracy_after=after,
        lost=int(lost),
        gained=int(gained),
        p_value=number(body.get("p_value")),
        flips=tuple(Flip(id=str(flip.get("id")), before=str(flip.get("before")), after=str(flip.get("after")))
                    for flip in flips),
    )  # fmt: skip


def _measurements(file: EvidenceFile) -> Mapping[str, object]:
    return file.record.measurements if file.record else {}


def _fraction(value: object) -> float | None:
    found = number(value)
    return found if found is not None and found <= 1 else None


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else []
