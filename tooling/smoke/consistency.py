"""Whether observations are whole and agree with themselves: without that, nothing can be judged of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tooling.smoke.case import OUTSIDE
from tooling.smoke.observations import ErrorSeen, RankSeen, RunSeen, ScenarioSeen, Seen
from tooling.smoke.shapes import (
    is_count,
    is_seconds,
    mistyped,
    mistyped_files,
    mistyped_record,
    mistyped_report,
    mistyped_whole,
    typed,
)

COUNTED = ("calls", "lookups", "hits", "misses", "fell_back", "skipped", "tuned")

OUT_TYPES = {"bf16": "bfloat16", "fp16": "float16"}
"""Endings of the reference runner's labels, and the types that come out."""

ROUNDING_S = 0.01
"""How far sums of times may be from the whole that they are parts of."""


def contradictions(scenario: ScenarioSeen) -> tuple[str, ...]:
    """What is missing, of another type, or contradicts itself in the scenario's runs, a sentence each."""
    runs = (("cold", scenario.cold), ("warm", scenario.warm))
    found = typed({"not_run": scenario.not_run}, {"not_run": str}, "it")
    return (*found, *(f"{name} run: {one}" for name, run in runs if run is not None for one in _in_run(run)))


def machine_contradictions(seen: Seen) -> tuple[str, ...]:
    """What is of another type beside the scenarios, or contradicts what is told of those."""
    found = tuple(mistyped_whole(seen))
    times = [run.seconds for one in seen.scenarios for run in (one.cold, one.warm) if run and is_seconds(run.seconds)]
    if found or seen.took_s is None or sum(filter(None, times)) <= seen.took_s + ROUNDING_S:
        return found
    return (f"the warm-ups took {sum(filter(None, times)):.1f} s, and all of the run {seen.took_s:.1f} s",)


def _in_run(run: RunSeen) -> Iterator[str]:
    problems = [f"rank {rank.rank}: {one}" for rank in run.ranks for one in mistyped(rank)]
    problems += mistyped_files(run.files)
    if run.seconds is not None and not is_seconds(run.seconds):
        problems.append(f"seconds is {run.seconds!r}")
    if problems or not run.ended:
        yield from problems
        return
    problems += [*mistyped_record(run.record), *_of_an_ended_run(run)]
    for rank in run.ranks:
        problems += [f"rank {rank.rank}: {one}" for one in _in_rank(rank)]
    yield from problems
    if not problems:
        yield from _sums(run)
        yield from _times(run)


def _of_an_ended_run(run: RunSeen) -> Iterator[str]:
    """What every run has whose ranks all wrote their answer."""
    numbers = [rank.rank for rank in run.ranks]
    if numbers != list(range(len(numbers))):
        yield f"its ranks are numbered {numbers}"
    if run.seconds is None:
        yield "it ended and was not timed"
    if run.files.read is None:
        yield "it ended, and nobody says which files it read"


def _in_rank(rank: RankSeen) -> Iterator[str]:
    if rank.exit_status != 0:
        yield f"it ended with exit status {rank.exit_status}, and is said to have ended well"
    if rank.why:
        yield f"it is said to have ended well, and why is {rank.why!r}"
    problems = [*mistyped_report(rank.report)]
    if not problems:
        problems += _counted(rank.report["passes"], "report.passes", outside=OUTSIDE)
    problems += _counted(rank.lookups, "lookups", outside=tuple(rank.lookups))
    problems += [f"lookups at {size!r}, which is no token count" for size in rank.lookups if not size.isdigit()]
    yield from problems
    if problems:
        return
    yield from _in_report(rank)
    yield from _in_errors(rank)


def _in_report(rank: RankSeen) -> Iterator[str]:
    report = rank.report
    if report["rank"] != rank.rank:
        yield f"its report is of rank {report['rank']}"
    for name in ("tuned", "hits"):
        total = sum(one[name] for by_operation in report["passes"].values() for one in by_operation.values())
        if total != report[name]:
            yield f"report.{name} is {report[name]}, and its passes come to {total}"
    if report["digest"] != rank.tactics_sha256:
        yield "report.digest and tactics_sha256 are two"
    if set(report["seconds"]) != set(report["passes"]):
        yield "report.seconds is of other passes than report.passes"
    trip = report["round_trip"]
    if trip["memory"] > trip["disk"] + trip["lost"]:
        yield f"{trip['memory']} entries in memory, {trip['disk']} on disk, and {trip['lost']} were lost"


def _in_errors(rank: RankSeen) -> Iterator[str]:
    labels = [error.label for error in rank.errors]
    if len(set(labels)) != len(labels):
        yield "errors name a label twice"
    for error in rank.errors:
        if error.out and error.out != out_type(error, error.out):
            yield f"errors of {error.label}: {error.out} came out"


def out_type(error: ErrorSeen, default: str = "") -> str:
    """The type that the label names, the default where it names none."""
    return OUT_TYPES.get(error.label.rsplit("_", 1)[-1], default)


def _sums(run: RunSeen) -> Iterator[str]:
    tuned = sum(rank.report["tuned"] for rank in run.ranks)
    loaded = max(rank.report["loaded"] for rank in run.ranks)
    for name, total in (("tuned", tuned), ("loaded", loaded), ("nothing_to_tune", tuned + loaded == 0)):
        if run.record[name] != total:
            yield f"record.{name} is {run.record[name]}, and its ranks come to {total}"
    for rank in run.ranks:
        if rank.strategy != run.record["strategy"]:
            yield f"rank {rank.rank} names {rank.strategy or 'no strategy'} and the record {run.record['strategy']}"
    if len(run.ranks) == 1 and run.record["difference"]:
        yield "it has one rank, and ranks hold different tactics"
    if len(run.ranks) > 1 and "barrier" not in run.record["spread_s"]:
        yield "record.spread_s does not say how far apart the ranks were at the barrier"


def _times(run: RunSeen) -> Iterator[str]:
    """No part of a warm-up takes longer than the slowest rank's whole."""
    whole = (run.seconds or 0.0) + ROUNDING_S
    for rank in run.ranks:
        in_passes = sum(rank.report["seconds"].values())
        if in_passes > whole:
            yield f"rank {rank.rank}: its passes took {in_passes:.2f} s, and the warm-up {run.seconds:.2f} s"
        compiling, tuning = rank.jit_s or 0.0, rank.tuning_s or 0.0
        if compiling + tuning > whole:
            yield f"rank {rank.rank}: {compiling + tuning:.2f} s compiling and tuning in {run.seconds:.2f} s"


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
    if not isinstance(counts, Mapping) or any(not is_count(counts.get(name)) for name in COUNTED):
        yield f"{counts!r} is no count"
        return
    if counts["lookups"] != counts["hits"] + counts["misses"]:
        yield f"{counts['lookups']} look-ups, and {counts['hits']} hits and {counts['misses']} misses"
    if counts["fell_back"] > counts["misses"] or counts["fell_back"] + counts["skipped"] > counts["calls"]:
        yield f"{counts['calls']} calls, {counts['fell_back']} fell back and {counts['skipped']} were skipped"
    if not tuning and (
        counts["calls"] > counts["lookups"] + counts["skipped"] or bool(counts["lookups"]) > counts["calls"]
    ):
        yield f"{counts['calls']} calls outside of tuning mode, and {counts['lookups']} look-ups"
    if not tuning and counts["tuned"]:
        yield f"{counts['tuned']} buckets tuned outside of tuning mode"
