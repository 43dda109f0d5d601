"""Turns a wish to end (Ctrl-C, SIGTERM, SIGHUP) into one exception, so that what we started is ended before we are."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

WISHES = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
CLEANING_S = 60.0
"""How long the first wish to end is carried out undisturbed; what hangs in a driver cannot be ended at all."""


@contextmanager
def ending_politely() -> Iterator[None]:
    """Inside, a wish to end raises KeyboardInterrupt, and further ones are not heard while that one is carried out.

    People press Ctrl-C twice, and a terminal's Ctrl-C is followed by the SIGTERM of whoever started us. A wish that our
    caller ignores, as `nohup` does, is not heard at all. Outside, all is as before.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    wish = _Wish()
    before = {number: signal.getsignal(number) for number in WISHES}
    heard = {number: handler for number, handler in before.items() if handler not in {None, signal.SIG_IGN}}
    for number in heard:
        signal.signal(number, wish)
    try:
        yield
    finally:
        for number, handler in heard.items():
            signal.signal(number, handler)


class _Wish:
    """The handler of every wish; it knows when the first one came."""

    def __init__(self) -> None:
        self._came: float | None = None

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._came is None or now - self._came > CLEANING_S:
            self._came = now
            raise KeyboardInterrupt(signal.Signals(number).name)
