"""Whether observations have the types that a worker and the warm-up write; contradictions are `consistency`'s."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_args

from tooling.smoke.files_seen import FilesSeen
from tooling.smoke.observations import End, RankSeen, Seen

Shape = type | tuple[type, ...] | Callable[[object], bool]
"""Types, of which only `bool` takes a truth value; or a question."""


def is_seconds(value: object) -> bool:
    """Whether that is a time that can have passed."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def mistyped(rank: RankSeen) -> Iterator[str]:
    """What is of another type than a worker writes, of a rank however it ended."""
    yield from typed({name: getattr(rank, name) for name in _RANK}, _RANK, "it")
    if rank.end not in get_args(End):
        yield f"its end is {rank.end!r}"
    for error in rank.errors:
        yield from typed(error.as_json(), _ERROR, f"errors of {error.label}")


def mistyped_report(report: object) -> Iterator[str]:
    """What is of another type than the warm-up writes in a rank's part of its record."""
    problems = [*typed(report, _REPORT, "report")]
    yield from problems
    if not problems and isinstance(report, Mapping):
        yield from typed(report["round_trip"], _ROUND_TRIP, "report.round_trip")
        yield from typed(report["cache"], {"kind": str}, "report.cache")
        if report["written"] is not None:
            yield from typed(report["written"], {"done": bool}, "report.written")


def mistyped_record(record: object) -> Iterator[str]:
    """What is of another type than the warm-up writes in its record."""
    yield from typed(record, _RECORD, "record")


def mistyped_files(files: FilesSeen) -> Iterator[str]:
    """What is of another type than the watcher writes of the cache root, or is told twice."""
    for when, listed in (("before", files.before), ("after", files.after)):
        for file in listed:
            yield from typed(file.as_json(), _FILE, f"files.{when}")
        paths = [file.path for file in listed]
        if len(set(map(str, paths))) != len(paths):
            yield f"files.{when} names a file twice"
    if files.read is not None and not _are_texts(files.read):
        yield f"files.read is {files.read!r}"


def mistyped_whole(seen: Seen) -> Iterator[str]:
    """What is of another type outside of the scenarios."""
    yield from typed({name: getattr(seen, name) for name in _SEEN}, _SEEN, "it")
    yield from typed({name: getattr(seen.machine, name) for name in _MACHINE}, _MACHINE, "machine")


def typed(value: Any, wanted: Mapping[str, Shape], path: str) -> Iterator[str]:
    """A sentence for each field that is missing or of another shape."""
    if not isinstance(value, Mapping):
        yield f"{path} is {value!r}"
        return
    for name, shape in wanted.items():
        if name not in value:
            yield f"{path} has no {name}"
        elif not _fits(value[name], shape):
            yield f"{path}.{name} is {value[name]!r}"


def _fits(found: object, shape: Shape) -> bool:
    if isinstance(shape, type | tuple):
        return isinstance(found, shape) and (shape is bool or not isinstance(found, bool))
    return shape(found)


def _or_none(shape: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or shape(value)


def _are_texts(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)


def _map_texts(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(one, str) for one in value.values())


def _map_texts_or_none(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(one, str | None) for one in value.values())


def _map_seconds(value: object) -> bool:
    return isinstance(value, Mapping) and all(map(is_seconds, value.values()))


_TEXT_OR_NONE = (str, type(None))
_RANK: Mapping[str, Shape] = {
    "rank": int, "step": str, "why": str, "exit_status": (int, type(None)), "strategy": str, "report": dict,
    "lookups": dict, "tactics_sha256": str, "passed": _or_none(_are_texts), "jit_s": _or_none(is_seconds),
    "tuning_s": _or_none(is_seconds), "device": str, "errors": tuple, "sticky_error": str, "log_tail": str,
    "out_of_memory": _are_texts, "skipped_tactics": _are_texts, "downloads": _are_texts,
}  # fmt: skip
_ERROR: Mapping[str, Shape] = {
    "label": str, "operation": str, "largest": _or_none(is_seconds), "finite": bool, "out": str, "sha256": str,
}  # fmt: skip
_REPORT: Mapping[str, Shape] = {
    "rank": int, "cache": dict, "loaded": is_count, "tuned": is_count, "hits": is_count, "passes": dict,
    "round_trip": dict, "written": (dict, type(None)), "seconds": _map_seconds, "digest": str,
}  # fmt: skip
_ROUND_TRIP: Mapping[str, Shape] = {
    "memory": is_count, "disk": is_count, "lost": is_count, "lost_keys": _are_texts, "other_tactic": _are_texts,
}  # fmt: skip
_RECORD: Mapping[str, Shape] = {
    "strategy": str, "persistent": bool, "rule": int, "release": str, "arch": str, "file": _TEXT_OR_NONE,
    "warm": bool, "why_cold": str, "loaded": is_count, "tuned": is_count, "skip_ops": _are_texts, "skip_source": str,
    "skip_passed": bool, "nothing_to_tune": bool, "difference": str, "spread_s": _map_seconds,
}  # fmt: skip
"""Fields that the checks and the story read, and their types, where a run ended."""
_FILE: Mapping[str, Shape] = {"path": str, "size_bytes": is_count, "sha256": str}
_SEEN: Mapping[str, Shape] = {
    "pinned": _map_texts, "bypasses": _map_texts, "overrides": _map_texts, "jit": dict, "not_covered": _are_texts,
    "took_s": _or_none(is_seconds),
}  # fmt: skip
_MACHINE: Mapping[str, Shape] = {
    "gpus": _are_texts, "arch": str, "driver": _TEXT_OR_NONE, "cuda": _TEXT_OR_NONE, "nvcc": _TEXT_OR_NONE,
    "python": str, "packages": _map_texts_or_none, "api": dict,
}  # fmt: skip
