"""Locks beside cache files, where something else lies in their place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tooling.warmup.cache_file import write_cache
from tooling.warmup.cache_text import CacheFile
from tooling.warmup.locks import locked, token_beside

HERE = {"gpu": "NVIDIA H200"}


def test_whoever_holds_a_lock_is_known_by_the_token_in_it(tmp_path: Path) -> None:
    with locked(tmp_path / "cache.json", token="first") as lock:
        assert lock.trouble == ""
        assert token_beside(tmp_path / "cache.json") == "first"
    with locked(tmp_path / "cache.json", token="2nd"):
        assert token_beside(tmp_path / "cache.json") == "2nd"


def test_a_link_in_a_locks_place_leads_no_token_into_another_file(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / ".cache.json.lock").symlink_to(tmp_path / "precious")
    with locked(tmp_path / "cache.json", token="token") as lock:
        assert lock.trouble.startswith("no lock: [Errno 40]")
    assert (tmp_path / "precious").read_text() == "precious"
    assert token_beside(tmp_path / "cache.json") == ""


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["a pipe", "a folder"])
def test_what_is_no_file_in_a_locks_place_is_no_lock_and_nobody_waits_for_it(tmp_path: Path, make: object) -> None:
    assert callable(make)
    make(tmp_path / ".cache.json.lock")
    assert token_beside(tmp_path / "cache.json") == ""
    written = write_cache(tmp_path / "cache.json", CacheFile(metadata=HERE, entries={"k": ["R", 1]}), HERE, merged=True)
    assert written.done
    assert written.lock.startswith("no lock: [Errno")
