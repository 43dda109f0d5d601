"""Writes what a user asked for into a file of the user's choice: whole or not at all, or into a pipe that reads it."""

from __future__ import annotations

import os
from pathlib import Path

from tooling.edges.files.durable import replace_file
from tooling.errors import EdgeError


def write_output(path: Path, text: str) -> None:
    """Replaces the file; a device or a pipe, such as /dev/stderr, is written to instead of being replaced.

    Raises:
        EdgeError: the folder is missing, the disk is full, …
    """
    data = text.encode("utf-8", "backslashreplace")
    try:
        if path.exists() and not path.is_file():
            with open(path, "wb") as stream:
                stream.write(data)
        else:
            replace_file(Path(os.path.realpath(path)), data)
    except OSError as cause:
        raise EdgeError(
            f"{path}: cannot be written: {cause.strerror}", hint="name another file", reason="UNWRITABLE"
        ) from cause
