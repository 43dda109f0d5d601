"""Whole warm-ups on disks that are really read-only or full: small file systems made for the test, which root may do."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.small_disks import fill, mounted_disk
from tests.warmup.environments import Release, newest_release

pytestmark = pytest.mark.online
Releases = Callable[[str], Release]
PAGES = 256
ENTRIES = 10
KINDS: dict[str, tuple[str, int]] = {
    "leader_broadcast": ("0.6.13", 2),
    "synchronized": ("0.6.16", 2),
    "managed": (newest_release(), 1),
}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system, for a cache root."""
    with mounted_disk(tmp_path / "disk", pages=PAGES) as folder:
        yield folder


def remount(disk: Path, mode: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{mode}", str(disk)], check=True)


def scraps(disk: Path) -> list[str]:
    return [path.name for path in disk.rglob("*.tmp")]


def assert_tuned_in_memory(record: dict[str, Any], errno: int) -> None:
    """Every rank dispatches tuned kernels, and the record says why none is on disk."""
    assert not record["warm"]
    for rank in record["ranks"]:
        assert rank["passes"]["check 2"]["host_gemm"]["hits"] == 2
    assert record["ranks"][0]["written"]["reason"] == "UNWRITABLE"
    assert f"[Errno {errno}]" in record["ranks"][0]["written"]["detail"]
    assert any("UNWRITABLE" in warning and f"[Errno {errno}]" in warning for warning in record["warnings"])


@pytest.mark.parametrize("kind", KINDS)
def test_a_read_only_cache_root_is_tuned_in_memory_and_one_that_holds_a_cache_is_read(
    releases: Releases, disk: Path, kind: str
) -> None:
    version, ranks = KINDS[kind]
    release = releases(version)
    remount(disk, "ro")
    record = release.run(disk, ranks=ranks).record
    assert record["strategy"] == kind
    assert_tuned_in_memory(record, 30)
    remount(disk, "rw")
    assert release.run(disk, ranks=ranks).record["ranks"][0]["written"]["done"]
    remount(disk, "ro")
    warm = release.run(disk, ranks=ranks).record
    assert (warm["warm"], warm["tuned"]) == (True, 0)
    assert all(rank["passes"]["check 2"]["host_gemm"]["hits"] == 2 for rank in warm["ranks"])
    remount(disk, "rw")


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_disk_is_tuned_in_memory_and_the_next_start_with_room_writes(
    releases: Releases, disk: Path, kind: str
) -> None:
    version, ranks = KINDS[kind]
    release = releases(version)
    filler = fill(disk, leave_pages=0)
    assert_tuned_in_memory(release.run(disk, ranks=ranks).record, 28)
    assert scraps(disk) == []
    filler.unlink()
    record = release.run(disk, ranks=ranks).record
    assert [rank["written"]["done"] for rank in record["ranks"] if rank["written"]] == [True] * (
        1 if kind == "leader_broadcast" else ranks
    )
    assert release.run(disk, ranks=ranks).record["warm"]
    assert scraps(disk) == []


def test_a_disk_with_room_for_a_part_never_serves_a_part_as_the_whole(releases: Releases, disk: Path) -> None:
    """FlashInfer's own store writes entry by entry."""
    release = releases(newest_release())
    filler = fill(disk, leave_pages=3)
    release.run(disk)
    filler.unlink()
    again = release.run(disk).record
    assert not again["warm"]
    assert again["ranks"][0]["passes"]["check 2"]["host_gemm"]["hits"] == 2
    assert (again["tuned"] + again["loaded"], release.run(disk).record["warm"]) == (ENTRIES, True)
