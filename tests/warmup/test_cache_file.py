"""Cache files on a real disk, with writers that compete and disks that refuse."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tooling.warmup import cache_file
from tooling.warmup.cache_file import probe_writable, read_cache, read_notes, write_cache
from tooling.warmup.cache_text import CacheFile, CacheKind

HERE = {"gpu": "NVIDIA H200"}
ROOT = Path(__file__).resolve().parents[2]
WRITE = """
import resource, signal, sys
from pathlib import Path
from tooling.warmup import cache_file
from tooling.warmup.cache_text import CacheFile
path, names, mode = Path(sys.argv[1]), sys.argv[2].split(","), sys.argv[3]
if mode == "no-locks":
    import errno, fcntl
    def refuse(*_): raise OSError(errno.ENOLCK, "No locks available")
    fcntl.flock = refuse
if mode == "full":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
if mode == "killed":
    import os
    os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
if mode == "nobody":
    import os
    if os.getuid() == 0: os.setuid(65534)
entries = {name: ["Runner", len(name)] for name in names}
written = cache_file.write_cache(path, CacheFile(metadata={"gpu": "NVIDIA H200"}, entries=entries), {"gpu": "NVIDIA H200"}, merged=True)
print(written.done, written.reason, written.detail, written.lock, sep="|")
"""


def content(**entries: int) -> CacheFile:
    return CacheFile(metadata=HERE, entries={key: ["Runner", value] for key, value in entries.items()})


def start(path: Path, names: str, mode: str = "") -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", WRITE, str(path), names, mode]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def answer(process: subprocess.Popen[str]) -> list[str]:
    with process:
        assert process.stdout
        return process.stdout.read().strip().split("|")


def test_writing_makes_folders_and_leaves_nothing_else_but_a_lock(tmp_path: Path) -> None:
    path = tmp_path / "a" / "é ü" / "cache.json"
    assert write_cache(path, content(a=1), HERE, merged=True).done
    assert sorted(item.name for item in path.parent.iterdir()) == [".cache.json.lock", "cache.json"]
    assert read_cache(path, HERE)[0].kind is CacheKind.VALID


def test_entries_of_other_writers_are_kept_and_ours_win(tmp_path: Path) -> None:
    path = tmp_path / "cache.json"
    write_cache(path, content(a=1, b=1), HERE, merged=True)
    write_cache(path, content(b=2, c=2), HERE, merged=True)
    assert json.loads(path.read_text()) == {
        "_metadata": HERE,
        "a": ["Runner", 1],
        "b": ["Runner", 2],
        "c": ["Runner", 2],
    }
    write_cache(path, content(d=3), HERE, merged=False)
    assert list(json.loads(path.read_text())) == ["_metadata", "d"]


@pytest.mark.parametrize("mode", ["", "no-locks"], ids=["with locks", "where flock fails"])
def test_four_writers_at_once_leave_the_union(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "cache.json"
    writers = [start(path, ",".join(f"{letter}{number}" for number in range(50)), mode) for letter in "abcd"]
    answers = [answer(writer) for writer in writers]
    assert {done for done, *_ in answers} == {"True"}
    assert all(("No locks available" in lock) is bool(mode) for *_, lock in answers)
    body = json.loads(path.read_text())
    if not mode:
        assert len(body) == 201
    assert {name[0] for name in body} >= {"_"}


def test_a_foreign_file_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "cache.json"
    path.write_text('{"_metadata": {"gpu": "NVIDIA B200"}, "x": ["R", 1]}')
    before = path.read_bytes()
    written = write_cache(path, content(a=1), HERE, merged=True)
    assert (written.done, written.reason) == (False, "FOREIGN")
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "data", [b"", b'{"_metadata": {"gp', b'{"a": ["R", 1]}'], ids=["empty", "cut off", "no metadata"]
)
def test_what_is_no_cache_is_replaced(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "cache.json"
    path.write_bytes(data)
    assert write_cache(path, content(a=1), HERE, merged=True).done
    assert read_cache(path, HERE)[0].entries == 1


def test_a_full_disk_leaves_the_old_file_and_no_scraps(tmp_path: Path) -> None:
    path = tmp_path / "cache.json"
    write_cache(path, content(a=1), HERE, merged=True)
    before = path.read_bytes()
    done, reason, detail, _ = answer(start(path, ",".join(f"key{number}" for number in range(99)), "full"))
    assert (done, reason) == ("False", "UNWRITABLE")
    assert "[Errno 27]" in detail
    assert path.read_bytes() == before
    assert sorted(item.name for item in tmp_path.iterdir()) == [".cache.json.lock", "cache.json"]


def watch_write(monkeypatch: pytest.MonkeyPatch, *, fails_at: str = "") -> list[str]:
    """The calls that make a write lasting, in order; one of them may fail."""
    calls: list[str] = []

    def watched(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            calls.append(name)
            if name == fails_at:
                raise OSError(errno.EIO, "Input/output error")
            return real(*args, **kwargs)

        return call

    for name in ("fchmod", "fsync", "replace"):
        monkeypatch.setattr(os, name, watched(name, getattr(os, name)))
    return calls


def test_a_write_is_a_temporary_file_that_is_flushed_and_renamed_and_the_folder_is_flushed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = watch_write(monkeypatch)
    assert write_cache(tmp_path / "cache.json", content(a=1), HERE, merged=True).done
    assert calls == ["fchmod", "fsync", "replace", "fsync"]


@pytest.mark.parametrize("step", ["fchmod", "fsync", "replace"])
def test_a_write_that_fails_at_any_step_leaves_the_old_file_and_no_scraps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = tmp_path / "cache.json"
    write_cache(path, content(a=1), HERE, merged=True)
    before = path.read_bytes()
    watch_write(monkeypatch, fails_at=step)
    written = write_cache(path, content(b=2), HERE, merged=True)
    assert (written.done, written.reason) == (False, "UNWRITABLE")
    assert "[Errno 5]" in written.detail
    assert path.read_bytes() == before
    assert sorted(item.name for item in tmp_path.iterdir()) == [".cache.json.lock", "cache.json"]


def test_a_writer_that_is_killed_before_the_rename_leaves_the_old_file_and_its_scrap_goes_in_time(
    tmp_path: Path,
) -> None:
    path = tmp_path / "cache.json"
    write_cache(path, content(a=1), HERE, merged=True)
    before = path.read_bytes()
    with start(path, "b", "killed") as process:
        assert process.wait() == -signal.SIGKILL
    assert path.read_bytes() == before
    (scrap,) = tmp_path.glob("*.tmp")
    assert write_cache(path, content(c=3), HERE, merged=True).done
    assert scrap.exists(), "it might be another writer's who is at work"
    os.utime(scrap, (0, 0))
    assert write_cache(path, content(d=4), HERE, merged=True).done
    assert not scrap.exists()
    assert read_cache(path, HERE)[0].entries == 3


def test_a_folder_of_another_user_is_unwritable_with_its_errno(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir(mode=0o555)
    done, reason, detail, _ = answer(start(folder / "new" / "cache.json", "a", "nobody"))
    assert (done, reason) == ("False", "UNWRITABLE")
    assert "[Errno 13]" in detail


def test_a_file_that_cannot_be_read_is_a_miss_with_its_errno(tmp_path: Path) -> None:
    (tmp_path / "cache.json").mkdir()
    state, _, _ = read_cache(tmp_path / "cache.json", HERE)
    assert (state.kind, state.reason) == (CacheKind.MISS, "UNREADABLE")
    assert "[Errno 21]" in state.detail


def test_what_is_in_the_way_of_a_write_is_named_and_not_the_temporary_file(tmp_path: Path) -> None:
    (tmp_path / "cache.json").mkdir()
    written = write_cache(tmp_path / "cache.json", content(a=1), HERE, merged=True)
    assert (written.done, written.detail) == (False, f"[Errno 21] Is a directory: '{tmp_path / 'cache.json'}'")


def test_a_path_below_a_file_is_absent_and_unwritable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert read_cache(tmp_path / "file" / "x", HERE)[0].kind is CacheKind.ABSENT
    assert "[Errno" in probe_writable(tmp_path / "file" / "folder")
    assert probe_writable(tmp_path / "folder") == ""


def test_a_pipe_or_a_device_is_a_miss_and_nobody_waits_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "cache.json")
    for path in (tmp_path / "cache.json", Path("/dev/null")):
        state, _, _ = read_cache(path, HERE)
        assert (state.kind, state.reason) == (CacheKind.MISS, "UNREADABLE")
        assert "not a regular file" in state.detail
    assert write_cache(tmp_path / "cache.json", content(a=1), HERE, merged=True).done
    assert read_cache(tmp_path / "cache.json", HERE)[0].kind is CacheKind.VALID


def test_a_file_over_its_bound_is_a_miss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_cache(tmp_path / "cache.json", content(a=1), HERE, merged=True)
    monkeypatch.setattr(cache_file, "MAX_BYTES", 10)
    state, _, _ = read_cache(tmp_path / "cache.json", HERE)
    assert (state.kind, state.reason) == (CacheKind.MISS, "UNREADABLE")
    assert "larger than 10 bytes" in state.detail


@pytest.mark.parametrize("data", [b"[" * 100_000, b"{", b"5", b"\xff"], ids=["deep", "cut off", "number", "no UTF-8"])
def test_notes_that_cannot_be_read_are_none(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "managed-notes.json").write_bytes(data)
    assert read_notes(tmp_path / "managed") == {}
