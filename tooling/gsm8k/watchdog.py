"""Decides from events and the time whether a server is ready, dead, slow, hung or another one. Nothing waits here."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

from tooling.gsm8k.causes import Death

_IN_USE = re.compile(r"address (?:is )?already in use|port \d+ is (?:already )?in use|errno 98", re.IGNORECASE)

FOREIGN_S = 60.0


class Ask(StrEnum):
    """What the caller should do next."""

    WAIT = "wait"
    MODELS = "models"
    COMPLETION = "completion"
    READY = "ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """The end of the watch: a reason for machines and a sentence for people.

    `world`: what is tested cannot be blamed, whatever the reason.
    """

    reason: str
    detail: str
    world: bool = False


@dataclass(frozen=True, slots=True)
class Exited:
    """The server's process has ended."""

    death: Death


@dataclass(frozen=True, slots=True)
class Listed:
    """`/v1/models` answered with these ids."""

    models: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Completed:
    """The first tiny completion succeeded."""


@dataclass(frozen=True, slots=True)
class NotYet:
    """A question to the server failed; `why` is kept for the case that nothing better comes.

    `foreign`: a website answered. One may stand in for an engine that loads, but not for long.
    """

    why: str
    foreign: bool = False


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


Event = Exited | Listed | Completed | NotYet | Tick


@dataclass(frozen=True, slots=True, kw_only=True)
class StartWatch:
    """A start that is watched: `started` and all `now` are seconds of one monotonic clock.

    `expected` is the id that must be listed; `listed` says that it was; `asking` that a question is under way;
    `foreign_since` is when a website began to answer in its place.
    """

    started: float
    budget_s: float
    expected: str
    listed: bool = False
    asking: bool = False
    last_refusal: str = ""
    foreign_since: float | None = None


def next_step(watch: StartWatch, event: Event, now: float) -> tuple[StartWatch, Ask | Stop]:
    """The watch after the event, and what to do: ask the server something, wait, begin, or stop with a reason."""
    seconds = now - watch.started
    match event:
        case Exited(death):
            return watch, _ended(death, seconds)
        case Completed():
            return watch, Ask.READY
        case Listed(models):
            if watch.expected in models:
                return replace(watch, listed=True, asking=True), Ask.COMPLETION
            if models:
                names = ", ".join(models[:5])
                return watch, Stop(reason="WRONG_MODEL", detail=f"the server lists {names}, not {watch.expected}")
            watch = replace(watch, asking=False, last_refusal="/v1/models lists nothing yet")
        case NotYet(why, foreign):
            watch = _refused(watch, why, now, foreign=foreign)
        case Tick():
            pass
        case _:
            assert_never(event)
    if stop := _wrong_server(watch, now) or _too_slow(watch, seconds):
        return watch, stop
    if watch.asking or isinstance(event, NotYet | Listed):
        return watch, Ask.WAIT
    return replace(watch, asking=True), Ask.COMPLETION if watch.listed else Ask.MODELS


def refine_stop(stop: Stop, cause: str | None) -> Stop:
    """The stop, with the reason PORT_IN_USE where a server died because another one took its port meanwhile."""
    if stop.reason == "SERVER_CRASHED" and cause is not None and _IN_USE.search(cause):
        return Stop(reason="PORT_IN_USE", detail=f"{stop.detail}: {cause}")
    return stop


def _ended(death: Death, seconds: float) -> Stop:
    if death.code == 0:
        return Stop(reason="SERVER_EXITED", detail=f"the server ended without an error {seconds:.1f} s after its start")
    return Stop(reason="SERVER_CRASHED", detail=f"the server {death.sentence} {seconds:.1f} s after its start")


def _refused(watch: StartWatch, why: str, now: float, *, foreign: bool) -> StartWatch:
    since = now if watch.foreign_since is None else watch.foreign_since
    return replace(watch, asking=False, last_refusal=why, foreign_since=since if foreign else None)


def _wrong_server(watch: StartWatch, now: float) -> Stop | None:
    seconds = 0.0 if watch.foreign_since is None else now - watch.foreign_since
    if seconds <= FOREIGN_S:
        return None
    detail = f"what answers has been no model server for {seconds:.0f} s: {watch.last_refusal}"
    return Stop(reason="WRONG_SERVER", detail=detail)


def _too_slow(watch: StartWatch, seconds: float) -> Stop | None:
    if seconds < watch.budget_s:
        return None
    state = "it lists the model, but no completion came" if watch.listed else "it does not list the model"
    refusal = f" (last: {watch.last_refusal})" if watch.last_refusal else ""
    reason = "SERVER_HANG" if watch.listed and watch.asking else "STARTUP_TIMEOUT"
    return Stop(reason=reason, detail=f"the server is not ready after {seconds:.0f} s: {state}{refusal}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunWatch:
    """A run that is watched: how many requests ended how, and when the last one did.

    `silent` counts the requests that timed out since the last one that ended otherwise.
    """

    total: int
    allowed_lost: int
    stall_s: float
    last_end: float
    silent: int = 0
    replied: int = 0
    failed: int = 0
    timeouts: int = 0
    last_error: str = ""


@dataclass(frozen=True, slots=True)
class Replied:
    """A request ended with a completion."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A request ended without one."""

    why: str
    timeout: bool


def next_in_run(watch: RunWatch, event: Exited | Replied | Lost | Tick, now: float) -> tuple[RunWatch, Stop | None]:
    """The watch after the event, and a reason to stop, or None to go on.

    A run is stopped once more requests are lost than may be: it can no longer become valid.
    """
    match event:
        case Exited(death):
            return watch, Stop(reason="SERVER_DIED", detail=f"the server {death.sentence} in mid-run; {_so_far(watch)}")
        case Replied():
            return replace(watch, replied=watch.replied + 1, last_end=now, silent=0), None
        case Lost(why, timeout):
            watch = replace(
                watch,
                failed=watch.failed + (not timeout),
                timeouts=watch.timeouts + timeout,
                last_end=watch.last_end if timeout else now,
                silent=watch.silent + 1 if timeout else 0,
                last_error=why,
            )
            return watch, _too_many_lost(watch, now)
        case Tick():
            if now - watch.last_end < watch.stall_s:
                return watch, None
            quiet = f"no request has ended for {now - watch.last_end:.0f} s"
            return watch, Stop(reason="SERVER_HANG", detail=f"the server hangs: {quiet}; {_so_far(watch)}")
        case _:
            assert_never(event)


def _too_many_lost(watch: RunWatch, now: float) -> Stop | None:
    if watch.failed + watch.timeouts <= watch.allowed_lost:
        return None
    if watch.replied == 0 and not watch.failed:
        return Stop(reason="SERVER_HANG", detail=f"the server hangs: every request ran out of time; {_so_far(watch)}")
    quiet_s = now - watch.last_end
    # A single slow request among others that are answered is no silence; a server is silent for a while.
    if watch.silent > 1 or (watch.silent and quiet_s >= watch.stall_s / 2):
        quiet = f"requests only ran out of time for the last {quiet_s:.0f} s"
        return Stop(reason="SERVER_HANG", detail=f"the server hangs: {quiet}; {_so_far(watch)}")
    detail = f"more than the {watch.allowed_lost} requests that may be lost were; {_so_far(watch)}"
    return Stop(reason="EVAL_ABORTED", detail=f"{detail}; the last: {watch.last_error}")


def _so_far(watch: RunWatch) -> str:
    return f"{watch.replied} of {watch.total} answered, {watch.failed} failed, {watch.timeouts} timed out"
