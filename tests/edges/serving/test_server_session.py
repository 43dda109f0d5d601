"""Evaluations against a server in a thread: bounded, ordered, and stopped when they must be."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence

import pytest

from tests.gsm8k.programmable_server import Behaviour, running
from tooling.edges.serving import client as client_module
from tooling.edges.serving import session as session_module
from tooling.edges.serving.client import Client
from tooling.edges.serving.session import Evaluated, evaluate
from tooling.gsm8k.causes import Death, read_death
from tooling.gsm8k.score import Exchange


class Silent:
    """Progress that is only counted."""

    def __init__(self) -> None:
        self.ends: list[int] = []

    def starting(self, seconds: float, lines: Sequence[str]) -> None: ...

    def ended(self, index: int, exchange: Exchange) -> None:
        self.ends.append(index)


def run(
    url: str,
    prompts: Sequence[str],
    *,
    concurrency: int = 4,
    allowed_lost: int = 0,
    stall_s: float = 20.0,
    timeout_s: float = 20.0,
    poll: Callable[[], Death | None] = lambda: None,
    progress: Silent | None = None,
) -> Evaluated:
    async def work() -> Evaluated:
        client = Client(url, model="tiny", api="completions", timeout_s=timeout_s, concurrency=concurrency)
        try:
            return await evaluate(
                client,
                prompts,
                concurrency=concurrency,
                allowed_lost=allowed_lost,
                stall_s=stall_s,
                poll=poll,
                progress=progress or Silent(),
            )
        finally:
            await client.close()

    return asyncio.run(work())


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "RETRY_PAUSES_S", (0.01, 0.01))
    monkeypatch.setattr(session_module, "SETTLE_S", 0.3)


def test_replies_come_in_the_order_of_the_prompts_and_never_more_at_once_than_allowed() -> None:
    lock, inside, most = threading.Lock(), 0, 0

    def answer(prompt: str) -> str:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        time.sleep(0.01 if prompt != "0" else 0.2)
        with lock:
            inside -= 1
        return f"#### {prompt}"

    progress = Silent()
    with running(Behaviour(answer=answer)) as url:
        done = run(url, [str(number) for number in range(40)], concurrency=5, progress=progress)
    assert done.stop is None
    texts = [exchange.reply.text for exchange in done.exchanges if exchange and exchange.reply]
    assert texts == [f"#### {number}" for number in range(40)]
    assert most <= 5
    assert sorted(progress.ends) == list(range(40))


def test_too_many_lost_requests_stop_the_run_early() -> None:
    """One at a time: of two, an answer may come after the failures that were asked for later."""
    behaviour = Behaviour(fault="error", after=6)
    with running(behaviour) as url:
        done = run(url, ["q"] * 200, concurrency=1, allowed_lost=2)
    assert done.stop is not None
    assert done.stop.reason == "EVAL_ABORTED"
    assert "6 of 200 answered, 3 failed" in done.stop.detail
    assert behaviour.requests < 20
    assert done.exchanges[-1] is None


def test_a_few_lost_requests_are_borne() -> None:
    behaviour = Behaviour(fault="error", after=38)
    with running(behaviour) as url:
        done = run(url, ["q"] * 40, allowed_lost=2)
    assert done.stop is None
    assert sum(1 for exchange in done.exchanges if exchange and exchange.reply is None) == 2


def test_a_server_that_falls_silent_hangs() -> None:
    with running(Behaviour(fault="hang", after=3)) as url:
        done = run(url, ["q"] * 20, concurrency=2, stall_s=0.6)
    assert done.stop is not None
    assert done.stop.reason == "SERVER_HANG"


def test_broken_connections_of_a_dead_server_are_its_death(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connections break before the process is seen to be dead: it gets a moment to be found out."""
    monkeypatch.setattr(session_module, "SETTLE_S", 20.0)
    with running(Behaviour(fault="close", after=3)) as url:
        deaths = iter([None] * 3)
        done = run(url, ["q"] * 20, concurrency=2, poll=lambda: next(deaths, read_death(-9)))
    assert done.stop is not None
    assert done.stop.reason == "SERVER_DIED"
    assert "SIGKILL" in done.stop.detail


def test_a_death_is_seen_while_requests_wait() -> None:
    begun = time.monotonic()
    with running(Behaviour(fault="hang")) as url:
        done = run(url, ["q"] * 4, poll=lambda: read_death(-11) if time.monotonic() - begun > 0.3 else None)
    assert done.stop is not None
    assert done.stop.reason == "SERVER_DIED"
    assert "SIGSEGV" in done.stop.detail
