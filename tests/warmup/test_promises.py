"""What is promised of every warm-up, each sentence on the real tuner."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.warmup.environments import Ran, Release, newest_release
from tests.warmup.faults import NAP_S

pytestmark = pytest.mark.online
Releases = Callable[[str], Release]
NEWEST = newest_release()
STRATEGIES: dict[str, tuple[str, int, dict[str, Any]]] = {
    "all_ranks": ("0.6.13", 2, {"cache_off": True}),
    "leader_broadcast": ("0.6.13", 2, {}),
    "synchronized": ("0.6.16", 2, {}),
    "managed": (NEWEST, 1, {}),
}


def dummy_runs(ran: Ran) -> list[list[dict[str, Any]]]:
    """Each rank's dummy passes."""
    return [result["record"]["dummy_runs"] for result in ran.results]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_rank_runs_every_pass_at_the_largest_token_count_in_inference_mode(
    releases: Releases, tmp_path: Path, strategy: str
) -> None:
    version, ranks, spec = STRATEGIES[strategy]
    one = {"args": [], "num_tokens": 16, "skip_eplb": True, "is_profile": True, "inference": True}
    for _ in ("cold", "warm"):
        ran = releases(version).run(tmp_path, ranks=ranks, **spec)
        assert ran.record["strategy"] == strategy
        passes = len(ran.record["ranks"][0]["passes"])
        assert passes >= 3
        assert dummy_runs(ran) == [[one] * passes] * ranks


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_path_that_is_told_is_the_one_that_is_used(releases: Releases, tmp_path: Path, strategy: str) -> None:
    version, ranks, spec = STRATEGIES[strategy]
    ran = releases(version).run(tmp_path, ranks=ranks, resolve=True, **spec)
    told = [result["record"]["resolved"] for result in ran.results]
    assert told == [str(result["record"]["file"]) for result in ran.results]
    names = {"all_ranks": "None", "leader_broadcast": "autotune_configs.json", "managed": "managed"}
    assert [Path(path).name for path in told] == [
        names.get(strategy, f"rank-{rank}-of-{ranks}.json") for rank in range(ranks)
    ]


def test_without_anything_to_tune_no_pass_runs(releases: Releases, tmp_path: Path) -> None:
    ran = releases("0.6.13").run(tmp_path, ranks=2, world=False)
    assert dummy_runs(ran) == [[], []]


@pytest.mark.parametrize("version", ["0.6.13", "0.6.16"])
def test_layers_of_another_stage_are_tuned_in_one_further_pass_and_hit_the_next_time(
    releases: Releases, tmp_path: Path, version: str
) -> None:
    """Rank 1 holds a layer that the leader lacks, as a pipeline stage does; stages do not sum."""
    spec = {"ranks": 2, "each": {0: {"labels": ["host_bf16"]}, 1: {"labels": ["host_fp16"]}}, "alone": True}
    spec["parallel"] = {"tensor_parallel_size": 1, "pipeline_parallel_size": 2}
    release = releases(version)
    cold, warm = release.run(tmp_path, **spec), release.run(tmp_path, **spec)
    assert [rank["tuned"] for rank in cold.record["ranks"]] == [5, 5]
    assert cold.passes(0, "tune")["tuned"] == 5
    assert cold.passes(1, "tune")["tuned"] == 0, "the leader tunes alone at first"
    assert [cold.passes(rank, "verify")["misses"] for rank in (0, 1)] == [0, 1]
    assert [cold.passes(rank, "complete")["tuned"] for rank in (0, 1)] == [0, 5]
    assert [cold.passes(rank, "check 2")["misses"] for rank in (0, 1)] == [0, 0]
    assert warm.record["warm"]
    assert warm.record["tuned"] == 0
    for rank in (0, 1):
        assert "complete" not in warm.record["ranks"][rank]["passes"]
        assert warm.passes(rank, "verify") == {**warm.passes(rank, "verify"), "hits": 1, "misses": 0, "fell_back": 0}
    assert warm.record["ranks"][0]["digest"] == warm.record["ranks"][1]["digest"], "both hold the union"


def test_the_skip_set_is_logged_sorted(releases: Releases, tmp_path: Path) -> None:
    wish = {"VLLM_FLASHINFER_AUTOTUNE_SKIP_OPS": "mm_fp8, fp4_gemm,bf16_gemm"}
    (line,) = [text for text in releases("0.6.13").run(tmp_path, environment=wish).record["log"] if "skips" in text]
    assert line.endswith("skips bf16_gemm, fp4_gemm, mm_fp8")
    (line,) = [text for text in releases("0.6.13").run(tmp_path).record["log"] if "skips" in text]
    assert line.endswith("skips nothing")


def test_warnings_reach_the_log(releases: Releases, tmp_path: Path) -> None:
    record = releases("0.6.13").run(tmp_path, environment={"FLASHINFER_WARMUP_TIMEOUT_S": "soon"}).record
    assert record["warnings"]
    assert set(record["warnings"]) <= set(record["log"])


def test_collectives_run_on_a_group_with_the_warm_ups_own_timeout(releases: Releases, tmp_path: Path) -> None:
    """Rank 1 arrives, and then leaves the others alone in the exchange; torch's own group waits for 60 s here."""
    quick = {"FLASHINFER_WARMUP_TIMEOUT_S": "3"}
    ran = releases("0.6.13").run(tmp_path, ranks=2, mercy_s=0.5, environment=quick, fault="absent")
    assert ran.statuses == [0, 137]
    assert ran.results[0]["error"] == "StuckError"
    assert "a rank left during the exchange" in ran.results[0]["message"]


def test_the_record_says_how_far_apart_ranks_came_to_the_barrier(releases: Releases, tmp_path: Path) -> None:
    record = releases("0.6.13").run(tmp_path, ranks=2, cache_off=True, fault="nap-1:host_bf16", alone=True).record
    waits = [rank["waits_s"]["barrier"] for rank in record["ranks"]]
    assert waits[0] >= NAP_S / 2
    assert record["spread_s"]["barrier"] == pytest.approx(max(waits) - min(waits))
    assert record["spread_s"]["barrier"] >= NAP_S / 2


def test_a_warm_up_leaves_no_process_no_thread_and_no_open_file(releases: Releases, tmp_path: Path) -> None:
    """Each makes a process group of its own, and gives it back."""
    for result in releases("0.6.13").run(tmp_path, ranks=2, times=6).results:
        held = result["record"]["held"]
        assert [one["children"] for one in held] == [[]] * 6
        assert held[-1]["threads"] <= held[1]["threads"]
        assert held[-1]["files"] <= held[1]["files"]


def test_a_warm_up_that_fails_gives_back_what_it_took_and_another_try_works(releases: Releases, tmp_path: Path) -> None:
    """Four fail, on both ranks; an engine that catches that may go on, or try again."""
    spec = {"fault": "raise-1:host_bf16", "alone": True, "times": 5, "forgiving": 4}
    ran = releases("0.6.13").run(tmp_path, ranks=2, **spec)
    for result, error in zip(ran.results, ("PeerFailedError", "RuntimeError"), strict=True):
        record = result["record"]
        assert record["failed"] == [error] * 4
        held = record["held"]
        assert held[3]["threads"] <= held[0]["threads"]
        assert held[3]["files"] <= held[0]["files"]
        assert held[3]["children"] == []
        assert record["ranks"][0]["passes"]["check 2"]["host_gemm"]["hits"] == 2
        assert record["ranks"][1]["passes"]["check 2"]["host_gemm"]["hits"] == 2


def test_ranks_that_hang_are_reaped(releases: Releases, tmp_path: Path) -> None:
    release = releases("0.6.13")
    quick = {"FLASHINFER_WARMUP_TIMEOUT_S": "2"}
    ran = release.run(tmp_path, ranks=2, mercy_s=0.5, environment=quick, fault="hang-1:host_bf16", alone=True)
    assert ran.statuses == [0, 137]
    assert children_of(release.process.pid) == []
    assert release.run(tmp_path, ranks=2).record["tuned"] == 10, "nothing of it is in the next one's way"


def children_of(pid: int) -> list[str]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [child for task in tasks for child in (task / "children").read_text().split()]


def test_a_backend_that_one_rank_alone_does_not_know_makes_all_ranks_careful(
    releases: Releases, tmp_path: Path
) -> None:
    each = {0: {"backend": "naive"}, 1: {"backend": "deepep_v9"}}
    ran = releases("0.6.13").run(tmp_path, ranks=2, each=each)
    for result in ran.results:
        record = result["record"]
        assert (record["strategy"], record["rule"], record["persistent"]) == ("all_ranks", 4, False)
        assert [word for word in record["warnings"] if "deepep_v9" in word] == [
            "deepep_v9 is not known; treated as DeepEP"
        ]
    assert list(tmp_path.rglob("*.json")) == []


def test_with_one_rank_an_unknown_backend_is_only_warned_about(releases: Releases, tmp_path: Path) -> None:
    record = releases("0.6.13").run(tmp_path, backend="deepep_v9").record
    assert (record["strategy"], record["tuned"]) == ("leader_broadcast", 10)
    assert record["warnings"] == ["deepep_v9 is not known; with one rank it makes no difference"]


NONSENSE_NOTES = (5, "x", [None], None, {"host_gemm": "many"}, {"host_gemm": -1, "": 1e308})


def test_nonsense_in_a_caches_notes_never_fails_a_start(releases: Releases, tmp_path: Path) -> None:
    release = releases("0.6.13")
    file = Path(release.run(tmp_path).record["file"])
    whole = json.loads(file.read_text())
    for nonsense in NONSENSE_NOTES:
        notes = dict.fromkeys(("warmup_misses", "warmup_entries", "warmup_set"), nonsense)
        file.write_text(json.dumps({**whole, "_metadata": {**whole["_metadata"], **notes}}))
        record = release.run(tmp_path).record
        assert record["ranks"][0]["passes"]["check 1"]["host_gemm"]["hits"] == 2, nonsense
        assert (record["warm"], record["tuned"]) == (True, 0), nonsense
