"""Shows scenarios while they run: a table on a terminal where rich is installed, a line now and then elsewhere.

A terminal that moves no cursor (`TERM=dumb`) is elsewhere: rich would show its table there at the very end.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Protocol

from tooling.commands.progress import is_terminal
from tooling.commands.terminal import Terminal
from tooling.edges.smoke.process import Worker
from tooling.smoke.observations import RunSeen
from tooling.smoke.scenarios import Scenario

SPARSE_S = 15.0


class Showing(Protocol):
    """What the orchestrator tells, and `close` for a display that is to go away."""

    def begin(self, scenario: str, temperature: str) -> None: ...

    def working(self, workers: Sequence[Worker]) -> None: ...

    def end(self, scenario: str, temperature: str, run: RunSeen) -> None: ...

    def close(self) -> None: ...


def open_showing(terminal: Terminal, scenarios: Sequence[Scenario]) -> Showing:
    """The table where a person looks and rich is installed, else lines."""
    console = _open_console() if is_terminal() else None
    return Lines(terminal) if console is None else Table(scenarios, console)


def _open_console() -> Any:
    """Rich's console on this terminal; None without rich, or where nothing can be shown live."""
    try:
        from rich.console import Console  # noqa: PLC0415  # an image has no rich
    except ImportError:
        return None
    console = Console(stderr=True)
    return None if console.is_dumb_terminal else console


class Count:
    """Profiles done and left. How many there will be is known once a cold run of the same scenario kind has ended."""

    def __init__(self) -> None:
        self._totals: dict[int, int] = {}
        self._now = 0
        self._ranks = 0

    def take(self, workers: Sequence[Worker]) -> None:
        self._now, self._ranks = sum(worker.profiles for worker in workers), len(workers)

    def finish(self) -> None:
        if self._now:
            self._totals[self._ranks] = self._now
        self._now = 0

    @property
    def text(self) -> str:
        left = self._totals.get(self._ranks, 0) - self._now
        return f"{self._now} profiles" + (f", at most {left} left" if self._now and left > 0 else "")


class Lines:
    """One line when a run has ended, and one every now and then while it works."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._count = Count()
        self._name = ""
        self._began = self._said = time.monotonic()

    def begin(self, scenario: str, temperature: str) -> None:
        self._name = f"{scenario}, {temperature}"
        self._began = self._said = time.monotonic()

    def working(self, workers: Sequence[Worker]) -> None:
        self._count.take(workers)
        if self._name and time.monotonic() - self._said >= SPARSE_S:
            self._said = time.monotonic()
            self._terminal.say(f"  {self._name}: {steps(workers)} ({self._count.text})")

    def end(self, scenario: str, temperature: str, run: RunSeen) -> None:
        took = time.monotonic() - self._began
        self._terminal.say(f"{scenario:<24}{temperature:<6}{took:6.1f} s  {outcome(run)}")
        self._count.finish()
        self._name = ""

    def close(self) -> None:
        """Nothing is left on the screen."""


class Table:
    """A row for each scenario, live."""

    def __init__(self, scenarios: Sequence[Scenario], console: Any) -> None:
        from rich.live import Live  # noqa: PLC0415  # an image has no rich

        self._count = Count()
        self._rows = {one.name: ["", ""] for one in scenarios}
        self._present = ("", 0)
        self._live = Live(self._render(), console=console, refresh_per_second=4)
        self._live.start()

    def begin(self, scenario: str, temperature: str) -> None:
        self._present = (scenario, 0 if temperature == "cold" else 1)
        self._put("…")

    def working(self, workers: Sequence[Worker]) -> None:
        self._count.take(workers)
        if self._present[0]:
            self._put(f"{steps(workers)} ({self._count.text})")

    def end(self, scenario: str, temperature: str, run: RunSeen) -> None:
        self._present = (scenario, 0 if temperature == "cold" else 1)
        self._put(outcome(run))
        self._present = ("", 0)
        self._count.finish()

    def close(self) -> None:
        self._live.stop()

    def _put(self, text: str) -> None:
        name, column = self._present
        self._rows[name][column] = text
        self._live.update(self._render())

    def _render(self) -> Any:
        from rich.table import Table as Grid  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        grid = Grid("scenario", "cold", "warm", box=None, pad_edge=False)
        for name, cells in self._rows.items():
            grid.add_row(name, *map(Text, cells))  # what a worker says is no markup
        return grid


def steps(workers: Sequence[Worker]) -> str:
    """What each rank does."""
    return "; ".join(f"rank {worker.rank}: {worker.step}" for worker in workers)


def outcome(run: RunSeen) -> str:
    """A run in a few words: how long, with which strategy, what was tuned and loaded; or who failed, and where."""
    bad = [rank for rank in run.ranks if rank.end != "ended"]
    if bad:
        return "; ".join(f"rank {rank.rank} {rank.end} at {rank.step!r}" for rank in bad)
    tuned = sum(int(rank.report.get("tuned", 0)) for rank in run.ranks)
    loaded = max((int(rank.report.get("loaded", 0)) for rank in run.ranks), default=0)
    strategy = run.record.get("strategy", "none")
    return f"{run.seconds or 0.0:.1f} s, {strategy}, {tuned} tuned, {loaded} loaded"
