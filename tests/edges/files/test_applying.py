"""What an apply keeps, refuses and says, and how healing ends; faults at every step are in `test_crashes`."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tooling.edges.files.applying import (
    StalePlanError,
    UnhealableError,
    apply_edits,
    find_interrupted,
    heal,
)
from tooling.errors import EdgeError, ExitCode, InputError, ToolingError
from tooling.pins.texts import FileEdit

from .faults import Fault, Steps, in_child
from .trees import EDITS, NEW, OLD, break_off, bump, expected, heal_tree, snapshot

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="foreign owners need root")


def test_a_bump_keeps_all_that_the_edits_do_not_own(tree: Path) -> None:
    old = snapshot(tree)
    bump(tree)
    assert snapshot(tree) == expected(old)
    assert os.readlink(tree / "docker" / "nightly") == "../shared/nightly.in"
    assert (tree / "shared" / "nightly.in").stat().st_mode & 0o7777 == 0o750
    raw = (tree / "requirements" / "cuda.txt").read_bytes()
    assert raw == b"\xef\xbb\xbf# pins\r\nflashinfer-python==0.6.13\r\nno-end==1"
    assert sorted(os.listdir(tree / ".bump")) == [".gitignore", "lock"]


@as_root
def test_owner_and_group_are_kept(tree: Path) -> None:
    bump(tree)
    facts = (tree / "shared" / "nightly.in").stat()
    assert (facts.st_uid, facts.st_gid) == (12345, 23456)


def test_extended_attributes_are_kept(tree: Path) -> None:
    try:
        os.setxattr(tree / "versions.json", "user.note", b"mine")
    except OSError as cause:
        pytest.skip(f"this file system keeps no attributes: {cause.strerror}")
    bump(tree)
    assert os.getxattr(tree / "versions.json", "user.note") == b"mine"


@pytest.mark.parametrize("number", [errno.EPERM, errno.EINVAL], ids=["not root", "an owner the namespace lacks"])
@as_root
def test_a_file_that_cannot_be_given_to_its_owner_is_still_bumped(
    tree: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def refuse(descriptor: int, owner: int, group: int) -> None:
        asked.append(owner)
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fchown", refuse)
    bump(tree)
    assert asked == [12345, -1], "owner and group, then the group alone"
    assert (tree / "shared" / "nightly.in").read_bytes() == b"ARG V=0.6.13\n"


def test_a_hard_link_is_parted_and_its_other_name_keeps_the_old_content(tree: Path) -> None:
    os.link(tree / "versions.json", tree / "other-name")
    bump(tree)
    assert (tree / "other-name").read_bytes() == EDITS[0].before
    assert (tree / "versions.json").read_bytes() == EDITS[0].after


def test_a_root_behind_links_is_bumped(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tree)
    old = snapshot(tree)
    bump(tmp_path / "link" / "docker" / "..")
    assert snapshot(tree) == expected(old)


def test_a_relative_root_is_bumped(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = snapshot(tree)
    monkeypatch.chdir(tree)
    bump(Path())
    assert snapshot(tree) == expected(old)


def test_two_names_of_one_file_with_the_same_edit_are_one_edit(tree: Path) -> None:
    (tree / "alias.json").symlink_to("versions.json")
    first = EDITS[0]
    apply_edits_locked(tree, [first, FileEdit(path="alias.json", before=first.before, after=first.after)])
    assert (tree / "versions.json").read_bytes() == first.after
    assert (tree / "alias.json").is_symlink()


def test_two_names_of_one_file_with_different_edits_are_refused(tree: Path) -> None:
    (tree / "alias.json").symlink_to("versions.json")
    other = FileEdit(path="alias.json", before=EDITS[0].before, after=b"else")
    assert_refused(tree, [EDITS[0], other], InputError, "two names of one file")


def test_files_with_long_names_that_begin_alike_are_not_mixed_up(tree: Path) -> None:
    names = ["é" * 110 + end for end in "ab"]
    for name in names:
        (tree / name).write_bytes(name.encode())
    edits = [FileEdit(path=name, before=name.encode(), after=f"new {name}".encode()) for name in names]
    apply_edits_locked(tree, edits)
    assert [(tree / name).read_bytes() for name in names] == [edit.after for edit in edits]


def test_a_name_that_is_not_utf_8_is_bumped_and_healed(tree: Path) -> None:
    name = os.fsdecode(b"caf\xe9.txt")
    (tree / name).write_bytes(b"old")
    edits = [FileEdit(path=name, before=b"old", after=b"new"), *EDITS]
    with Steps(Fault(kind="SIGKILL", when="after"), at=2, of="replace"):
        in_child(lambda: apply_edits_locked(tree, edits))
    assert heal_tree(tree) is not None
    assert (tree / name).read_bytes() == b"new"


def test_edits_that_change_nothing_leave_no_trace(tree: Path) -> None:
    old = snapshot(tree)
    apply_edits(tree, [FileEdit(path="versions.json", before=EDITS[0].before, after=EDITS[0].before or b"")])
    assert snapshot(tree) == old
    assert not (tree / ".bump").exists()


def apply_edits_locked(root: Path, edits: list[FileEdit]) -> None:
    from tooling.edges.files.journal import lock_tree

    with lock_tree(root):
        apply_edits(root, edits, from_label=OLD, to_label=NEW)


def assert_refused(root: Path, edits: list[FileEdit], kind: type[ToolingError], said: str) -> ToolingError:
    """Refused with that error, and not a byte has moved."""
    old = snapshot(root)
    with pytest.raises(kind, match=said) as refused:
        apply_edits_locked(root, edits)
    assert snapshot(root) == old
    assert find_interrupted(root) is None
    return refused.value


def test_a_stale_plan_is_refused_before_any_write(tree: Path) -> None:
    (tree / "versions.json").write_bytes(b"by hand")
    error = assert_refused(tree, list(EDITS), StalePlanError, "versions.json: changed since it was read")
    assert error.exit_code is ExitCode.FINDINGS


def test_a_file_that_came_into_being_since_is_not_overwritten(tree: Path) -> None:
    (tree / "requirements/made.txt").write_bytes(b"by hand")
    assert_refused(tree, list(EDITS), StalePlanError, "requirements/made.txt")


def test_a_file_changed_between_two_renames_is_left_alone_and_the_others_are_put_back(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = snapshot(tree)
    replace = os.replace

    def replace_and_meddle(source: Path, target: Path) -> None:
        replace(source, target)
        if Path(target).name == "made.txt":
            (tree / "versions.json").write_bytes(b"by hand")

    monkeypatch.setattr(os, "replace", replace_and_meddle)
    with pytest.raises(StalePlanError, match=r"^versions.json: changed"):
        bump(tree)
    assert snapshot(tree) == {**old, "versions.json": (b"by hand", *old["versions.json"][1:])}
    assert find_interrupted(tree) is None


@pytest.mark.parametrize("path", ["docker/Dockerfile", "docker", "."], ids=["file", "folder", "root"])
def test_what_is_read_only_is_refused_for_root_too(tree: Path, path: str) -> None:
    bump_folder = tree / ".bump"
    bump_folder.mkdir()
    (tree / path).chmod(0o555)
    try:
        error = assert_refused(tree, list(EDITS), InputError, "is read-only")
    finally:
        (tree / path).chmod(0o755)
    assert error.reason == "READ_ONLY"
    assert f"chmod u+w {path}" in error.hint
    bump(tree)


def test_a_new_file_in_a_missing_folder_is_refused(tree: Path) -> None:
    assert_refused(
        tree, [*EDITS, FileEdit(path="no/such", before=None, after=b"x")], InputError, "folder does not exist"
    )


def test_a_path_out_of_the_root_is_refused(tree: Path) -> None:
    (tree.parent / "outside").write_bytes(b"x")
    assert_refused(tree, [FileEdit(path="../outside", before=b"x", after=b"y")], InputError, "leads out of the root")


def test_an_interrupted_bump_must_be_healed_before_the_next(tree: Path) -> None:
    break_off(tree, renamed=2)
    edit = FileEdit(path="bystander", before=b"0.6.12", after=b"0.6.14")
    with pytest.raises(EdgeError, match="not healed") as refused:
        apply_edits_locked(tree, [edit])
    assert refused.value.reason == "INTERRUPTED"
    assert find_interrupted(tree) == (OLD, NEW)


@pytest.mark.parametrize(("renamed", "to", "version"), [(0, "old", OLD), (1, "new", NEW), (5, "new", NEW)])
def test_healing_says_what_became_of_the_bump(tree: Path, renamed: int, to: str, version: str) -> None:
    break_off(tree, renamed=renamed)
    assert find_interrupted(tree) == (OLD, NEW)
    healing = heal_tree(tree)
    assert healing is not None
    assert (healing.to, healing.version) == (to, version)
    assert set(healing.files) == {
        "versions.json", "requirements/cuda.txt", "docker/Dockerfile", "shared/nightly.in", "requirements/made.txt"
    }  # fmt: skip
    assert heal_tree(tree) is None


@pytest.mark.parametrize("change", ["edited", "emptied", "deleted", "a link", "a folder", "a link out"])
def test_a_file_changed_by_hand_after_a_crash_is_named_and_nothing_is_touched(tree: Path, change: str) -> None:
    break_off(tree, renamed=2)
    path = tree / "requirements" / "cuda.txt"
    if change in {"edited", "emptied"}:
        path.write_bytes(b"by hand" if change == "edited" else b"")
    else:
        content = path.read_bytes()
        path.unlink()
        if change == "a link":
            (tree / "elsewhere").write_bytes(content)
            path.symlink_to("../elsewhere")
        elif change == "a folder":
            path.mkdir()
        elif change == "a link out":
            path.symlink_to("../../elsewhere")
    left = snapshot(tree)
    with pytest.raises(UnhealableError, match=r"^requirements/cuda.txt: changed since the bump from 0.6.12") as refused:
        heal_tree(tree)
    assert refused.value.exit_code is ExitCode.FINDINGS
    assert snapshot(tree) == left
    assert find_interrupted(tree) == (OLD, NEW)


def test_a_file_put_back_by_hand_after_a_crash_is_healed(tree: Path) -> None:
    break_off(tree, renamed=2)
    old = snapshot(tree)
    (tree / "docker" / "Dockerfile").write_bytes(EDITS[2].before or b"")
    assert heal_tree(tree) is not None
    assert snapshot(tree).keys() >= old.keys() - {name for name in old if ".bump-" in name}
    assert (tree / "docker" / "Dockerfile").read_bytes() == EDITS[2].after


def test_a_set_that_cannot_be_finished_is_undone(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = snapshot(tree)
    break_off(tree, renamed=3)
    replace = os.replace

    def refuse_versions(source: Path, target: Path) -> None:
        if Path(target).name == "versions.json":
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        replace(source, target)

    monkeypatch.setattr(os, "replace", refuse_versions)
    healing = heal_tree(tree)
    assert healing is not None
    assert (healing.to, healing.version) == ("old", OLD)
    assert snapshot(tree) == old


def test_healing_that_fails_both_ways_keeps_the_record_and_names_the_file(tree: Path) -> None:
    break_off(tree, renamed=3)
    with Steps(Fault(kind="EROFS", lasting=True), at=1, of="replace"), pytest.raises(EdgeError) as failed:
        heal_tree(tree)
    assert failed.value.message.startswith("docker/Dockerfile: the interrupted bump cannot be healed: Read-only")
    assert failed.value.reason == "INTERRUPTED"
    assert find_interrupted(tree) == (OLD, NEW)
    assert heal_tree(tree) is not None


def test_a_file_changed_while_it_is_healed_keeps_the_change_and_the_record(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_off(tree, renamed=3)
    replace = os.replace

    def replace_and_meddle(source: Path, target: Path) -> None:
        (tree / "versions.json").write_bytes(b"by hand")
        replace(source, target)

    monkeypatch.setattr(os, "replace", replace_and_meddle)
    with pytest.raises(EdgeError, match=r"versions.json: .* changed while it was healed"):
        heal_tree(tree)
    assert (tree / "versions.json").read_bytes() == b"by hand"
    assert find_interrupted(tree) == (OLD, NEW)


def test_a_restore_that_fails_says_so_and_the_next_healing_finishes(tree: Path) -> None:
    old = snapshot(tree)
    with Steps(Fault(kind="EIO", lasting=True), at=4, of="replace"), pytest.raises(EdgeError) as failed:
        bump(tree)
    assert "putting the others back failed too: Input/output error" in failed.value.message
    assert failed.value.reason == "INTERRUPTED"
    healing = heal_tree(tree)
    assert healing is not None
    assert snapshot(tree) == expected(old)


def test_a_file_that_cannot_be_read_back_is_never_called_old(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace = os.replace

    def replace_then_fail(source: Path, target: Path) -> None:
        replace(source, target)
        if Path(target).name == "made.txt":
            Path(target).write_bytes(b"neither")
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "replace", replace_then_fail)
    with pytest.raises(EdgeError, match=r"requirements/made.txt cannot be read back") as failed:
        bump(tree)
    assert failed.value.reason == "INTERRUPTED"
    assert find_interrupted(tree) == (OLD, NEW)


def test_no_memory_in_the_middle_leaves_a_tree_that_heals(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = snapshot(tree)
    replace = os.replace

    def exhausted(source: Path, target: Path) -> None:
        if Path(target).name == "versions.json":
            raise MemoryError
        replace(source, target)

    monkeypatch.setattr(os, "replace", exhausted)
    with pytest.raises(MemoryError):
        bump(tree)
    monkeypatch.undo()
    assert heal_tree(tree) is not None
    assert snapshot(tree) == expected(old)


def test_signals_are_let_through_again_after_an_error(tree: Path) -> None:
    with Steps(Fault(kind="ENOSPC"), at=3, of="write"), suppress(EdgeError):
        bump(tree)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, set()) & {signal.SIGINT, signal.SIGTERM} == set()


def test_a_tree_without_a_record_is_not_interrupted_and_healing_makes_nothing(tree: Path) -> None:
    old = snapshot(tree)
    assert find_interrupted(tree) is None
    assert heal(tree) is None
    assert snapshot(tree) == old
    assert not (tree / ".bump").exists()


def test_an_unfinished_record_that_cannot_be_removed_is_told(tree: Path) -> None:
    with Steps(Fault(kind="SIGKILL"), at=1, of="replace"):
        in_child(lambda: bump(tree))
    assert (tree / ".bump" / "journal.new").exists()
    with (
        Steps(Fault(kind="EROFS"), at=1, of="unlink"),
        pytest.raises(EdgeError, match=r"journal.new: cannot be removed"),
    ):
        heal(tree)
    assert heal(tree) is None
    assert not (tree / ".bump" / "journal.new").exists()


def test_work_of_two_bumps_never_mixes(fresh_tree: Callable[[], Path]) -> None:
    root = fresh_tree()
    old = snapshot(root)
    other = [FileEdit(path="bystander", before=b"0.6.12", after=b"0.6.14")]
    with Steps(Fault(kind="SIGKILL", when="after"), at=3, of="replace"):
        in_child(lambda: bump(root))
    heal_tree(root)
    apply_edits_locked(root, other)
    assert snapshot(root)["bystander"][0] == b"0.6.14"
    assert {**snapshot(root), "bystander": old["bystander"]} == expected(old)
