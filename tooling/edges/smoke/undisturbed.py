"""Lets the wish to end wait: a worker that was killed ends nobody any longer, and its strays must not be forgotten."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tooling.edges.private_files import private_folder
from tooling.edges.serving.signals import WISHES


@contextmanager
def undisturbed() -> Iterator[None]:
    """Inside, a signal that would raise KeyboardInterrupt is noted, and raises it at the end.

    Handlers are exchanged rather than signals blocked: another thread would take those in, and Python's handler runs in
    the main thread all the same. What the system does to a signal by itself (ends us, ignores it) stays as it is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []
    before = {number: handler for number in WISHES if callable(handler := signal.getsignal(number))}
    try:
        for number in before:
            signal.signal(number, lambda number, _: heard.append(number))
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if heard:
        raise KeyboardInterrupt(signal.Signals(heard[0]).name)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A private folder that is removed whole: logs and kernels take their time, and nobody comes back for them.

    Raises:
        EdgeError: there is no place for one.
    """
    with ExitStack() as kept:
        folder = kept.enter_context(private_folder())
        try:
            yield folder
        finally:
            with undisturbed():
                kept.close()
