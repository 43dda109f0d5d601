"""Drives one server and one evaluation: events go to the watchdogs, what they decide is done."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from tooling.edges.serving.client import Client, UnansweredError
from tooling.edges.serving.logs import LogFollower
from tooling.gsm8k.causes import Death
from tooling.gsm8k.score import Exchange
from tooling.gsm8k.watchdog import (
    Ask,
    Completed,
    Event,
    Exited,
    Listed,
    Lost,
    NotYet,
    Replied,
    RunWatch,
    StartWatch,
    Stop,
    Tick,
    next_in_run,
    next_step,
)

TICK_S = 0.2
SETTLE_S = 3.0
"""How long a server whose connections broke has to turn out to be dead, before its requests are blamed."""

SERVER_GONE = {"EVAL_ABORTED", "SERVER_HANG"}


class Server(Protocol):
    """A server that we start: a process group or a container."""

    def start(self) -> None: ...

    def poll(self) -> Death | None: ...

    def end(self) -> None: ...

    def close(self) -> None: ...


class Progress(Protocol):
    """Who is told how it goes. Called in the event loop; must not take long."""

    def starting(self, seconds: float, lines: Sequence[str]) -> None: ...

    def ended(self, index: int, exchange: Exchange) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """The exchanges in the order of the prompts (None: never sent or cut off), and why it stopped early, if it did."""

    exchanges: tuple[Exchange | None, ...]
    seconds: float
    stop: Stop | None


async def wait_until_ready(
    client: Client,
    *,
    poll: Callable[[], Death | None],
    log: LogFollower,
    expected: str,
    started: float,
    budget_s: float,
    progress: Progress,
) -> tuple[float, Stop | None]:
    """Seconds from `started` until the server is ready, or until it was given up with the reason."""
    watch = StartWatch(started=started, budget_s=budget_s, expected=expected)
    question: asyncio.Task[Event] | None = None
    try:
        while True:
            event = _next_event(poll(), question)
            if question is not None and question.done():
                question = None
            watch, step = next_step(watch, event, time.monotonic())
            seconds = time.monotonic() - started
            progress.starting(seconds, log.read_new())
            if isinstance(step, Stop):
                log.finish()
                return seconds, step
            if step is Ask.READY:
                return seconds, None
            if step in {Ask.MODELS, Ask.COMPLETION}:
                question = asyncio.create_task(_ask_models(client) if step is Ask.MODELS else _ask_completion(client))
            await asyncio.sleep(TICK_S)
    finally:
        await _cancel([question] if question else [])


async def evaluate(
    client: Client,
    prompts: Sequence[str],
    *,
    concurrency: int,
    allowed_lost: int,
    stall_s: float,
    poll: Callable[[], Death | None],
    progress: Progress,
) -> Evaluated:
    """Every prompt's exchange, `concurrency` at a time; stops early when the watchdog says so."""
    begun = time.monotonic()
    watch = RunWatch(total=len(prompts), allowed_lost=allowed_lost, stall_s=stall_s, last_end=begun)
    run = _Running(client, prompts, watch)
    workers = [asyncio.create_task(run.work(progress)) for _ in range(min(concurrency, len(prompts)))]
    try:
        while run.stop is None and not all(worker.done() for worker in workers):
            await asyncio.wait(workers, timeout=TICK_S, return_when=asyncio.ALL_COMPLETED)
            run.see(_exit_or_tick(poll()))
        if run.stop is not None and run.stop.reason in SERVER_GONE:
            await _settle(run, poll)
    finally:
        await _cancel(workers)
    for worker in workers:
        if not worker.cancelled() and (fault := worker.exception()) is not None:
            raise fault
    return Evaluated(exchanges=tuple(run.exchanges), seconds=run.last_end - begun, stop=run.stop)


class _Running:
    """The state of one evaluation, shared by its workers in one event loop."""

    def __init__(self, client: Client, prompts: Sequence[str], watch: RunWatch) -> None:
        self._client, self._prompts, self._watch = client, prompts, watch
        self._next = 0
        self.exchanges: list[Exchange | None] = [None] * len(prompts)
        self.last_end = watch.last_end
        self.stop: Stop | None = None

    async def work(self, progress: Progress) -> None:
        while self.stop is None and self._next < len(self._prompts):
            index = self._next
            self._next += 1
            exchange = await self._client.ask(self._prompts[index])
            self.exchanges[index] = exchange
            self.last_end = time.monotonic()
            progress.ended(index, exchange)
            self.see(Replied() if exchange.reply else Lost(exchange.error, exchange.timeout))

    def see(self, event: Exited | Replied | Lost | Tick) -> None:
        if self.stop is None:
            self._watch, self.stop = next_in_run(self._watch, event, time.monotonic())

    def blame_death(self, death: Death) -> None:
        """A server that turns out to be dead explains its broken connections."""
        _, self.stop = next_in_run(self._watch, Exited(death), time.monotonic())


async def _settle(run: _Running, poll: Callable[[], Death | None]) -> None:
    deadline = time.monotonic() + SETTLE_S
    while time.monotonic() < deadline:
        if (death := poll()) is not None:
            run.blame_death(death)
            return
        await asyncio.sleep(TICK_S)


def _next_event(death: Death | None, question: asyncio.Task[Event] | None) -> Event:
    if death is not None:
        return Exited(death)
    return question.result() if question is not None and question.done() else Tick()


def _exit_or_tick(death: Death | None) -> Exited | Tick:
    return Tick() if death is None else Exited(death)


async def _ask_models(client: Client) -> Event:
    try:
        return Listed(await client.list_models())
    except UnansweredError as cause:
        return NotYet(str(cause), cause.foreign)


async def _ask_completion(client: Client) -> Event:
    try:
        await client.complete_once()
    except UnansweredError as cause:
        return NotYet(str(cause))
    return Completed()


async def _cancel(tasks: Sequence[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    for task in tasks:
        with suppress(asyncio.CancelledError, Exception):
            await task


def drive(work: Coroutine[Any, Any, Any]) -> Any:
    """Runs it in an event loop of its own."""
    with asyncio.Runner() as runner:
        runner.get_loop().set_exception_handler(_tell)
        return runner.run(work)


def _tell(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """As loops do, but for a wish to end: it strikes in the middle of a task, whose outcome nobody asks for then."""
    if not isinstance(context.get("exception"), KeyboardInterrupt):
        loop.default_exception_handler(context)
