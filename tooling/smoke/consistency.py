"""Whether observations are whole and agree with themselves: without that, nothing can be judged of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from tooling.smoke.case import OUTSIDE
from tooling.smoke.observations import End, RankSeen, RunSeen, ScenarioSeen, Seen

RANK: Mapping[str, type | tuple[type, ...]] = {
    "rank": int, "step": str, "why": str, "exit_status": (int, type(None)), "strategy": str, "report": dict,
    "lookups": dict, "tactics_sha256": str, "passed": (list, type(None)), "jit_s": (int, float, type(None)),
    "tuning_s": (int, float, type(None)), "device": str, "errors": list, "sticky_error": str, "log_tail": str,
}  # fmt: skip
ERROR: Mapping[str, type | tuple[type, ...]] = {
    "label": str, "operation": str, "largest": (int, float, type(None)), "finite": bool, "out": str, "sha256": str,
}  # fmt: skip
COUNTED = ("calls", "lookups", "hits", "misses", "fell_back", "skipped", "tuned")

REPORT: Mapping[str, type | tuple[type, ...]] = {
    "rank": int, "cache": dict, "loaded": int, "tuned": int, "hits": int, "passes": dict, "round_trip": dict,
    "written": (dict, type(None)),
}  # fmt: skip
ROUND_TRIP: Mapping[str, type | tuple[type, ...]] = {
    "memory": int, "disk": int, "lost": int, "lost_keys": list, "other_tactic": list,
}  # fmt: skip
RECORD: Mapping[str, type | tuple[type, ...]] = {
    "strategy": str, "persistent": bool, "rule": int, "release": str, "arch": str, "file": (str, type(None)),
    "warm": bool, "why_cold": str, "loaded": int, "tuned": int, "skip_ops": list,
    "nothing_to_tune": bool, "difference": str,
}  # fmt: skip
"""Fields that the checks read, and their types, where a run ended."""


def contradictions(scenario: ScenarioSeen) -> tuple[str, ...]:
    """What is missing, of another type, or contradicts itself in the scenario's runs, a sentence each."""
    runs = (("cold", scenario.cold), ("warm", scenario.warm))
    return tuple(f"{name} run: {one}" for name, run in runs if run is not None for one in _in_run(run))


def machine_contradictions(seen: Seen) -> tuple[str, ...]:
    """What is of another type among the versions that are compared."""
    texts = {"machine.packages": seen.machine.packages, "pinned": seen.pinned, "bypasses": seen.bypasses}
    found = [f"{path} is {value!r}" for path, value in texts.items() if not _is_texts(value)]
    return (*found, *_typed(seen.machine.as_json(), {"gpus": list, "arch": str, "api": dict}, "machine"))


def mistyped(rank: RankSeen) -> Iterator[str]:
    """What is of another type than a worker writes, of a rank however it ended."""
    yield from _typed(rank.as_json(), RANK, "it")
    if rank.end not in get_args(End):
        yield f"its end is {rank.end!r}"
    for error in rank.errors:
        yield from _typed(error.as_json(), ERROR, f"errors of {error.label}")


def is_seconds(value: object) -> bool:
    """Whether that is a time that can have passed."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def _in_run(run: RunSeen) -> Iterator[str]:
    problems = [f"rank {rank.rank}: {one}" for rank in run.ranks for one in mistyped(rank)]
    if run.seconds is not None and not is_seconds(run.seconds):
        problems.append(f"seconds is {run.seconds!r}")
    if problems or not run.ended:
        yield from problems
        return
    problems += _typed(run.record, RECORD, "record")
    numbers = [rank.rank for rank in run.ranks]
    if numbers != list(range(len(numbers))):
        problems.append(f"its ranks are numbered {numbers}")
    for rank in run.ranks:
        problems += [f"rank {rank.rank}: {one}" for one in _in_rank(rank)]
    yield from problems
    if not problems:
        yield from _sums(run)


def mistyped_report(report: object) -> Iterator[str]:
    """What is of another type than the warm-up writes in a rank's part of its record."""
    yield from _typed(report, REPORT, "report")


def _in_rank(rank: RankSeen) -> Iterator[str]:
    if rank.exit_status not in {0, None}:
        yield f"it ended with exit status {rank.exit_status}, and is said to have ended well"
    if rank.why:
        yield f"it is said to have ended well, and why is {rank.why!r}"
    problems = [*mistyped_report(rank.report)]
    if not problems:
        problems += _typed(rank.report["round_trip"], ROUND_TRIP, "report.round_trip")
        problems += _counted(rank.report["passes"], "report.passes", outside=OUTSIDE)
    problems += _counted(rank.lookups, "lookups", outside=tuple(rank.lookups))
    problems += [f"lookups at {size!r}, which is no token count" for size in rank.lookups if not size.isdigit()]
    yield from problems
    if problems:
        return
    if rank.report["rank"] != rank.rank:
        yield f"its report is of rank {rank.report['rank']}"
    for name in ("tuned", "hits"):
        total = sum(one[name] for by_operation in rank.report["passes"].values() for one in by_operation.values())
        if total != rank.report[name]:
            yield f"report.{name} is {rank.report[name]}, and its passes come to {total}"


def _sums(run: RunSeen) -> Iterator[str]:
    tuned = sum(rank.report["tuned"] for rank in run.ranks)
    loaded = max(rank.report["loaded"] for rank in run.ranks)
    for name, total in (("tuned", tuned), ("loaded", loaded), ("nothing_to_tune", tuned + loaded == 0)):
        if run.record[name] != total:
            yield f"record.{name} is {run.record[name]}, and its ranks come to {total}"
    for rank in run.ranks:
        if rank.strategy and rank.strategy != run.record["strategy"]:
            yield f"rank {rank.rank} names {rank.strategy} and the record {run.record['strategy']}"


def _counted(places: Any, path: str, *, outside: tuple[str, ...]) -> Iterator[str]:
    """Counts by place and operation: whole, not negative, and adding up; nothing is tuned outside of tuning mode."""
    if not isinstance(places, Mapping):
        yield f"{path} is {places!r}"
        return
    for place, by_operation in places.items():
        if not isinstance(by_operation, Mapping):
            yield f"{path}.{place} is {by_operation!r}"
            continue
        for operation, counts in by_operation.items():
            for problem in _one_count(counts, tuning=place not in outside):
                yield f"{path}.{place}.{operation}: {problem}"


def _one_count(counts: Any, *, tuning: bool) -> Iterator[str]:
    if not isinstance(counts, Mapping) or any(not _is_count(counts.get(name)) for name in COUNTED):
        yield f"{counts!r} is no count"
        return
    if counts["lookups"] != counts["hits"] + counts["misses"]:
        yield f"{counts['lookups']} look-ups, and {counts['hits']} hits and {counts['misses']} misses"
    if counts["fell_back"] > counts["misses"] or counts["fell_back"] + counts["skipped"] > counts["calls"]:
        yield f"{counts['calls']} calls, {counts['fell_back']} fell back and {counts['skipped']} were skipped"
    if not tuning and counts["calls"] > counts["lookups"] + counts["skipped"]:
        yield f"{counts['calls']} calls outside of tuning mode, and {counts['lookups']} look-ups"
    if not tuning and counts["tuned"]:
        yield f"{counts['tuned']} buckets tuned outside of tuning mode"


def _is_texts(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(one, str | None) for one in value.values())


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _typed(value: Any, wanted: Mapping[str, type | tuple[type, ...]], path: str) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"{path} is {value!r}"
        return
    for name, kind in wanted.items():
        found = value.get(name, ...)
        exact = isinstance(found, kind) and (kind is bool or not isinstance(found, bool))
        if found is ... or not exact:
            yield f"{path} has no {name}" if found is ... else f"{path}.{name} is {found!r}"
