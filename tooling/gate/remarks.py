"""What is said of one record, before it is known which requirement the record serves."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from packaging.version import Version

from tooling.gate.values import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """One thing about a record: `outcome` PASS is only shown, INCOMPLETE does not let it count, FAIL is the release's.

    `blocks`: no other record of the same stage and subject makes good for it.
    """

    word: str
    detail: str
    outcome: Outcome = Outcome.INCOMPLETE
    blocks: bool = False


def contradiction(detail: str) -> Remark:
    """The record says two things that cannot both be true."""
    return Remark(word="CONTRADICTORY", detail=detail, blocks=True)


def failure(word: str, detail: str) -> Remark:
    """Something that running the stage again does not mend."""
    return Remark(word=word, detail=detail, outcome=Outcome.FAIL, blocks=True)


def note(word: str, detail: str) -> Remark:
    """Shown, and does not count."""
    return Remark(word=word, detail=detail, outcome=Outcome.PASS)


def shown_time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M UTC")


def same_commit(one: str, other: str) -> bool:
    """Equal, or one is the beginning of the other, as git shortens them."""
    short, long = sorted((one.lower(), other.lower()), key=len)
    return len(short) >= 7 and long.startswith(short)


def public(version: str) -> str:
    """The version without its local label, `0.6.13` for `0.6.13+cu130`; other text as it is."""
    try:
        return Version(version).public
    except ValueError:  # InvalidVersion, and a number with more digits than Python reads
        return version
