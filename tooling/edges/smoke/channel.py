"""A worker's line to the orchestrator: steps go out, the word to go comes in, and its end ends the worker."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from typing import TextIO

from tooling.edges.serving.reaping import MARK, end_all

TELL_EVERY_S = 0.2
"""Profiles may take microseconds; the orchestrator needs to hear that work goes on, not each of them."""
STEPS = (
    "start",
    "tune",
    "verify",
    "complete",
    "recheck",
    "count",
    "errors",
    "results",
    "ready",
    "join",
    "end",
    "close",
)
STEP_BEGINNINGS = ("waits at ", "after ", "check ", "look up at ")


class Channel:
    """Steps are JSON lines on what was stdout; stdout and stderr themselves go to the log from here on."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._go = threading.Event()
        self._told = 0.0
        self.step = "import"
        self.profiles = 0

    def hear(self, text: str) -> None:
        """The warm-up's listener: a step, an operation at hand, or "" for one kernel that is timed."""
        if not text:
            self.profiles += 1
        elif text in STEPS or text.startswith(STEP_BEGINNINGS):
            self.at(text)
            return
        if time.monotonic() - self._told >= TELL_EVERY_S:
            self._tell(f"{self.step}: {text}" if text else self.step)

    def at(self, step: str) -> None:
        """Says at once what this rank does from now on."""
        self.step = step
        self._tell(step)

    def repeat(self, step: str, profiles: int) -> None:
        """Says what a worker elsewhere has said."""
        self.profiles = profiles
        self.at(step)

    @property
    def may_go(self) -> bool:
        return self._go.is_set()

    def wait_for_go(self) -> None:
        self._go.wait()

    def listen(self) -> None:
        """Waits in a thread of its own for the word to go; the end of the input means that nobody waits for us."""
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in sys.stdin:
            if line.strip() == "go":
                self._go.set()
        _end_all()

    def _tell(self, text: str) -> None:
        self._told = time.monotonic()
        try:
            print(json.dumps({"step": text, "profiles": self.profiles}), file=self._out, flush=True)
        except OSError:
            _end_all()


def _end_all() -> None:
    """Nobody is left who would end what this run has started, in whatever group it is; this process with it."""
    if mark := os.environ.get(MARK):
        end_all(mark, None, grace_s=0.0)
    os.killpg(0, signal.SIGKILL)


def open_channel(log: str) -> Channel:
    """Keeps the real stdout for itself and sends all else that prints to the log."""
    out = os.fdopen(os.dup(1), "w")
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    os.close(handle)
    return Channel(out)
