"""The folder that FlashInfer compiles into: a fresh one for each smoke run, or one that an earlier run has filled."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tooling.edges.files.durable import replace_file
from tooling.errors import EdgeError, InputError

MARKER = "smoke-jit-cache.json"
"""What the folder's kernels were compiled for."""


def open_jit_cache(folder: Path, made_for: Mapping[str, str | None]) -> dict[str, object]:
    """What is known of that folder, for the record. A missing or empty one is made and marked.

    Raises:
        InputError: its kernels belong to another environment, or nothing says to which.
        EdgeError: it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder):
            fresh = _check_or_mark(folder, made_for)
    except OSError as cause:
        raise EdgeError(
            f"{folder}: cannot be used for compiled kernels: {cause.strerror}", reason="UNWRITABLE"
        ) from cause
    return {"fresh": fresh, "folder": str(folder), **made_for}


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One run at a time looks and marks, where the file system has locks; compiling itself is FlashInfer's to lock."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _check_or_mark(folder: Path, made_for: Mapping[str, str | None]) -> bool:
    """Whether it was empty and is marked now; else it is marked for the same."""
    there = {path.name for path in folder.iterdir()}
    if MARKER in there:
        _check(folder, made_for)
        return False
    if there:
        raise InputError(
            f"{folder}: holds files and no {MARKER}, so nothing says what its kernels were compiled for",
            hint="name an empty folder, or one that an earlier `--jit-cache` has filled",
            reason="JIT_CACHE_UNMARKED",
        )
    replace_file(folder / MARKER, (json.dumps(dict(made_for), indent=2, sort_keys=True) + "\n").encode())
    return True


def _check(folder: Path, made_for: Mapping[str, str | None]) -> None:
    path = folder / MARKER
    try:
        recorded = json.loads(path.read_bytes())
        differing = [name for name, value in made_for.items() if recorded.get(name) != value]
    except (ValueError, AttributeError, RecursionError) as cause:
        raise InputError(
            f"{path}: cannot be read: {cause}", hint="empty the folder", reason="JIT_CACHE_UNMARKED"
        ) from cause
    if differing:
        parts = (f"{name} {recorded.get(name)} there, {made_for[name]} here" for name in differing)
        raise InputError(
            f"{folder}: its kernels were compiled for another environment: {'; '.join(parts)}",
            hint="name another folder, or empty this one",
            reason="JIT_CACHE_FOREIGN",
        )
