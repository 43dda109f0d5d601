"""Says what a slow step is doing: a spinner on a terminal, one line after two seconds elsewhere. On stderr."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

QUIET_S = 2.0


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Shows `what` until the block ends."""
    if sys.stderr.isatty():
        from rich.console import Console  # noqa: PLC0415 - 100 ms, only on a terminal

        with Console(stderr=True).status(what):
            yield
        return
    timer = threading.Timer(QUIET_S, lambda: print(f"{what} …", file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
