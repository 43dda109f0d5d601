"""Numbers out of what a model wrote: the one after `####` (strict) and the last one (flexible)."""

from __future__ import annotations

import re
from decimal import Decimal

_NUMBER = re.compile(
    r"""
    (?: (?<![\w.)\]%]) (?P<minus>[-\u2212\u2012\u2013]) )?  # a sign, not the minus between two terms
    (?: [$\u20ac\u00a3] (?P<inner>[-\u2212])? )?             # $5; $-5, which some models write
    (?P<digits> [0-9]{1,3}(?:,[0-9]{3})+(?![0-9]) | [0-9]+ )? # 1,234,567 or 1234567
    (?P<fraction> \.[0-9]+ )?
    """,
    re.VERBOSE,
)
_MARK = "####"


def strict_answer(text: str) -> Decimal | None:
    """The first number in the rest of the line after a `####`, as GSM8K writes its own answers, or None."""
    for part in text.split(_MARK)[1:]:
        numbers = find_numbers(part.lstrip().split("\n", 1)[0])
        if numbers:
            return numbers[0]
    return None


def flexible_answer(text: str) -> Decimal | None:
    """The last number anywhere in the text, or None."""
    numbers = find_numbers(text)
    return numbers[-1] if numbers else None


def find_numbers(text: str) -> list[Decimal]:
    """Every number in reading order. Currency signs, percent signs, units and thousands separators do not count.

    A full stop after the digits ends a sentence; in `16-3` the dash is a minus between terms, in `= -3` a sign.
    """
    return [number for match in _NUMBER.finditer(text) if (number := _number(match)) is not None]


def _number(match: re.Match[str]) -> Decimal | None:
    digits, fraction = match["digits"], match["fraction"]
    if digits is None and fraction is None:
        return None
    value = Decimal((digits or "0").replace(",", "") + (fraction or ""))
    # Without this, "-0" and "0" would be two answers in a record.
    negative = bool(match["minus"] or match["inner"]) and value != 0
    return -value if negative else value
