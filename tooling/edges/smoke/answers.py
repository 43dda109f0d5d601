"""What a worker has left on the disk: its answer, taken only whole and as its own, and the end of its log."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tooling.smoke.observations import RankSeen
from tooling.smoke.shapes import is_seconds, mistyped, mistyped_report
from tooling.strict_json import parse_strict_json

MOST_BYTES = 64 * 1024**2
"""An answer has some 10 kB; whatever is larger is none, and is not read into memory."""
TAIL_BYTES = 4000


def load_answer(path: Path, rank: int) -> dict[str, Any]:
    """That rank's answer; {} if there is none, or none that a worker of ours writes."""
    try:
        if path.stat().st_size > MOST_BYTES:
            return {}
        body = parse_strict_json(path.read_bytes())
        seen = RankSeen.from_json(body["seen"])
        return body if seen.rank == rank and _is_whole(body, seen) else {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _is_whole(body: dict[str, Any], seen: RankSeen) -> bool:
    """Whether all of it has the types that are counted on while scenarios run; the checks look further."""
    opened = body.get("opened")
    return (
        not any(mistyped(seen))
        and not (seen.report and any(mistyped_report(seen.report)))
        and isinstance(opened, list)
        and all(isinstance(name, str) for name in opened)
        and is_seconds(body.get("seconds", 0))
        and isinstance(body.get("record", {}), dict)
        and isinstance(body.get("path", ""), str)
    )


def load_tail(path: Path) -> str:
    """The last bytes of a log, however large it is."""
    try:
        with path.open("rb") as log:
            log.seek(max(os.fstat(log.fileno()).st_size - TAIL_BYTES, 0))
            return log.read(TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
