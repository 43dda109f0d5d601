"""Files for a subprocess that nobody else may read, gone when the work is done: secrets, and what a build reports."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tooling.errors import EdgeError


@contextmanager
def private_folder() -> Iterator[Path]:
    """A new folder that only this user can read; removed with all that is in it.

    Raises:
        EdgeError: there is no place for one.
    """
    try:
        made = tempfile.TemporaryDirectory(prefix="pin-pipeline-", ignore_cleanup_errors=True)
    except OSError as cause:
        raise EdgeError(
            f"a temporary folder cannot be made: {cause}",
            hint="set TMPDIR to a folder that can be written",
            reason="NO_SCRATCH",
        ) from cause
    with made as folder:
        yield Path(folder)


def write_private(path: Path, text: str) -> Path:
    """Writes a new file that only this user can read; returns its path."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    return path
