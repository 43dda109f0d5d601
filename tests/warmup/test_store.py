"""FlashInfer's own store as it is read from beside it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tooling.warmup.store import blocked_by, managed_entries


@pytest.fixture
def entries(tmp_path: Path) -> Path:
    """The folder of a store's entries, below `tmp_path`."""
    folder = tmp_path / "v2" / "abc" / "entries"
    folder.mkdir(parents=True)
    return folder


def test_entries_that_cannot_be_used_are_passed_over(entries: Path, tmp_path: Path) -> None:
    for number, entry in enumerate(
        [
            '{"key": "good", "runner": "R", "tactic": 1}',
            r'{"key": "\ud800", "runner": "R", "tactic": 1}',
            r'{"key": "a", "runner": "R", "tactic": "\ud800"}',
            '{"key": 5, "runner": "R", "tactic": 1}',
            '{"key": "b", "runner": 5, "tactic": 1}',
            "[" * 100_000,
            "[]",
        ]
    ):
        (entries / f"{number}.json").write_text(entry)
    os.mkfifo(entries / "pipe.json")
    assert managed_entries(tmp_path) == {"good": ["R", 1]}


def test_what_a_reader_would_wait_for_is_named(entries: Path, tmp_path: Path) -> None:
    (entries / "a.json").write_text("{")
    (entries / "b.json").mkdir()
    (entries / "c.json").symlink_to(tmp_path / "nowhere")
    assert blocked_by(tmp_path) == ""
    os.mkfifo(entries / "d.json")
    assert blocked_by(tmp_path) == f"not a regular file: '{entries / 'd.json'}'"


def test_a_store_that_this_user_may_not_look_into_holds_nothing(
    entries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container that runs as another user, whose HOME is still root's. Python raises there up to 3.12."""
    (entries / "a.json").write_text('{"key": "good", "runner": "R", "tactic": 1}')

    def refused(path: Path, pattern: str) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "glob", refused)
    assert managed_entries(tmp_path) == {}
    assert blocked_by(tmp_path) == ""
