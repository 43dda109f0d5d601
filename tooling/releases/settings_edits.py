"""Edits on release.toml as values: the tables that a bump keeps there. Every other byte of the file stays.

Only whole tables of ours are exchanged (tomlkit spells them), because a TOML document that is edited through its parsed
form gives comments behind a table to that table and loses them with it. The result is parsed again and compared.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import tomlkit

from tooling.errors import InputError
from tooling.pins.release_settings import DroppedPin, MovedCompanion

_COMMENT = "# What the indexes showed when the pin moved here; `bump` writes it, the image proof compares it.\n"
_HEADER = re.compile(r"\s*\[")
_KEPT = ("sha256", "dropped", "moved")


def write_kept(
    text: str, *, sha256: Mapping[str, str], dropped: Iterable[DroppedPin], moved: Iterable[MovedCompanion]
) -> str:
    """The text with exactly these kept values; unchanged, byte by byte, if it holds them already.

    Raises:
        InputError: the file spells these tables in a way that is not ours (inline, dotted keys).
    """
    before = tomllib.loads(text.removeprefix("\ufeff"))
    wanted: dict[str, Any] = {
        "sha256": dict(sorted(sha256.items())),
        "dropped": [asdict(pin) for pin in dropped],
        "moved": [asdict(companion) for companion in moved],
    }
    held = before.get("flashinfer", {})
    newline = "\r\n" if "\r\n" in text else "\n"
    after = text
    for key in _KEPT:
        if wanted[key] != held.get(key, type(wanted[key])()):
            after = _exchange(after, key, _spell(key, wanted[key]).replace("\n", newline), newline)
    _check(before, after, wanted)
    return after


def _spell(key: str, value: Mapping[str, str] | list[dict[str, str]]) -> str:
    if not value:
        return ""
    table: dict[str, object] = {"flashinfer": {key: value}}
    text = tomlkit.dumps(table).replace("[flashinfer]\n", "", 1).lstrip("\n")
    return text.replace("]\n", f"]\n{_COMMENT}", 1) if key == "sha256" else text


def _exchange(text: str, key: str, new: str, newline: str) -> str:
    """The text with the tables of that key replaced, where the first of them stands or else at the end."""
    lines = text.splitlines(keepends=True)
    ours = re.compile(rf"\s*\[\[?\s*flashinfer\s*\.\s*{key}\s*\]")
    kept: list[str] = []
    place: int | None = None
    position = 0
    while position < len(lines):
        if not ours.match(lines[position]):
            kept.append(lines[position])
            position += 1
            continue
        position = _table_end(lines, position)
        place = len(kept) if place is None else place
    head, tail = "".join(kept[:place]), "".join(kept[place:] if place is not None else [])
    return _join(head, new, tail, newline)


def _table_end(lines: list[str], start: int) -> int:
    """Behind the table's last key: comments and empty lines after it belong to whatever follows."""
    end = last = start + 1
    while end < len(lines) and not _HEADER.match(lines[end]):
        if lines[end].strip() and not lines[end].lstrip().startswith("#"):
            last = end + 1
        end += 1
    if end < len(lines) and _HEADER.match(lines[end]) and not "".join(lines[last:end]).strip():
        return end
    return last


def _join(head: str, new: str, tail: str, newline: str) -> str:
    """The parts with one empty line between them."""
    if head and not head.endswith("\n"):
        head += newline
    if not new:
        return head.rstrip("\r\n") + newline + (newline + tail if tail.strip() else "") if head.strip() else tail
    gap = newline if head.strip() and not head.endswith(newline * 2) else ""
    after = newline if tail.strip() and not tail.startswith(newline) else ""
    return head + gap + new + after + (tail if tail.strip() else "")


def _check(before: dict[str, Any], after: str, wanted: Mapping[str, Any]) -> None:
    expected = {**before, "flashinfer": {**before.get("flashinfer", {}), **wanted}}
    try:
        found = tomllib.loads(after.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError:
        found = {}
    if _filled(found) != _filled(expected):
        raise InputError(
            "release.toml: [flashinfer] is spelled in a way that a bump cannot edit",
            hint="write its sha256, dropped and moved as tables of their own, or delete them",
            reason="BAD_SETTINGS",
        )


def _filled(data: Mapping[str, Any]) -> dict[str, Any]:
    """The data without empty tables of ours."""
    ours = {key: value for key, value in data.get("flashinfer", {}).items() if value}
    rest = {key: value for key, value in data.items() if key != "flashinfer"}
    return {**rest, "flashinfer": ours}
