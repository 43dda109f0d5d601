"""Regular expressions that are compiled when they are first used: most runs need a few of them, and start-up counts."""

from __future__ import annotations

import re
from typing import Any, cast


class _Late:
    """Stands for a pattern until one of its methods is asked for; from then on that method is the instance's own."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._pattern, self._flags = pattern, flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(self._pattern, self._flags), name)
        setattr(self, name, found)
        return found


def late(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """As `re.compile`, for a pattern of a module. A broken one is found by the tests, which use every reader."""
    return cast(re.Pattern[str], _Late(pattern, flags))
