"""The capabilities table on disk: the one that ships inside the package, or another file."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tooling.capabilities.table import Table
from tooling.capabilities.table_text import FILE_NAME, dump, parse
from tooling.edges.files.durable import replace_file
from tooling.edges.packaged_data import DATA
from tooling.errors import InputError

TABLE = DATA / FILE_NAME


def load_table(path: Path = TABLE) -> Table:
    """The table in that file.

    Raises:
        InputError: the file cannot be read, or is no table.
    """
    return _load(path, path.stat().st_mtime_ns if path.is_file() else 0)


def save_table(table: Table, path: Path = TABLE) -> None:
    """Replaces the file at once. Raises InputError."""
    try:
        replace_file(path, dump(table).encode())
    except OSError as cause:
        raise InputError(f"{path}: cannot be written: {cause.strerror}", hint="give --table FILE") from cause


@cache
def _load(path: Path, _changed: int) -> Table:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        raise InputError(f"{path}: the capabilities table cannot be read: {cause}", reason="BAD_TABLE") from cause
    return parse(text, path=path.name)
