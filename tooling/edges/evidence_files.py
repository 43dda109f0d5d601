"""Writes evidence records into their folder, which git ignores by a `.gitignore` of its own."""

from __future__ import annotations

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
    try:
        make_private_folder(folder)
        replace_file(path, render_record(record).encode())
    except OSError as cause:
        raise EdgeError(
            f"{path}: the record cannot be written: {cause.strerror}",
            hint="name another folder with --evidence DIR",
            reason="UNWRITABLE",
        ) from cause
    return path
