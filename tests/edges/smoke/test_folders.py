"""The cache root, files laid into it, and the folder of compiled kernels."""

from __future__ import annotations

import json
import os
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.small_disks import fill, mounted_disk
from tooling.edges.smoke.cache_root import ELSEWHERE, alter, check_room, lay_out, list_files
from tooling.edges.smoke.jit_cache import MARKER, open_jit_cache
from tooling.errors import EdgeError, InputError
from tooling.warmup.cache_text import CacheKind, judge

HERE = {"cuda": "13.0", "flashinfer": "0.6.13", "arch": "sm90", "image": None}
METADATA = {"cuda_version": "13.0", "gpu": "H200"}
CACHE = json.dumps({"_metadata": METADATA, "('op', 'Runner', ())": ["Runner", 3]}).encode()


def test_files_are_listed_with_their_bytes(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "x.json").write_bytes(b"one")
    (before,) = list_files(tmp_path)
    (tmp_path / "a" / "b" / "x.json").write_bytes(b"two")
    (after,) = list_files(tmp_path)
    assert (before.path, before.size_bytes) == ("a/b/x.json", 3)
    assert before.sha256 != after.sha256


def test_a_huge_file_is_not_read_into_memory_as_a_whole(tmp_path: Path) -> None:
    """A hole of half a gigabyte; peaks below a tenth of it."""
    (tmp_path / "huge").touch()
    os.truncate(tmp_path / "huge", 512 * 1024**2)
    tracemalloc.start()
    (found,) = list_files(tmp_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.size_bytes == 512 * 1024**2
    assert peak < 50 * 1024**2


def test_a_truncated_and_a_foreign_file_are_what_the_warm_up_calls_so(tmp_path: Path) -> None:
    assert judge(CACHE, METADATA)[0].kind is CacheKind.VALID
    assert judge(alter("truncated", CACHE), METADATA)[0].reason == "TRUNCATED"
    foreign = judge(alter("foreign", CACHE), METADATA)[0]
    assert (foreign.kind, foreign.fields) == (CacheKind.FOREIGN, ("cuda_version",))
    assert ELSEWHERE in foreign.detail


def test_files_are_laid_at_the_same_path_below_another_root(tmp_path: Path) -> None:
    (tmp_path / "from" / "v").mkdir(parents=True)
    (tmp_path / "from" / "v" / "c.json").write_bytes(CACHE)
    assert lay_out("foreign", tmp_path / "from", tmp_path / "to") == 1
    assert (tmp_path / "to" / "v" / "c.json").read_bytes() == alter("foreign", CACHE)


def test_a_full_disk_is_noticed_and_one_with_room_or_none_yet_is_not(tmp_path: Path) -> None:
    check_room(tmp_path, tmp_path / "nowhere")
    with mounted_disk(tmp_path / "disk", pages=64) as disk:
        check_room(disk)
        fill(disk, leave_pages=2)
        with pytest.raises(OSError, match="No space left"):
            check_room(tmp_path, disk)


def test_a_new_folder_is_marked_and_used_again(tmp_path: Path) -> None:
    assert open_jit_cache(tmp_path / "jit", HERE)["fresh"] is True
    (tmp_path / "jit" / "kernel.so").write_bytes(b"x")
    assert open_jit_cache(tmp_path / "jit", HERE)["fresh"] is False


@pytest.mark.parametrize("name", HERE)
def test_kernels_of_another_environment_are_refused(tmp_path: Path, name: str) -> None:
    open_jit_cache(tmp_path, HERE)
    with pytest.raises(InputError, match=f"{name} .* there, other here") as caught:
        open_jit_cache(tmp_path, {**HERE, name: "other"})
    assert caught.value.reason == "JIT_CACHE_FOREIGN"


@pytest.mark.parametrize("content", [None, b"", b"[1]", b"{"])
def test_a_folder_that_does_not_say_what_it_is_for_is_refused(tmp_path: Path, content: bytes | None) -> None:
    (tmp_path / ("kernel.so" if content is None else MARKER)).write_bytes(content or b"")
    with pytest.raises(InputError) as caught:
        open_jit_cache(tmp_path, HERE)
    assert caught.value.reason == "JIT_CACHE_UNMARKED"


def test_a_folder_that_cannot_be_made_is_the_worlds_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(EdgeError) as caught:
        open_jit_cache(tmp_path / "file" / "jit", HERE)
    assert caught.value.reason == "UNWRITABLE"


def test_of_runs_that_start_at_once_on_an_empty_folder_one_marks_it_and_others_are_refused_or_share(
    tmp_path: Path,
) -> None:
    """Eight of two releases; whichever came first, its release has the folder."""

    def start(number: int) -> str:
        release = "0.6.13" if number % 2 else "0.6.12"
        try:
            open_jit_cache(tmp_path / "jit", {**HERE, "flashinfer": release})
        except InputError as error:
            return error.reason
        return release

    with ThreadPoolExecutor(8) as pool:
        ended = list(pool.map(start, range(8)))
    owner = json.loads((tmp_path / "jit" / MARKER).read_text())["flashinfer"]
    assert sorted(ended) == sorted([owner] * 4 + ["JIT_CACHE_FOREIGN"] * 4)
