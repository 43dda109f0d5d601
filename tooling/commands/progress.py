"""How far a slow step or a long job is: a spinner or a bar on a terminal, lines elsewhere. Always on stderr."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

QUIET_S = 2.0


def is_terminal() -> bool:
    """Whether a person sees stderr come; it may be closed."""
    return sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Shows `what` until the block ends."""
    if is_terminal():
        from rich.console import Console  # noqa: PLC0415 - 100 ms, only on a terminal

        with Console(stderr=True).status(what):
            yield
        return
    timer = threading.Timer(QUIET_S, lambda: _say(f"{what} …"))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


Item = TypeVar("Item")
LINE_EVERY_S = 10.0
"""Elsewhere than on a terminal."""


def follow(items: Iterable[Item], *, total: int, what: str) -> Iterator[Item]:
    """The items, while a bar (or sparse lines) says how many of `total` have come."""
    if not is_terminal():
        yield from _follow_in_lines(items, total=total, what=what)
        return
    from rich.console import Console  # noqa: PLC0415  # costs 100 ms, paid only where a bar is shown
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        for item in items:
            bar.advance(task)
            yield item


def _follow_in_lines(items: Iterable[Item], *, total: int, what: str) -> Iterator[Item]:
    said = time.monotonic()
    for count, item in enumerate(items, start=1):
        if time.monotonic() - said >= LINE_EVERY_S:
            said = time.monotonic()
            _say(f"{what}: {count} of {total}")
        yield item


def _say(text: str) -> None:
    """Nothing where stderr is closed: `print` would take stdout, which may carry JSON."""
    if sys.stderr is not None:
        print(text, file=sys.stderr, flush=True)
