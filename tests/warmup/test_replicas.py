"""Replicas of one model, in process groups or processes of their own, that come to the same paths: at once and in turn."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.warmup.environments import Ran, Release, newest_release
from tooling.warmup.cache_text import SET_FIELD, judge, set_digest

pytestmark = pytest.mark.online
Releases = Callable[[str], Release]
NEWEST = newest_release()
ENTRIES = 10
"""Two layers in five buckets."""
FIRST, SECOND = {"shift": 0}, {"shift": 1}
"""Two replicas whose kernels' timings differ, so that each prefers another tactic."""
KINDS: dict[str, tuple[str, int, dict[str, Any]]] = {
    "leader_broadcast": ("0.6.13", 2, {}),
    "synchronized": (NEWEST, 2, {"noise": 0}),
    "managed": (NEWEST, 1, {}),
}


def caches(root: Path) -> dict[str, dict[str, Any]]:
    """Every JSON file below the root by its path, parsed."""
    return {str(path.relative_to(root)): json.loads(path.read_text()) for path in sorted(root.rglob("*.json"))}


def scraps(root: Path) -> list[str]:
    """Files that are neither a cache nor a lock."""
    files = (path for path in root.rglob("*") if path.is_file())
    return [path.name for path in files if path.suffix != ".json" and not path.name.endswith(".lock")]


def marks(root: Path) -> tuple[set[str], str]:
    """The marks of the ranks' files, and the one that they should carry."""
    paths = sorted(root.rglob("rank-*.json"))
    metadata = [json.loads(path.read_text())["_metadata"] for path in paths]
    own = {name: value for name, value in metadata[0].items() if not name.startswith("warmup_")}
    digests = [judge(path.read_bytes(), own)[0].digest for path in paths]
    return {one[SET_FIELD] for one in metadata}, set_digest(digests)


def assert_warm(*replicas: Ran) -> None:
    for ran in replicas:
        assert ran.record["warm"], ran.record["why_cold"]
        assert ran.record["tuned"] == 0
        for rank in range(len(ran.results)):
            assert ran.passes(rank, "check 2")["misses"] == 0


@pytest.mark.parametrize("kind", KINDS)
def test_replicas_that_start_at_once_lose_nothing_and_hit_the_next_time(
    releases: Releases, tmp_path: Path, kind: str
) -> None:
    version, ranks, spec = KINDS[kind]
    both = releases(version).run_groups(tmp_path, FIRST, SECOND, ranks=ranks, **spec)
    for ran in both:
        assert ran.record["strategy"] == kind
        assert ran.record["warnings"] == []
        for rank in range(ranks):
            assert ran.passes(rank, "check 2")["misses"] == 0
    found = caches(tmp_path)
    assert found
    assert scraps(tmp_path) == []
    again = releases(version).run_groups(tmp_path, FIRST, SECOND, ranks=ranks, **spec)
    assert_warm(*again)
    assert {one["digest"] for ran in again for one in ran.record["ranks"]} == {again[0].record["ranks"][0]["digest"]}
    assert caches(tmp_path) == found, "a warm start writes nothing"


@pytest.mark.parametrize("kind", KINDS)
def test_a_replica_that_starts_after_another_takes_its_entries(releases: Releases, tmp_path: Path, kind: str) -> None:
    version, ranks, spec = KINDS[kind]
    first = releases(version).run(tmp_path, ranks=ranks, **FIRST, **spec)
    found = caches(tmp_path)
    second = releases(version).run(tmp_path, ranks=ranks, **SECOND, **spec)
    assert_warm(second)
    assert second.record["file"] == first.record["file"]
    assert second.record["ranks"][0]["digest"] == first.record["ranks"][0]["digest"]
    assert caches(tmp_path) == found


def test_sets_of_two_replicas_never_mix_however_late_a_rank_writes(releases: Releases, tmp_path: Path) -> None:
    """Without the lock the second set's first file would lie beside the first set's second one."""
    both = releases("0.6.16").run_groups(tmp_path, FIRST, SECOND, ranks=2, noise=0, fault="slow-writer")
    written = [[rank["written"] for rank in ran.record["ranks"]] for ran in both]
    assert sorted(one["reason"] for ranks in written for one in ranks) == ["", "", "KEPT", "KEPT"]
    assert all(len({one["reason"] for one in ranks}) == 1 for ranks in written), "all ranks of a replica, or none"
    found, expected = marks(tmp_path)
    assert found == {expected}
    assert_warm(*releases("0.6.16").run_groups(tmp_path, FIRST, SECOND, ranks=2, noise=0))


def test_a_replica_that_does_not_let_go_is_not_waited_for_and_nothing_is_written(
    releases: Releases, tmp_path: Path
) -> None:
    release = releases("0.6.16")
    file = Path(release.run(tmp_path, ranks=2).record["file"])
    for path in file.parent.glob("rank-*.json"):
        path.unlink()
    with (file.parent / ".ranks.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        record = release.run(tmp_path, ranks=2, fault="impatient").record
    assert [rank["written"]["reason"] for rank in record["ranks"]] == ["BUSY", "BUSY"]
    assert any("(BUSY)" in warning for warning in record["warnings"])
    assert caches(tmp_path) == {}
    assert release.run(tmp_path, ranks=2).record["ranks"][1]["written"]["done"]


def test_where_locks_are_refused_a_set_is_written_all_the_same(releases: Releases, tmp_path: Path) -> None:
    record = releases("0.6.16").run(tmp_path, ranks=2, fault="no-locks").record
    assert [rank["written"]["done"] for rank in record["ranks"]] == [True, True]
    assert any("written by rename alone" in warning for warning in record["warnings"])
    assert len([warning for warning in record["warnings"] if "files of all ranks are written without" in warning]) == 1
    assert_warm(releases("0.6.16").run(tmp_path, ranks=2))


def test_a_set_that_does_not_cover_the_model_is_replaced(releases: Releases, tmp_path: Path) -> None:
    """Another replica's set is kept only if it came while this one tuned; this one was there before."""
    release = releases("0.6.16")
    release.run(tmp_path, ranks=2, labels=["host_bf16"])
    record = release.run(tmp_path, ranks=2).record
    assert (record["warm"], record["why_cold"]) == (False, "INCOMPLETE")
    assert [rank["written"]["done"] for rank in record["ranks"]] == [True, True]
    assert_warm(release.run(tmp_path, ranks=2))


def test_tensor_and_data_parallel_ranks_of_one_world_have_a_file_each(releases: Releases, tmp_path: Path) -> None:
    parallel = {"tensor_parallel_size": 2, "data_parallel_size": 2}
    each = {rank: {"parallel": {**parallel, "data_parallel_rank": rank // 2}} for rank in range(4)}
    release = releases("0.6.16")
    assert release.run(tmp_path, ranks=4, each=each).record["strategy"] == "synchronized"
    names = [Path(name).name for name in caches(tmp_path)]
    assert names == [f"rank-{rank}-of-4.json" for rank in range(4)]
    assert_warm(release.run(tmp_path, ranks=4, each=each))


def test_four_whole_warm_ups_at_once_leave_the_union(releases: Releases, tmp_path: Path) -> None:
    """Single processes whose layers differ in the type that comes out: each has other keys, on one path."""
    halves = ({"labels": [label], "shift": shift} for shift in (0, 1) for label in ("host_bf16", "host_fp16"))
    release = releases("0.6.13")
    ran = release.run_groups(tmp_path, *halves)
    assert {one.record["file"] for one in ran} == {ran[0].record["file"]}
    assert [one.record["tuned"] for one in ran] == [ENTRIES // 2] * 4
    (body,) = caches(tmp_path).values()
    assert len([key for key in body if not key.startswith("_")]) == ENTRIES
    assert scraps(tmp_path) == []
    assert_warm(release.run(tmp_path))
