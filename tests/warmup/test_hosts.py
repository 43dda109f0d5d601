"""Ranks on several hosts, with a file system that they share and with one for each."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.warmup.environments import Release

pytestmark = pytest.mark.online
Releases = Callable[[str], Release]
KINDS = {"leader_broadcast": "0.6.13", "synchronized": "0.6.16"}


def apart(*roots: Path) -> dict[int, dict[str, Any]]:
    """Each rank on a host of its own, with that cache root."""
    return {
        rank: {"host": f"host-{rank}", "environment": {"VLLM_FLASHINFER_AUTOTUNE_CACHE_DIR": str(root)}}
        for rank, root in enumerate(roots)
    }


def caches(root: Path) -> dict[str, Any]:
    return {path.name: json.loads(path.read_text()) for path in sorted(root.rglob("*.json"))}


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_shared_file_system_each_host_keeps_what_its_ranks_read(
    releases: Releases, tmp_path: Path, kind: str
) -> None:
    release, each = releases(KINDS[kind]), apart(tmp_path / "a", tmp_path / "b")
    cold = release.run(None, ranks=2, each=each).record
    assert (cold["strategy"], cold["why_cold"]) == (kind, "NO_CACHE")
    assert [rank["written"]["done"] for rank in cold["ranks"]] == [True, True]
    here, there = caches(tmp_path / "a"), caches(tmp_path / "b")
    if kind == "leader_broadcast":
        assert here == there
    else:
        assert (list(here), list(there)) == (["rank-0-of-2.json"], ["rank-1-of-2.json"])
    warm = release.run(None, ranks=2, each=each).record
    assert (warm["warm"], warm["tuned"]) == (True, 0)
    assert (caches(tmp_path / "a"), caches(tmp_path / "b")) == (here, there)


def test_on_a_shared_file_system_the_leader_alone_writes_its_file(releases: Releases, tmp_path: Path) -> None:
    record = releases("0.6.13").run(None, ranks=2, each=apart(tmp_path, tmp_path)).record
    assert [rank["written"] and rank["written"]["done"] for rank in record["ranks"]] == [True, None]


def test_a_host_that_lost_its_file_gets_the_leaders_anew(releases: Releases, tmp_path: Path) -> None:
    release, each = releases("0.6.13"), apart(tmp_path / "a", tmp_path / "b")
    release.run(None, ranks=2, each=each)
    next((tmp_path / "b").rglob("*.json")).unlink()
    assert release.run(None, ranks=2, each=each).record["why_cold"] == "ASYMMETRIC_CACHE"
    assert caches(tmp_path / "a") == caches(tmp_path / "b")
    assert release.run(None, ranks=2, each=each).record["warm"]


def test_a_foreign_file_on_one_host_is_left_and_no_host_writes(releases: Releases, tmp_path: Path) -> None:
    release, each = releases("0.6.13"), apart(tmp_path / "a", tmp_path / "b")
    release.run(None, ranks=2, each=each)
    file = next((tmp_path / "b").rglob("*.json"))
    body = json.loads(file.read_text())
    file.write_text(json.dumps({**body, "_metadata": {**body["_metadata"], "gpu": "NVIDIA B200"}}))
    before = file.read_bytes(), caches(tmp_path / "a")
    record = release.run(None, ranks=2, each=each, shift=1).record
    assert (record["why_cold"], record["ranks"][1]["cache"]["fields"]) == ("FOREIGN", ["gpu"])
    assert (file.read_bytes(), caches(tmp_path / "a")) == before


def test_a_host_where_another_replica_writes_keeps_all_from_writing_a_set(releases: Releases, tmp_path: Path) -> None:
    """The first rank of each host holds the lock there."""
    release, each = releases("0.6.16"), apart(tmp_path / "a", tmp_path / "b")
    release.run(None, ranks=2, each=each)
    (file,) = (tmp_path / "b").rglob("rank-1-of-2.json")
    file.unlink()
    before = caches(tmp_path / "a")
    with file.with_name(".ranks.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        record = release.run(None, ranks=2, each=each, shift=1, fault="impatient").record
    assert [rank["written"]["reason"] for rank in record["ranks"]] == ["BUSY", "BUSY"]
    assert (caches(tmp_path / "a"), caches(tmp_path / "b")) == (before, {})
