"""The records of the H200 in tests/data/warmup, from which docs/measurements.md tells: whole, and saying what is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tooling.capabilities.gating import Strategy, World, gate
from tooling.warmup.counts import Counts
from tooling.warmup.runtime import load_row

FOLDER = Path(__file__).resolve().parents[1] / "data" / "warmup"
RECORDS = {path.stem.removeprefix("h200-"): json.loads(path.read_text()) for path in sorted(FOLDER.glob("h200-*.json"))}
WHOLE = ("0.6.12", "0.6.13", "0.7.0.post1")
LABELS = {"bf16_cudnn_bf16", "bf16_cudnn_fp16", "fp8_cublas_bf16", "fp8_cublas_fp16"}
PAIRS = [(release, name) for release in WHOLE for name in RECORDS[release]["runs"] if name[0].isdigit()]
"""A cold start and a warm one each: `1 rule`, `2 rule`, and strategies that were forced."""
RANK = {"rank", "cache", "loaded", "tuned", "hits", "passes", "seconds", "waits_s", "round_trip", "written", "digest"}
LOSSY = "0.6.12"
"""Keys on disk lack the runner's parameters."""


def starts(release: str, name: str) -> list[dict[str, Any]]:
    return [RECORDS[release]["runs"][name][start] for start in ("cold", "warm")]


KEPT = [pair for pair in PAIRS if pair[0] != LOSSY and starts(*pair)[1]["record"]["persistent"]]
"""Those with a cache."""


def test_every_record_is_read_here() -> None:
    assert set(RECORDS) == {*WHOLE, "0.7.0.post1-tuning-mode"}
    assert len(PAIRS) >= 10
    assert len(KEPT) >= 6


@pytest.mark.parametrize("release", RECORDS)
def test_a_record_says_where_and_when_it_was_measured(release: str) -> None:
    machine = RECORDS[release]["machine"]
    assert machine["packages"]["flashinfer-python"] == release.split("-", maxsplit=1)[0]
    assert "H200" in machine["gpu"]
    assert {"torch", "apache-tvm-ffi", "nvidia-cudnn-frontend"} <= set(machine["packages"])
    assert RECORDS[release]["measured"]
    assert RECORDS[release].get("not_run", []) == []


@pytest.mark.parametrize(("release", "name"), PAIRS)
def test_starts_are_whole_and_count_what_they_say(release: str, name: str) -> None:
    for start in starts(release, name):
        record = start["record"]
        assert (record["release"], record["arch"], len(record["ranks"])) == (release, "sm90", int(name[0]))
        assert record["tuned"] == sum(rank["tuned"] for rank in record["ranks"])
        for rank in record["ranks"]:
            assert set(rank) >= RANK
            for phase in rank["passes"].values():
                for counts in phase.values():
                    read = Counts.from_json(counts)
                    assert read.lookups == counts["lookups"]
                    assert read.fell_back <= read.misses


@pytest.mark.parametrize(("release", "name"), PAIRS)
def test_the_strategy_is_the_rules_or_the_one_that_was_forced(release: str, name: str) -> None:
    ranks, kind = int(name[0]), name.split(" ", 1)[1]
    row = load_row(release)
    assert row is not None
    expected = gate(row.facts, World(ranks=ranks)).strategy if kind == "rule" else Strategy(kind)
    assert {start["record"]["strategy"] for start in starts(release, name)} == {str(expected)}


@pytest.mark.parametrize(("release", "name"), PAIRS)
def test_a_warm_start_tunes_nothing_and_one_without_a_cache_all(release: str, name: str) -> None:
    cold, warm = (start["record"] for start in starts(release, name))
    assert not cold["warm"]
    assert cold["tuned"] > 0
    if cold["strategy"] == "all_ranks":
        assert (warm["warm"], warm["loaded"], warm["tuned"]) == (False, 0, cold["tuned"])
    else:
        assert (warm["warm"], warm["tuned"]) == (True, 0)
        assert warm["loaded"] > 0


@pytest.mark.parametrize(("release", "name"), KEPT)
def test_a_warm_start_from_a_cache_hits_twice(release: str, name: str) -> None:
    warm = starts(release, name)[1]["record"]
    for rank in warm["ranks"]:
        assert rank["round_trip"]["lost"] == 0
        if warm["strategy"] == "synchronized":
            continue  # tunes no second round; what it misses is noted in its files
        for number in (1, 2):
            for counts in rank["passes"][f"check {number}"].values():
                assert (counts["misses"], counts["fell_back"]) == (0, 0)


@pytest.mark.parametrize(("release", "name"), PAIRS)
def test_warm_results_equal_cold_ones_and_are_near_float32(release: str, name: str) -> None:
    cold, warm = starts(release, name)
    assert RECORDS[release]["runs"][name]["difference"] == dict.fromkeys(LABELS, True)
    assert cold["digests"] == warm["digests"]
    for start in (cold, warm):
        assert {error["label"] for error in start["errors"]} == LABELS
        assert all(error["finite"] and error["largest"] < 0.01 for error in start["errors"])
        assert start["sticky_error"] == ""


@pytest.mark.parametrize("name", ["1 leader_broadcast", "2 leader_broadcast"])
def test_0_6_12_loses_seven_of_28_entries_when_a_cache_is_forced_on_it(name: str) -> None:
    trip = starts(LOSSY, name)[0]["record"]["ranks"][0]["round_trip"]
    assert (trip["memory"], trip["disk"], trip["lost"]) == (28, 21, 7)
    assert trip["other_tactic"]


@pytest.mark.parametrize("release", WHOLE)
def test_a_warm_start_costs_little_over_loading_the_file_directly(release: str) -> None:
    """At most 5 % or 20 ms."""
    overhead = RECORDS[release]["runs"]["overhead"]
    assert overhead["share"] <= 0.05 or overhead["gap_s"] <= 0.020
