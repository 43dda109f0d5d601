"""Turns a wish to end (Ctrl-C, SIGTERM, SIGHUP) into one exception, so that what we started is ended before we are."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

WISHES = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
CLEANING_S = 60.0
"""How long the first wish to end is carried out undisturbed; what hangs in a driver cannot be ended at all."""


@contextmanager
def ending_politely() -> Iterator[None]:
    """Inside, a wish to end raises KeyboardInterrupt, and further ones are not heard while that one is carried out.

    People press Ctrl-C twice, and a terminal's Ctrl-C is followed by the SIGTERM of whoever started us. A wish that our
    caller ignores, as `nohup` does, is not heard at all. Outside, all is as before.
    """
    with _heard_by(_Wish(), where=lambda present: present not in {None, signal.SIG_IGN}):
        yield


@contextmanager
def undisturbed() -> Iterator[None]:
    """Inside, a signal that would raise KeyboardInterrupt is noted, and raises it at the end.

    For the end of what was killed: it ends nobody any longer, and its strays must not be forgotten. Handlers are
    exchanged rather than signals blocked: another thread would take those in, and Python's handler runs in the main
    thread all the same. What the system does to a signal by itself (ends us, ignores it) stays as it is.
    """
    heard: list[int] = []
    with _heard_by(lambda number, _: heard.append(number), where=callable):
        yield
    if heard:
        raise KeyboardInterrupt(signal.Signals(heard[0]).name)


@contextmanager
def _heard_by(handler: Callable[[int, FrameType | None], object], *, where: Callable[[Any], bool]) -> Iterator[None]:
    """Inside, that handler hears the wishes whose present one is as `where` says. Another thread has no say in it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: present for number in WISHES if where(present := signal.getsignal(number))}
    try:
        for number in before:
            signal.signal(number, handler)
        yield
    finally:
        for number, present in before.items():
            signal.signal(number, present)


class _Wish:
    """The handler of every wish; it knows when the first one came."""

    def __init__(self) -> None:
        self._came: float | None = None

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._came is None or now - self._came > CLEANING_S:
            self._came = now
            raise KeyboardInterrupt(signal.Signals(number).name)
