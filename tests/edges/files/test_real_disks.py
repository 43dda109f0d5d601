"""Full, read-only and mounted-over places that are real: small file systems made for the test, which root may do."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.small_disks import fill, mount, mounted_disk
from tooling.edges.files.applying import find_interrupted
from tooling.errors import EdgeError

from .trees import EDITS, break_off, bump, expected, heal_tree, make_tree, snapshot


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 pages, of 4096 bytes each."""
    with mounted_disk(tmp_path / "disk", pages=64) as disk:
        yield disk


def test_a_full_disk_leaves_all_old_and_the_bump_works_once_there_is_room(small_disk: Path) -> None:
    failures = set()
    for pages in range(12):
        root = make_tree(small_disk / f"tree-{pages}")
        old = snapshot(root)
        filler = fill(small_disk, leave_pages=pages)
        reason = bump_on_a_full_disk(root)
        assert snapshot(root) == (expected(old) if reason is None else old), f"{pages} pages free"
        assert find_interrupted(root) is None
        failures.add(reason)
        filler.unlink()
        if reason is not None:
            bump(root)
        assert snapshot(root) == expected(old)
        subprocess.run(["rm", "-r", str(root)], check=True)
    assert failures >= {"UNWRITABLE", "WRITE_FAILED"}, "it was full before the record, and after it"


def bump_on_a_full_disk(root: Path) -> str | None:
    """The reason of the refusal, or None if there was room."""
    try:
        bump(root)
    except EdgeError as error:
        if "No space left on device" not in error.message:
            raise
        return error.reason
    return None


def test_a_disk_that_fills_up_while_healing_heals_once_there_is_room(small_disk: Path) -> None:
    root = make_tree(small_disk / "tree")
    old = snapshot(root)
    break_off(root, renamed=2)
    for stray in root.rglob(".bump-*"):
        stray.unlink()
    filler = fill(small_disk, leave_pages=0)
    with pytest.raises(EdgeError, match=r"cannot be healed: No space left on device"):
        heal_tree(root)
    assert find_interrupted(root) is not None
    filler.unlink()
    assert heal_tree(root) is not None
    assert snapshot(root) == expected(old)


def test_a_disk_that_turns_read_only_is_told_and_heals_when_it_is_writable_again(small_disk: Path) -> None:
    root = make_tree(small_disk / "tree")
    old = snapshot(root)
    break_off(root, renamed=2)
    left = snapshot(root)
    mount("-o", "remount,ro", str(small_disk))
    try:
        with pytest.raises(EdgeError, match="Read-only file system"):
            heal_tree(root)
        with pytest.raises(EdgeError, match="Read-only file system"):
            bump(root)
        assert snapshot(root) == left
    finally:
        mount("-o", "remount,rw", str(small_disk))
    assert heal_tree(root) is not None
    assert snapshot(root) == expected(old)


def test_a_file_that_is_a_mount_point_cannot_be_replaced_and_all_stay_old(small_disk: Path) -> None:
    root = make_tree(small_disk / "tree")
    old = snapshot(root)
    target = root / "versions.json"
    (small_disk / "copy").write_bytes(EDITS[0].before or b"")
    mount("--bind", str(small_disk / "copy"), str(target))
    try:
        with pytest.raises(EdgeError, match=r"versions.json: cannot be replaced: Device or resource busy") as refused:
            bump(root)
        assert "mount point" in refused.value.hint
        assert snapshot(root) == old
        assert find_interrupted(root) is None
    finally:
        subprocess.run(["umount", str(target)], check=True)
    bump(root)
    assert snapshot(root) == expected(old)


def test_a_bump_killed_before_a_mount_point_is_undone(small_disk: Path) -> None:
    root = make_tree(small_disk / "tree")
    old = snapshot(root)
    break_off(root, renamed=3)
    (small_disk / "copy").write_bytes(EDITS[0].before or b"")
    mount("--bind", str(small_disk / "copy"), str(root / "versions.json"))
    try:
        healing = heal_tree(root)
    finally:
        subprocess.run(["umount", str(root / "versions.json")], check=True)
    assert healing is not None
    assert healing.to == "old"
    assert snapshot(root) == old
