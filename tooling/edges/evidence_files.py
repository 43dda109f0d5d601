"""Writes evidence records into their folder, which git ignores by a `.gitignore` of its own."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from tooling.edges.files.durable import make_private_folder, replace_file
from tooling.errors import EdgeError
from tooling.evidence import Record, render_record


def write_record(folder: Path, record: Record) -> Path:
    """Replaces the record of the same stage and subject; returns its path.

    Raises:
        EdgeError: the folder cannot be made or written.
    """
    path = folder / record.file_name
    prepare_folder(folder)
    try:
        replace_file(path, render_record(record).encode("utf-8", "backslashreplace"))
    except OSError as cause:
        raise _unwritable(path, cause) from cause
    return path


def prepare_folder(folder: Path) -> None:
    """Makes the folder, or raises EdgeError: asked before work that could not be recorded afterwards."""
    try:
        make_private_folder(folder)
    except OSError as cause:
        raise _unwritable(folder, cause) from cause
    if not os.access(folder, os.W_OK):
        raise _unwritable(folder, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))


def _unwritable(path: Path, cause: OSError) -> EdgeError:
    return EdgeError(
        f"{path}: the record cannot be written: {cause.strerror}",
        hint="name another folder with --evidence DIR",
        reason="UNWRITABLE",
    )
