"""Cache files on disk: read whole, written beside and renamed, merged under a lock. Never raises for a disk."""

from __future__ import annotations

import contextlib
import errno
import glob
import json
import os
import stat
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tooling.warmup.cache_text import ENTRIES_FIELD, CacheFile, CacheKind, CacheState, judge, merge, render
from tooling.warmup.locks import describe, locked

TRIES_WITHOUT_LOCK = 5
SCRAP_SUFFIX, SCRAP_AGE_S = ".tmp", 600.0
MAX_BYTES = 64_000_000
"""The largest cache file that is read; one of a thousand entries has 0.2 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """How a write went: `reason` is "" or UNWRITABLE or FOREIGN with `detail`; `lock` says why no lock was held."""

    done: bool
    reason: str = ""
    detail: str = ""
    lock: str = ""

    def as_json(self) -> dict[str, object]:
        return {"done": self.done, "reason": self.reason, "detail": self.detail, "lock": self.lock}


def read_cache(path: Path, current: Mapping[str, str]) -> tuple[CacheState, CacheFile | None, bytes | None]:
    """What lies there for the current environment. A file that cannot be read is a miss with its errno."""
    try:
        data = read_regular(path)
    except (FileNotFoundError, NotADirectoryError):
        data = None
    except OSError as cause:
        return CacheState(kind=CacheKind.MISS, reason="UNREADABLE", detail=describe(cause)), None, None
    state, file = judge(data, current)
    return state, file, data


def write_cache(
    path: Path, file: CacheFile, current: Mapping[str, str], *, merged: bool, theirs_first: bool = False
) -> Written:
    """Puts the file there, whole or not at all; `merged` keeps entries that another writer has put there meanwhile.

    Where both have a key ours wins, or with `theirs_first` what is there. A file of another environment is never
    overwritten. The lock lies beside the file and is never deleted.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path) as lock:
            _sweep(path)
            tries = TRIES_WITHOUT_LOCK if lock.trouble and merged else 1
            written = _write(path, file, current, merged=merged, theirs_first=theirs_first)
            for attempt in range(1, tries):
                if written.reason or _holds(path, file, current):
                    break
                time.sleep(0.02 * attempt)
                written = _write(path, file, current, merged=merged, theirs_first=theirs_first)
        return Written(done=written.done, reason=written.reason, detail=written.detail, lock=lock.trouble)
    except OSError as cause:
        return Written(done=False, reason="UNWRITABLE", detail=describe(cause))


def probe_writable(folder: Path) -> str:
    """Why nothing can be written below that folder, or "". Makes the folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as cause:
        return describe(cause)


def read_notes(folder: Path) -> dict[str, Any]:
    """Our notes beside FlashInfer's own store; {} where there are none that can be read."""
    try:
        notes = json.loads(read_regular(_notes_path(folder)))
    except (OSError, ValueError, RecursionError):
        return {}
    return notes if isinstance(notes, dict) and isinstance(notes.get(ENTRIES_FIELD), int) else {}


def write_notes(folder: Path, notes: Callable[[], Mapping[str, object]]) -> str:
    """Puts the notes beside that store; why it could not, or "". They are asked for under the lock."""
    path = _notes_path(folder)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path):
            replace_file(path, json.dumps(notes(), sort_keys=True).encode())
    except OSError as cause:
        return describe(cause)
    return ""


def read_regular(path: Path) -> bytes:
    """The bytes of a regular file of at most MAX_BYTES. Raises OSError; never waits for a pipe's other end."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        with os.fdopen(handle, "rb", closefd=False) as stream:
            data = stream.read(MAX_BYTES + 1)
    finally:
        os.close(handle)
    if len(data) > MAX_BYTES:
        raise OSError(errno.EFBIG, f"larger than {MAX_BYTES:,} bytes", str(path))
    return data


def replace_file(path: Path, data: bytes) -> None:
    """The bytes at that path, flushed, by one rename. Raises OSError and leaves no temporary file."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=SCRAP_SUFFIX)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fchmod(stream.fileno(), 0o644)
            os.fsync(stream.fileno())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    _flush_folder(path.parent)


def _sweep(path: Path) -> None:
    """Drops what writers that were killed have left beside that file; a write takes far less than SCRAP_AGE_S."""
    for scrap in path.parent.glob(f".{glob.escape(path.name)}.*{SCRAP_SUFFIX}"):
        with contextlib.suppress(OSError):
            if time.time() - scrap.stat().st_mtime > SCRAP_AGE_S:
                scrap.unlink()


def _write(path: Path, file: CacheFile, current: Mapping[str, str], *, merged: bool, theirs_first: bool) -> Written:
    state, there, _ = read_cache(path, current)
    if state.kind is CacheKind.FOREIGN:
        return Written(done=False, reason="FOREIGN", detail=state.detail)
    kept = file
    if merged and there is not None and state.kind is CacheKind.VALID:
        kept = merge([there, file] if theirs_first else [file, there])
    replace_file(path, render(kept))
    return Written(done=True)


def _holds(path: Path, file: CacheFile, current: Mapping[str, str]) -> bool:
    """Whether our entries are still there: without a lock another writer may have renamed over them."""
    _, there, _ = read_cache(path, current)
    return there is not None and set(file.entries) <= set(there.entries)


def _notes_path(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}-notes.json")


def _flush_folder(folder: Path) -> None:
    """Flushes the rename; some network file systems refuse, and then the rename is as durable as they make it."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
