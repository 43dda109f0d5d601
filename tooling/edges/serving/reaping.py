"""Ends every process of a server: its group, and whoever carries its mark in the environment.

A killed engine leaves workers behind, and some of them make sessions of their own; the mark finds those too.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

MARK = "TOOLING_SERVER_MARK"
GRACE_S = 15.0
"""How long an engine may take to end by itself; a process that ignores the wish is killed after it."""


def find_marked(mark: str) -> set[int]:
    """The living processes that carry that mark. Empty where the system has no /proc."""
    needle = f"{MARK}={mark}".encode()
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if needle in (folder / "environ").read_bytes().split(b"\0"):
                found.add(int(folder.name))
    return found - {os.getpid()}


def end_all(mark: str, group: int | None, *, grace_s: float = GRACE_S) -> bool:
    """Asks all of them to end, kills what has not after the grace, and says whether nothing is left.

    Without a grace nobody is asked.
    """
    if grace_s > 0:
        _signal_all(find_marked(mark), group, signal.SIGTERM)
        if _wait_until_gone(mark, group, grace_s):
            return True
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        # Again and again: a process may have been born between the search and the signal.
        _signal_all(find_marked(mark), group, signal.SIGKILL)
        if _wait_until_gone(mark, group, 0.5):
            return True
    return False


def _signal_all(processes: Iterable[int], group: int | None, number: signal.Signals) -> None:
    """Once each: an engine that is asked to end a second time may give up its own clean end.

    The youngest first: workers whose parent is gone end each other in this way, and neither may go before the strays of
    both, which are younger.
    """
    others = [process for process in processes if group is None or _group_of(process) != group]
    if group is not None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
    for process in sorted(others, key=_born, reverse=True):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, number)


def _born(process: int) -> tuple[int, int]:
    """When it was started, in the kernel's ticks; of two in one tick the higher number is the younger one."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[19]), process
    return 0, process


def _group_of(process: int) -> int | None:
    try:
        return os.getpgid(process)
    except ProcessLookupError:
        return None


def _wait_until_gone(mark: str, group: int | None, timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while True:
        if group is not None:
            with suppress(ChildProcessError):
                os.waitid(os.P_PID, group, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if not find_marked(mark) and not _group_lives(group):
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.05)


def _group_lives(group: int | None) -> bool:
    """Whether the group has a member that is not only waiting to be reaped."""
    if group is None:
        return False
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            state, _, member_of = (folder / "stat").read_text().rsplit(")", 1)[1].split()[:3]
            if int(member_of) == group and state not in "ZX":
                return True
    return False
