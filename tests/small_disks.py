"""Small file systems that are really full or read-only, mounted for one test, which root may do."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PAGE = 4096


@contextlib.contextmanager
def mounted_disk(folder: Path, *, pages: int) -> Iterator[Path]:
    """A file system of so many pages in that new folder; skips the test where nobody may mount."""
    if sys.platform != "linux":
        pytest.skip("tmpfs is Linux's")
    folder.mkdir()
    mount("-t", "tmpfs", "-o", f"size={pages * PAGE}", "small-disk-test", str(folder))
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def mount(*words: str) -> None:
    done = subprocess.run(["mount", *words], capture_output=True, check=False, text=True)
    if done.returncode != 0:
        pytest.skip(f"this machine lets nobody mount here: {done.stderr.strip()}")


def fill(disk: Path, *, leave_pages: int) -> Path:
    """Fills the disk but for so many pages; returns the file that does."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * PAGE)
        except OSError:
            file.truncate(file.tell() - leave_pages * PAGE)
    return filler
