"""Every single value of the observations is altered in turn: the verdict turns, or the value is known to be for people."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.smoke import test_gpu_records as records
from tests.smoke.samples import judge, seen_for
from tooling.smoke.judgement import Judgement
from tooling.smoke.observations import Seen

FOR_PEOPLE = {
    "machine": {
        "driver",
        "cuda",
        "nvcc",
        "python",
        "packages.torch",
        "packages.flashinfer-cubin",
        "packages.nvidia-",
        "packages.triton",
    },
    "files": {"files.before.size_bytes", "files.after.size_bytes"},
    "whole run": {
        "took_s",
        "jit.fresh",
        "jit.folder",
        "jit.image",
        "not_covered",
        "overrides",
        "pinned.flashinfer-cubin",
    },
    "record": {"why", "warnings", "spread_s.", "record.jit_s"},
    "rank": {"step", "log_tail"},
    "report": {
        "waits_s.",
        "jit_s.",
        "builds.",
        "cache.detail",
        "cache.digest",
        "cache.entries",
        "cache.fields",
        "cache.reason",
        "cache.wildcards",
        "written.detail",
        "written.lock",
        "written.reason",
        "round_trip.lost_keys",
    },
}
"""What is told in a record and judged by nobody, by where it stands."""

ONLY_WHERE_A_CACHE_IS_KEPT = {
    "errors.sha256", "report.cache.kind", "report.round_trip.disk", "report.round_trip.memory", "report.written.done",
    "report.written", "record.why_cold", "seconds", "files.read", "errors.largest", "report.round_trip.lost",
    "report.round_trip.other_tactic", "report.loaded", "tactics_sha256", "record.difference",
}  # fmt: skip
"""Judged where a cache persists, without meaning where none does; which run and strategy asks decides."""

IN_TUNING_MODE = ("passes.tune.", "passes.complete.")
"""Counts in tuning mode: only what was tuned is judged, and that the counts are possible."""


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    if isinstance(value, dict) and value:
        for key in value:
            yield from leaves(value[key], (*path, key))
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from leaves(item, (*path, index))
    else:
        yield path, value


def others(value: Any) -> list[Any]:
    """Values that are not that one."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [value + 1, value * 1000 + 50, 0]
    if isinstance(value, str):
        return [f"{value}x", ""]
    return [["x"]] if value == [] else [{"x": 1}] if value == {} else ["x"]


def told(judged: Judgement) -> object:
    return judged.status, judged.reason, [finding.reason for finding in judged.findings]


def quiet_fields(seen: Seen, judged: Callable[[Seen], Judgement]) -> set[str]:
    """Fields of which no alteration changes what is told; one that cannot be read back is refused, which is as good.

    Scenarios' own names are left as they are: they say which others were asked for.
    """
    text, base, quiet = json.dumps(seen.as_json()), told(judged(seen)), set()
    for path, value in leaves(json.loads(text)):
        if path[-1] == "name":
            continue
        for other in others(value):
            if other == value:
                continue
            body = json.loads(text)
            place = body
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = other
            try:
                changed = Seen.from_json(body)
            except (TypeError, ValueError, KeyError, AttributeError):
                break
            if changed != seen and told(judged(changed)) != base:
                break
        else:
            quiet.add(".".join(str(key) for key in path if not isinstance(key, int)))
    return quiet


def is_for_people(field: str) -> bool:
    if field.startswith("scenarios."):
        field = field.removeprefix("scenarios.cold.").removeprefix("scenarios.warm.")
    names = {name for group in FOR_PEOPLE.values() for name in group} | ONLY_WHERE_A_CACHE_IS_KEPT
    short = field.removeprefix("ranks.").removeprefix("report.").removeprefix("record.").removeprefix("machine.")
    return any(
        candidate in names or any(name.endswith((".", "-")) and candidate.startswith(name) for name in names)
        for candidate in (field, short, field.removeprefix("ranks."))
    ) or short.startswith(IN_TUNING_MODE)


@pytest.mark.parametrize(
    ("release", "name"),
    [("0.6.12", "one-rank"), ("0.6.13", "one-rank"), ("0.6.13", "foreign"), ("0.7.0.post1", "two-ranks")],
)
def test_every_value_turns_what_is_told_or_is_for_people(release: str, name: str) -> None:
    fields = quiet_fields(seen_for(release, names=(name,)), lambda seen: judge(seen, release, names=(name,)))
    assert sorted(field for field in fields if not is_for_people(field)) == []


@pytest.mark.parametrize(("run", "name"), [("0.6.12", "foreign"), ("0.6.13", "one-rank"), ("0.7.0.post1", "two-ranks")])
def test_so_it_is_with_records_of_a_gpu(run: str, name: str) -> None:
    whole = records.seen_of(run)
    seen = replace(whole, scenarios=(records.scenario_of(run, name),))
    fields = quiet_fields(seen, lambda changed: records.judge(changed, run))
    assert sorted(field for field in fields if not is_for_people(field)) == []
