"""The capabilities table on disk: the one that ships inside the package, or another file."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from packaging.version import Version

from tooling.capabilities.table import Table
from tooling.capabilities.table_text import FILE_NAME, dump, parse_body, parse_json
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


def load_rows(*releases: Version) -> Table:
    """The shipped table with only the rows that list one of these releases: what a bump asks, in a tenth of the time.

    Raises:
        InputError: as `load_table`, but for the rows that were passed over.
    """
    return parse_body(_load_body(TABLE, TABLE.stat().st_mtime_ns), path=TABLE.name, only=releases)


def save_table(table: Table, path: Path = TABLE) -> None:
    """Replaces the file at once. Raises InputError."""
    try:
        replace_file(path, dump(table).encode())
    except OSError as cause:
        raise InputError(f"{path}: cannot be written: {cause.strerror}", hint="give --table FILE") from cause


@cache
def _load(path: Path, changed: int) -> Table:
    return parse_body(_load_body(path, changed), path=path.name)


@cache
def _load_body(path: Path, _changed: int) -> object:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        raise InputError(f"{path}: the capabilities table cannot be read: {cause}", reason="BAD_TABLE") from cause
    return parse_json(text, path=path.name)
