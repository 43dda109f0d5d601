"""Every strategy on the real tuner of several releases, cold and warm, with ranks as processes over gloo."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.warmup.environments import Ran, Release, newest_release

pytestmark = pytest.mark.online
Releases = Callable[[str], Release]

NEWEST = newest_release()
FULL, SHORT = ("0.6.13", NEWEST), ("0.6.12", "0.6.16")
BUCKETS = 5
"""1, 2, 4, 8 and 16 tokens."""
ENTRIES = 2 * BUCKETS
"""Two layers that differ in the type that comes out."""


def cold_and_warm(release: Release, cache: Path, **spec: Any) -> tuple[Ran, Ran]:
    return release.run(cache, **spec), release.run(cache, **spec)


def files_of(cache: Path) -> list[str]:
    return sorted(
        str(path.relative_to(cache)) for path in cache.rglob("*") if path.is_file() and ".lock" not in path.name
    )


@pytest.mark.parametrize("version", FULL)
@pytest.mark.parametrize("ranks", [1, 2], ids=["one rank", "two ranks"])
def test_all_ranks_tune_anew_each_time_and_leave_no_file(
    releases: Releases, tmp_path: Path, version: str, ranks: int
) -> None:
    cold, warm = cold_and_warm(releases(version), tmp_path, ranks=ranks, cache_off=True)
    for ran in (cold, warm):
        assert ran.record["strategy"] == "all_ranks"
        assert ran.record["file"] is None
        assert [rank["tuned"] for rank in ran.record["ranks"]] == [ENTRIES] * ranks
    assert files_of(tmp_path) == []


@pytest.mark.parametrize(
    ("version", "ranks"), [(version, ranks) for version in FULL for ranks in (1, 2)] + [(FULL[0], 4)]
)
def test_a_leader_tunes_and_every_rank_holds_the_same(
    releases: Releases, tmp_path: Path, version: str, ranks: int
) -> None:
    cold, warm = cold_and_warm(releases(version), tmp_path, ranks=ranks, forced="leader_broadcast")
    assert [rank["tuned"] for rank in cold.record["ranks"]] == [ENTRIES] + [0] * (ranks - 1)
    assert warm.record["warm"]
    assert warm.record["tuned"] == 0
    digests = {rank["digest"] for ran in (cold, warm) for rank in ran.record["ranks"]}
    assert len(digests) == 1
    assert cold.record["difference"] == warm.record["difference"] == ""
    for rank in range(ranks):
        for name in ("verify", "check 1", "check 2"):
            assert warm.passes(rank, name) == {**warm.passes(rank, name), "hits": 2, "misses": 0, "fell_back": 0}
    assert len(files_of(tmp_path)) == 1


@pytest.mark.parametrize("version", ["0.6.16", NEWEST])
def test_synchronized_ranks_choose_alike_and_use_their_files_together(
    releases: Releases, tmp_path: Path, version: str
) -> None:
    cold, warm = cold_and_warm(releases(version), tmp_path, ranks=2)
    assert cold.record["strategy"] == "synchronized"
    assert [rank["tuned"] for rank in cold.record["ranks"]] == [ENTRIES] * 2
    assert cold.record["difference"] == ""
    assert warm.record["warm"]
    assert warm.record["tuned"] == 0
    assert [warm.passes(rank, "verify")["hits"] for rank in (0, 1)] == [2, 2]
    assert [Path(name).name for name in files_of(tmp_path)] == ["rank-0-of-2.json", "rank-1-of-2.json"]


def test_one_rank_uses_the_managed_store(releases: Releases, tmp_path: Path) -> None:
    cold, warm = cold_and_warm(releases(NEWEST), tmp_path)
    assert cold.record["strategy"] == "managed"
    assert cold.record["tuned"] == ENTRIES
    assert (warm.record["warm"], warm.record["loaded"], warm.record["tuned"]) == (True, ENTRIES, 0)
    assert warm.passes(0, "verify")["hits"] == warm.passes(0, "check 2")["hits"] == 2
    names = {Path(name).name for name in files_of(tmp_path)}
    assert "manifest.json" in names


@pytest.mark.parametrize("version", FULL)
def test_without_a_gpu_nothing_is_tuned_cold_or_warm(releases: Releases, tmp_path: Path, version: str) -> None:
    for ran in cold_and_warm(releases(version), tmp_path, ranks=2, world=False):
        assert ran.record["strategy"] == "none"
        assert ran.record["nothing_to_tune"]
        assert ran.record["ranks"] == []
        assert any("nothing is tuned" in warning for warning in ran.record["warnings"])
    assert files_of(tmp_path) == []


@pytest.mark.parametrize(("strategy", "ranks"), [("synchronized", 2), ("managed", 1)])
def test_a_strategy_that_0_6_13_cannot_carry_out_becomes_all_ranks(
    releases: Releases, tmp_path: Path, strategy: str, ranks: int
) -> None:
    for ran in cold_and_warm(releases("0.6.13"), tmp_path, ranks=ranks, forced=strategy):
        assert (ran.record["strategy"], ran.record["persistent"]) == ("all_ranks", False)
        assert [rank["tuned"] for rank in ran.record["ranks"]] == [ENTRIES] * ranks
        assert any("the installed tuner lacks" in warning for warning in ran.record["warnings"])
    assert files_of(tmp_path) == []


def test_two_ranks_never_share_a_managed_store(releases: Releases, tmp_path: Path) -> None:
    ran = releases(NEWEST).run(tmp_path, ranks=2, forced="managed")
    assert {result["error"] for result in ran.results} <= {"DisagreementError", "PeerFailedError"}
    assert any("who writes which file" in result["message"] for result in ran.results)
    assert files_of(tmp_path) == []


@pytest.mark.parametrize("version", SHORT)
@pytest.mark.parametrize("ranks", [1, 2], ids=["one rank", "two ranks"])
def test_the_rule_is_followed_cold_and_warm(releases: Releases, tmp_path: Path, version: str, ranks: int) -> None:
    """The short matrix: what the rule says for the release, and nothing forced."""
    strategy, rule = {
        ("0.6.12", 1): ("all_ranks", 3),
        ("0.6.12", 2): ("all_ranks", 3),
        ("0.6.16", 1): ("leader_broadcast", 7),
        ("0.6.16", 2): ("synchronized", 5),
    }[version, ranks]
    persistent = strategy != "all_ranks"
    cold, warm = cold_and_warm(releases(version), tmp_path, ranks=ranks)
    for ran, tuned in ((cold, ENTRIES), (warm, 0 if persistent else ENTRIES)):
        assert (ran.record["strategy"], ran.record["rule"]) == (strategy, rule)
        assert [rank["tuned"] for rank in ran.record["ranks"]] == [tuned] * ranks
        for rank in range(ranks):
            for name in ("check 1", "check 2"):
                assert ran.passes(rank, name) == {**ran.passes(rank, name), "hits": 2, "misses": 0, "fell_back": 0}
    assert warm.record["warm"] is persistent
    assert bool(files_of(tmp_path)) is persistent


@pytest.mark.parametrize("version", ["0.5.3", "0.6.6"])
def test_a_release_that_writes_no_files_tunes_on_all_ranks(releases: Releases, tmp_path: Path, version: str) -> None:
    """FlashInfer saves and loads from 0.6.7 on."""
    for ran in cold_and_warm(releases(version), tmp_path, ranks=2):
        assert (ran.record["strategy"], ran.record["rule"]) == ("all_ranks", 3)
        assert [rank["tuned"] for rank in ran.record["ranks"]] == [ENTRIES] * 2
        assert [ran.passes(rank, "check 2")["hits"] for rank in (0, 1)] == [2, 2]
    assert files_of(tmp_path) == []


def test_0_6_12_keeps_no_cache_and_would_lose_entries_if_it_were_forced_to(releases: Releases, tmp_path: Path) -> None:
    plain = releases("0.6.12").run(tmp_path, ranks=2)
    assert (plain.record["strategy"], plain.record["rule"]) == ("all_ranks", 3)
    assert files_of(tmp_path) == []
    forced = releases("0.6.12").run(tmp_path, forced="leader_broadcast", noise=0)
    trip = forced.record["ranks"][0]["round_trip"]
    assert (trip["memory"], trip["disk"], trip["lost"]) == (ENTRIES, BUCKETS, BUCKETS)


@pytest.mark.parametrize(
    ("backend", "strategy"),
    [
        ("deepep_high_throughput", "all_ranks"),
        ("deepep_low_latency", "all_ranks"),
        ("deepep_v2", "all_ranks"),
        ("deepep_v9", "all_ranks"),
        ("allgather_reducescatter", "leader_broadcast"),
    ],
)
def test_deepep_ranks_all_tune_without_a_file(releases: Releases, tmp_path: Path, backend: str, strategy: str) -> None:
    ran = releases("0.6.13").run(tmp_path, ranks=2, backend=backend)
    assert ran.record["strategy"] == strategy
    assert (files_of(tmp_path) == []) is (strategy == "all_ranks")
    assert any("deepep_v9" in warning for warning in ran.record["warnings"]) is (backend == "deepep_v9")


def test_an_unknown_deepep_backend_is_refused_under_strict(releases: Releases, tmp_path: Path) -> None:
    ran = releases("0.6.13").run(tmp_path, ranks=2, backend="deepep_v9", strict=True, gpu=True)
    assert {result["error"] for result in ran.results} <= {"UnknownBackendError", "RefusedError"}


def test_a_listener_hears_steps_and_operations(releases: Releases, tmp_path: Path) -> None:
    steps = releases("0.6.13").run(tmp_path, ranks=2).record["steps"]
    for step in ("tune", "host_gemm", "waits at broadcast", "verify", "check 2"):
        assert step in steps


@pytest.mark.parametrize("version", ["0.6.7", NEWEST])
def test_look_ups_are_counted_from_the_first_release_with_a_cache_to_the_newest(
    releases: Releases, tmp_path: Path, version: str
) -> None:
    """In tuning mode, outside of it, on the second pass, and where nothing fits."""
    spec = {"labels": ["host_bf16"], "forced": "leader_broadcast", "count_at": [3, 32]}
    cold, warm = cold_and_warm(releases(version), tmp_path, **spec)
    tuning = {"lookups": BUCKETS + 1, "calls": 1, "hits": 1, "misses": BUCKETS, "fell_back": 0, "tuned": BUCKETS}
    hit = {"lookups": 1, "calls": 1, "hits": 1, "misses": 0, "fell_back": 0, "skipped": 0, "tuned": 0}
    assert cold.passes(0, "tune") == {**tuning, "skipped": 0}
    for ran in (cold, warm):
        for name in ("verify", "check 1", "check 2"):
            assert ran.passes(0, name) == hit
        assert ran.record["counted"]["3"] == hit
        assert ran.record["counted"]["32"] == {**hit, "hits": 0, "misses": 1, "fell_back": 1}


def test_look_ups_between_buckets_hit(releases: Releases, tmp_path: Path) -> None:
    ran = releases("0.6.13").run(tmp_path, count_at=[3, 7, 16, 17])
    assert [ran.record["counted"][size]["hits"] for size in ("3", "7", "16", "17")] == [2, 2, 2, 2]


def test_a_token_count_above_the_buckets_falls_back_and_is_counted(releases: Releases, tmp_path: Path) -> None:
    ran = releases("0.6.13").run(tmp_path, count_at=[32])
    assert ran.record["counted"]["32"] == {**ran.record["counted"]["32"], "hits": 0, "misses": 2, "fell_back": 2}


def test_warm_results_are_as_exact_as_cold_ones(releases: Releases, tmp_path: Path) -> None:
    cold, warm = cold_and_warm(releases("0.6.13"), tmp_path)
    assert cold.record["errors"] == warm.record["errors"]
    assert all(error["finite"] and error["largest"] < 0.01 for error in cold.record["errors"])


def test_the_path_shows_version_and_architecture_and_the_file_its_environment(
    releases: Releases, tmp_path: Path
) -> None:
    ran = releases("0.6.13").run(tmp_path)
    relative = Path(ran.record["file"]).relative_to(tmp_path)
    assert relative.parts[:2] == ("0.6.13", "none")
    assert json.loads(Path(ran.record["file"]).read_text())["_metadata"]["flashinfer_version"] == "0.6.13"
