"""Text from elsewhere made harmless: what cannot be seen is shown as an escape. Markup is each renderer's own."""

from __future__ import annotations

import re

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, and with them a terminal's escape sequences
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff9-\ufffb"
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"  # what UTF-8 or XML cannot hold
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f\U000e0100-\U000e01ef]"  # what nobody sees
)
"""Characters that are not shown, or that change the order of others. The joiners stay: scripts and emoji need them."""


def clean(text: str) -> str:
    r"""The text with everything hidden in it shown (`\x1b`, `\u202e`); line ends are LF, tabs and newlines stay.

    What comes back can be encoded in UTF-8 and stand in XML.
    """
    return _HIDDEN.sub(_show, text.replace("\r\n", "\n"))


def one_line(text: str, limit: int | None = None) -> str:
    """The clean text on one line, cut behind `limit` characters with a count of what is left out."""
    return cut(" ".join(clean(text).split()), limit)


def console_line(text: str, limit: int | None = None) -> str:
    """One line for a terminal. A CI server that reads our output finds no command of its own in it.

    No line of ours begins with such a text, since `::` is a command there; `##[` is one anywhere in a line.
    """
    return one_line(text, limit).replace("##[", "## [")


def cut(text: str, limit: int | None) -> str:
    """The text, or its beginning and how many characters follow."""
    if limit is None or len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text) - limit:,} characters more)"


def _show(match: re.Match[str]) -> str:
    number = ord(match.group())
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
