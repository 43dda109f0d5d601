"""The record is ours and whole, or it is refused; the lock lets one bump at a time through."""

from __future__ import annotations

import base64
import errno
import fcntl
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tooling.edges.files import journal as journal_module
from tooling.edges.files.journal import drop_journal, has_journal, is_locked, load_journal, lock_tree, make_journal
from tooling.edges.files.journal import write_journal as write_record
from tooling.errors import EdgeError, ExitCode, InputError
from tooling.pins.texts import FileEdit

from .faults import in_child
from .trees import EDITS, NEW, OLD


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".bump").mkdir()
    return tmp_path


def test_the_record_that_is_read_is_the_one_that_was_written(root: Path) -> None:
    edits = [*EDITS, FileEdit(path="bin\udc80", before=b"\0\xff", after=b"")]
    written = make_journal(edits, from_label=OLD, to_label=NEW)
    write_record(root, written)
    assert load_journal(root) == written
    assert has_journal(root)
    assert (root / ".bump" / "journal.json").stat().st_mode & 0o777 == 0o600
    drop_journal(root)
    assert load_journal(root) is None
    assert not has_journal(root)
    drop_journal(root)


def _changed(**fields: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda data: {**data, **fields}


def _with_digest(change: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Any]:
    def changed(data: dict[str, Any]) -> dict[str, Any]:
        body = {key: value for key, value in change(data).items() if key != "digest"}
        return {**body, "digest": journal_module._digest(body)}

    return changed


def _without(key: str) -> Callable[[dict[str, Any]], Any]:
    return lambda data: {name: value for name, value in data.items() if name != key}


_DAMAGED: list[tuple[str, Callable[[dict[str, Any]], Any], str]] = [
    ("not an object", lambda data: [data], "found no object"),
    ("a number", lambda data: 5, "found no object"),
    ("another format", _changed(format=2), "found format 2, expected 1"),
    ("no format", _without("format"), "no key 'format'"),
    ("no digest", _without("digest"), "no key 'digest'"),
    ("another version", _changed(to="0.9.9"), "does not match its own digest"),
    ("other content", _changed(edits=[{"path": "a", "before": None, "after": ""}]), "does not match its own digest"),
    ("a token that is a path", _with_digest(_changed(token="../../../etc")), "found token '../../../etc'"),
    ("a token that is a number", _with_digest(_changed(token=5)), "expected string"),
    ("no edits", _with_digest(_without("edits")), "no key 'edits'"),
    ("content that is no base64", _with_digest(_changed(edits=[{"path": "a", "before": "x", "after": ""}])), "base64"),
]


@pytest.mark.parametrize(("change", "said"), [case[1:] for case in _DAMAGED], ids=[case[0] for case in _DAMAGED])
def test_a_damaged_or_foreign_record_is_refused(root: Path, change: Callable[[Any], Any], said: str) -> None:
    write_record(root, make_journal(EDITS, from_label=OLD, to_label=NEW))
    path = root / ".bump" / "journal.json"
    path.write_text(json.dumps(change(json.loads(path.read_bytes()))))
    assert_refused(root, said)


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"\xff\xfe", b"[" * 100_000],
    ids=["empty", "cut short", "not text", "nested too deep"],
)
def test_a_record_that_is_not_json_is_refused(root: Path, raw: bytes) -> None:
    (root / ".bump" / "journal.json").write_bytes(raw)
    assert_refused(root, "cannot be read")


def test_a_folder_in_place_of_the_record_is_refused(root: Path) -> None:
    (root / ".bump" / "journal.json").mkdir()
    assert_refused(root, "Is a directory")


def assert_refused(root: Path, said: str) -> None:
    with pytest.raises(InputError, match="cannot be read") as refused:
        load_journal(root)
    assert said in refused.value.message
    assert refused.value.reason == "BAD_RECORD"
    assert refused.value.exit_code is ExitCode.INPUT
    assert "delete that file" in refused.value.hint


def test_half_a_record_counts_for_nothing(root: Path) -> None:
    (root / ".bump" / "journal.new").write_bytes(b"{")
    assert load_journal(root) is None


@pytest.mark.parametrize("kind", ["file", "link", "dangling link"])
def test_a_bump_folder_that_is_none_is_refused_and_left(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "tree" / ".bump"
    place.parent.mkdir()
    elsewhere = tmp_path / "elsewhere"
    if kind == "file":
        place.write_text("mine")
    else:
        place.symlink_to(elsewhere)
    if kind == "link":
        elsewhere.mkdir()
    found = "a file" if kind == "file" else "a link"
    with pytest.raises(InputError, match=f"found {found}, expected a folder"), lock_tree(place.parent):
        pytest.fail("never entered")
    with pytest.raises(InputError, match=f"found {found}"):
        load_journal(place.parent)
    assert not is_locked(place.parent)
    assert place.is_symlink() or place.read_text() == "mine"
    assert not elsewhere.exists() or not any(elsewhere.iterdir())


def test_of_two_bumps_one_wins_and_the_other_says_so(tmp_path: Path) -> None:
    def second() -> None:
        with pytest.raises(EdgeError, match="another bump is at work") as refused, lock_tree(tmp_path):
            pytest.fail("never entered")
        assert refused.value.reason == "BUSY"
        assert is_locked(tmp_path)

    assert not is_locked(tmp_path)
    assert not (tmp_path / ".bump").exists()
    with lock_tree(tmp_path):
        assert in_child(second) == 0
    assert not is_locked(tmp_path)
    with lock_tree(tmp_path):
        pass


def test_the_lock_of_a_killed_bump_is_free(tmp_path: Path) -> None:
    def killed() -> None:
        with lock_tree(tmp_path):
            os.kill(os.getpid(), 9)

    assert in_child(killed) == -9
    with lock_tree(tmp_path):
        pass


def test_a_look_at_the_lock_does_not_turn_a_bump_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The look ends while the bump makes its first pause."""
    with lock_tree(tmp_path):
        pass
    looking = os.open(tmp_path / ".bump" / "lock", os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)
    pauses: list[float] = []

    def end_the_look(seconds: float) -> None:
        pauses.append(seconds)
        os.close(looking)

    monkeypatch.setattr(time, "sleep", end_the_look)
    with lock_tree(tmp_path):
        assert len(pauses) == 1


def test_a_lock_whose_file_was_deleted_meanwhile_is_taken_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = fcntl.flock, []

    def flock_then_lose(descriptor: int, operation: int) -> None:
        real(descriptor, operation)
        calls.append(operation)
        if len(calls) == 1:
            (tmp_path / ".bump" / "lock").unlink()

    monkeypatch.setattr(fcntl, "flock", flock_then_lose)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    with lock_tree(tmp_path):
        assert is_locked(tmp_path)
    assert len(calls) == 2


def test_a_file_system_without_locks_is_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(EdgeError, match="cannot lock files") as refused, lock_tree(tmp_path):
        pytest.fail("never entered")
    assert refused.value.reason == "NO_LOCKS"


def test_a_lock_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / ".bump" / "lock").mkdir(parents=True)
    with pytest.raises(EdgeError, match=r"^.bump: cannot be written") as refused, lock_tree(tmp_path):
        pytest.fail("never entered")
    assert refused.value.reason == "UNWRITABLE"


def test_a_folder_of_a_bump_killed_before_it_hid_the_folder_from_git_is_hidden_by_the_next(tmp_path: Path) -> None:
    for left in ([], [".gitignore"]):
        folder = tmp_path / f"{len(left)}" / ".bump"
        folder.mkdir(parents=True)
        for name in left:
            (folder / name).touch()
        with lock_tree(folder.parent):
            assert (folder / ".gitignore").read_bytes() == b"*\n"


def test_the_content_in_the_record_is_what_the_files_get(root: Path) -> None:
    write_record(root, make_journal(EDITS, from_label=OLD, to_label=NEW))
    data = json.loads((root / ".bump" / "journal.json").read_bytes())
    assert [base64.b64decode(item["after"]) for item in data["edits"]] == [edit.after for edit in EDITS]
