"""What moving the pin changes: the release before against the present one, row against row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from packaging.version import Version

from tooling.capabilities.comparing import compare
from tooling.capabilities.table import Row, Table, lookup
from tooling.evidence import Record
from tooling.gate.values import BumpChange


def find_change(
    records: Sequence[Record], earlier: Sequence[Record], *, after: str | None, pins: str | None, table: Table
) -> BumpChange | None:
    """The change, None if nothing tells a release before. Records of that release tell it before the bump's own."""
    bump = _bump(records, after=after, pins=pins)
    before = _newest_version(earlier) or (None if bump is None else _text(bump.measurements.get("from")))
    if before is None and bump is None:
        return None
    row_before, row_after = find_row(table, before), find_row(table, after)
    changes = compare(row_before, row_after) if row_before and row_after else ()
    return BumpChange(
        before=before,
        after=after,
        row_before=row_before,
        row_after=row_after,
        changes=tuple(change.as_json() for change in changes),
        companions={} if bump is None else _companions(bump.measurements),
    )


def find_row(table: Table, version: str | None) -> Row | None:
    try:
        return None if version is None else lookup(table, Version(version))
    except ValueError:  # InvalidVersion, and a number with more digits than Python reads
        return None


def _bump(records: Sequence[Record], *, after: str | None, pins: str | None) -> Record | None:
    """The newest bump to that release that left these pins; a refused one changed nothing."""
    found = [
        record
        for record in records
        if record.stage == "bump" and record.status == "pass" and record.pins_sha256 == pins
        and record.measurements.get("to") == after
    ]  # fmt: skip
    return max(found, key=lambda record: (record.ended, repr(record)), default=None)


def _newest_version(records: Sequence[Record]) -> str | None:
    told = [record for record in records if record.flashinfer_version is not None]
    newest = max(told, key=lambda record: (record.ended, repr(record)), default=None)
    return None if newest is None else newest.flashinfer_version


def _companions(measured: Mapping[str, object]) -> dict[str, tuple[str | None, str | None]]:
    """Requirements that the bump moved, took out or put in, as its record says."""
    found: dict[str, tuple[str | None, str | None]] = {}
    before, after = _text(measured.get("from")), _text(measured.get("to"))
    for item in _list(measured.get("companions_moved")):
        if isinstance(item, Mapping) and (package := _text(item.get("package"))):
            found[package] = (_text(item.get("before")), _text(item.get("after")))
    for package in filter(None, map(_text, _list(measured.get("dropped")))):
        found[package] = (before, None)
    for package in filter(None, map(_text, _list(measured.get("restored")))):
        found[package] = (None, after)
    return dict(sorted(found.items()))


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
