"""Waiting for a fact instead of for a time: the limit is there for what never happens, not for a slow machine."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable
from pathlib import Path

LIMIT_S = 240.0


def wait_for(holds: Callable[[], object]) -> None:
    """Returns once it holds. Fails the test if it does not within minutes."""
    deadline = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.05)


def lives(pid: int) -> bool:
    """Whether there is such a process that is not only waiting to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until_dead(pids: Iterable[int]) -> None:
    """Returns once none of them lives. A process that was killed is there until it has run once more."""
    wait_for(lambda: not any(lives(pid) for pid in pids))


def listens(host: str, port: int) -> bool:
    """Whether a server takes connections there."""
    with socket.socket() as client:
        return client.connect_ex((host, port)) == 0
