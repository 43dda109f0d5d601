"""What to do with a bump that was cut short: all old, all new, or hands off."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal


class FileState(StrEnum):
    """How a file compares with the write-ahead record."""

    BEFORE = "before"
    AFTER = "after"
    NEITHER = "neither"


Direction = Literal["old", "new"]


def decide_healing(states: Mapping[str, FileState]) -> Direction | list[str]:
    """`new` if at least one file is new already, else `old`; or the files that are neither: then touch nothing."""
    foreign = [path for path, state in states.items() if state is FileState.NEITHER]
    if foreign:
        return foreign
    return "new" if FileState.AFTER in states.values() else "old"
