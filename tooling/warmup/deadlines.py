"""The watchdog's rule as one pure step. Clocks and waiting are `ranks`'."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tooling.warmup.settings import Deadlines


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A wait so far: seconds at which the warm-up began and at which something last moved, and the progress count."""

    began: float
    moved: float
    progress: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Late:
    """The deadline that passed, in words."""

    why: str


def next_wait(wait: Wait, progress: int, now: float, deadlines: Deadlines) -> Wait | Late:
    """The wait after a look at the progress count at `now`, or the deadline that has passed."""
    if now - wait.began > deadlines.total_s:
        return Late(why=f"the warm-up took more than {deadlines.total_s:.0f} s in all")
    if progress != wait.progress:
        return replace(wait, moved=now, progress=progress)
    if now - wait.moved > deadlines.no_progress_s:
        return Late(why=f"no rank made progress for {deadlines.no_progress_s:.0f} s")
    return wait
