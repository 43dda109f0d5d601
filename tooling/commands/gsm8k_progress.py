"""Shows a start and an evaluation while they run: live on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from tooling.commands.terminal import Terminal
from tooling.gsm8k.causes import cut_line, is_progress
from tooling.gsm8k.score import Exchange

SPARSE_S = 15.0
TAIL_LINES = 6
SHOWN_CHARS = 300


class Showing:
    """The progress of one run. `is_correct` judges a question as it ends; `hide` takes secrets out of log lines.

    `close` takes a live display away.
    """

    def __init__(
        self,
        terminal: Terminal,
        *,
        total: int,
        budget_s: float,
        is_correct: Callable[[int, Exchange], bool],
        hide: Callable[[str], str],
    ) -> None:
        self._terminal, self._total, self._budget_s, self._is_correct = terminal, total, budget_s, is_correct
        self._hide = hide
        console = Console(stderr=True)
        self._live = Live(console=console, transient=True, refresh_per_second=8) if console.is_terminal else None
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("asking"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]:.1f}/s, accuracy {task.fields[accuracy]:.3f}"),
            TimeRemainingColumn(),
            console=console,
        )
        self._task = self._bar.add_task("asking", total=total, rate=0.0, accuracy=0.0)
        self._lines: deque[str] = deque(maxlen=TAIL_LINES)
        self._said = time.monotonic()
        self._first: float | None = None
        self._done = self._replied = self._correct = 0
        if self._live is not None:
            self._live.start()

    def starting(self, seconds: float, lines: Sequence[str]) -> None:
        self._lines.extend(cut_line(self._hide(line), SHOWN_CHARS) for line in lines[-TAIL_LINES:])
        headline = f"starting: {seconds:.0f} s of {self._budget_s:.0f} s"
        if self._live is not None:
            self._live.update(Group(Text(headline, "bold"), *(Text(f"  {line}", "dim") for line in self._lines)))
        elif self._is_time():
            shown = next((line for line in reversed(self._lines) if is_progress(line)), None) or (*self._lines, "")[-1]
            self._terminal.say(f"  {headline}  {shown[:160]}".rstrip())

    def ended(self, index: int, exchange: Exchange) -> None:
        now = time.monotonic()
        self._first = self._first if self._first is not None else now - exchange.latency_s
        self._done += 1
        self._replied += exchange.reply is not None
        self._correct += self._is_correct(index, exchange)
        rate = self._done / max(now - self._first, 1e-6)
        accuracy = self._correct / self._replied if self._replied else 0.0
        if self._live is not None:
            self._bar.update(self._task, completed=self._done, rate=rate, accuracy=accuracy)
            self._live.update(self._bar)
        elif self._is_time():
            lost = self._done - self._replied
            losses = f", {lost} without a reply" if lost else ""
            self._terminal.say(f"  {self._done} of {self._total}, {rate:.1f}/s, accuracy {accuracy:.3f}{losses}")

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()

    def _is_time(self) -> bool:
        due = time.monotonic() - self._said >= SPARSE_S
        if due:
            self._said = time.monotonic()
        return due
