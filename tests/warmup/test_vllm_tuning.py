"""The adapter tunes as the vLLM around it does, on the real tuner: its buckets, its further passes, its flag."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.warmup.environments import Ran, Release, newest_release

pytestmark = pytest.mark.online
Releases = Callable[[str], Release]
NEWEST = newest_release()
WORLDS = {
    "leader_broadcast": ("0.6.13", 2),
    "synchronized": ("0.6.16", 2),
    "managed": (NEWEST, 1),
}
TOKENS = 24
"""No bucket of FlashInfer's own: the host GEMM's are 1, 2, 4, 8 and 16, and vLLM's are these and 24."""
OWN, VLLMS = 5, 6
LAYERS = 2


def passes(ran: Ran, rank: int = 0) -> list[dict[str, object]]:
    found: list[dict[str, object]] = ran.results[rank]["record"]["vllm_passes"]
    return found


@pytest.mark.parametrize("strategy", WORLDS)
def test_vllms_own_buckets_are_tuned_rounded_up_and_hit_cold_and_warm(
    releases: Releases, tmp_path: Path, strategy: str
) -> None:
    version, ranks = WORLDS[strategy]
    spec = {"ranks": ranks, "max_tokens": TOKENS, "vllm": {"buckets": True}}
    cold, warm = (releases(version).run(tmp_path, **spec) for _ in range(2))
    assert cold.record["strategy"] == strategy
    tuned = [rank["tuned"] for rank in cold.record["ranks"]]
    assert tuned[0] == LAYERS * VLLMS
    assert (warm.record["warm"], warm.record["tuned"]) == (True, 0)
    for ran in (cold, warm):
        for rank in range(ranks):
            assert ran.passes(rank, "check 2") == {**ran.passes(rank, "check 2"), "hits": LAYERS, "misses": 0}
            assert all(one["random"] for one in passes(ran, rank))


def test_vllms_buckets_have_a_path_of_their_own_and_older_versions_flashinfers(
    releases: Releases, tmp_path: Path
) -> None:
    release = releases("0.6.13")
    newer = release.run(tmp_path, max_tokens=TOKENS, vllm={"buckets": True}).record
    older = release.run(tmp_path, max_tokens=TOKENS, vllm={}).record
    assert older["tuned"] == LAYERS * OWN
    assert newer["file"] != older["file"]
    assert [key for key in json.loads(Path(newer["file"]).read_text()) if f"({TOKENS}, " in key]
    assert not [key for key in json.loads(Path(older["file"]).read_text()) if f"({TOKENS}, " in key]


def test_every_rank_runs_vllms_further_passes_whether_it_tunes_or_not(releases: Releases, tmp_path: Path) -> None:
    """Experts that put off their last step for at most 8 tokens take another way there; 64 is cut to the largest."""
    spec = {"ranks": 2, "max_tokens": 16, "vllm": {"buckets": True, "defer": [8, 64, 8]}}
    for _ in ("cold", "warm"):
        ran = releases("0.6.13").run(tmp_path, **spec)
        for rank in (0, 1):
            number = len(ran.record["ranks"][rank]["passes"])
            assert [one["tokens"] for one in passes(ran, rank)] == [16, 8] * number
        assert ran.passes(1, "check 2")["hits"] == 2 * LAYERS


def test_kernels_that_cannot_be_tuned_are_told_as_0_18_tells_them(releases: Releases, tmp_path: Path) -> None:
    ran = releases("0.6.13").run(tmp_path, ranks=2, vllm={"flag": True})
    for rank, tuned in ((0, 1), (1, 0)):
        assert [one["flag"] for one in passes(ran, rank)] == [one["tuning"] for one in passes(ran, rank)]
        assert sum(bool(one["tuning"]) for one in passes(ran, rank)) == tuned, "the leader tunes, and nobody else"


def test_skipping_holds_inside_of_vllms_buckets(releases: Releases, tmp_path: Path) -> None:
    wish = {"VLLM_FLASHINFER_AUTOTUNE_SKIP_OPS": "host_gemm"}
    for version in ("0.6.13", NEWEST):
        record = releases(version).run(tmp_path, vllm={"buckets": True}, environment=wish).record
        assert (record["tuned"], record["ranks"][0]["passes"]["tune"]["host_gemm"]["skipped"]) == (0, LAYERS)
