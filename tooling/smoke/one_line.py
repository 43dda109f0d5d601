"""What programs say, fit for a line of a finding: an exception may hold all that a compiler wrote."""

from __future__ import annotations

import re

LONGEST = 300
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[@-_]|[\x00-\x08\x0e-\x1f\x7f]")
"""Colours and cursors of a terminal, and what no terminal shows."""


def one_line(text: str) -> str:
    """The text on one line without control characters, cut in the middle where it is too long: what counts stands at
    the beginning and at the end.
    """
    line = " ".join(CONTROL.sub("", text).split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST // 3]} … {line[-2 * LONGEST // 3 :]}"
