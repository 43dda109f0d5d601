"""The client against a server that answers, and against one that misbehaves in every way."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from tests.gsm8k.programmable_server import Behaviour, running
from tooling.edges.serving import client as client_module
from tooling.edges.serving.client import Client, UnansweredError
from tooling.gsm8k.score import Exchange


def ask(url: str, *prompts: str, **options: Any) -> list[Exchange]:
    async def work() -> list[Exchange]:
        client = Client(url, **{"model": "tiny", "api": "completions", "timeout_s": 20.0, **options})
        try:
            return [await client.ask(prompt) for prompt in prompts]
        finally:
            await client.close()

    return asyncio.run(work())


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "RETRY_PAUSES_S", (0.01, 0.01))


FAULTS = {
    "error": ("HTTP 500: ", 1),
    "html": ("an HTML page in place of JSON", 1),
    "not-json": ("no JSON in place of JSON", 1),
    "no-choices": ("JSON without choices", 1),
    "error-in-200": ("an error: ", 1),
    "close": ("", 3),
    "close-early": ("", 3),
    "garbage": ("more than 8,000,000 bytes", 1),
}


@pytest.mark.parametrize(("fault", "message", "tries"), [(key, *value) for key, value in FAULTS.items()], ids=FAULTS)
@pytest.mark.parametrize("api", ["completions", "chat"])
def test_a_fault_is_an_error_and_only_broken_connections_are_tried_again(
    fault: str, message: str, tries: int, api: str
) -> None:
    behaviour = Behaviour(fault=fault)
    with running(behaviour) as url:
        [exchange] = ask(url, "Question: q\nAnswer:", api=api)
    assert exchange.reply is None
    assert not exchange.timeout
    assert message in exchange.error
    assert exchange.error
    assert behaviour.requests == exchange.tries == tries


def test_silence_is_a_timeout_and_is_not_tried_again() -> None:
    """Where the machine is busy, the time may be over before the server has seen the request."""
    behaviour = Behaviour(fault="hang")
    with running(behaviour) as url:
        [exchange] = ask(url, "q", timeout_s=0.3)
    assert (exchange.timeout, exchange.tries) == (True, 1)
    assert behaviour.requests <= 1


def test_a_connection_that_breaks_once_costs_nothing() -> None:
    with running(Behaviour(fault="close", lasting=1, answer=lambda _: "#### 3")) as url:
        [exchange] = ask(url, "q")
    assert exchange.reply is not None
    assert exchange.reply.text == "#### 3"
    assert exchange.tries == 2


def test_the_request_holds_what_was_asked_for_and_nothing_unknown() -> None:
    behaviour = Behaviour()
    options = {"max_tokens": 9, "stop": ["Question"], "extra_body": {"top_k": 1}, "api_key": "k3y"}
    with running(behaviour) as url:
        ask(url + "/v1/", "the prompt", **options)
        ask(url, "the prompt", api="chat")
    assert behaviour.bodies[0] == {
        "model": "tiny", "prompt": "the prompt", "max_tokens": 9, "temperature": 0.0, "stop": ["Question"], "top_k": 1,
    }  # fmt: skip
    assert behaviour.bodies[1]["messages"] == [{"role": "user", "content": "the prompt"}]
    assert behaviour.keys[0] == "Bearer k3y"


def test_a_proxy_is_not_asked_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with running(Behaviour()) as url:
        assert ask(url, "q")[0].reply is not None


def probe(url: str) -> Sequence[str]:
    async def work() -> Sequence[str]:
        client = Client(url, model="tiny", api="completions")
        try:
            await client.complete_once()
            return await client.list_models()
        finally:
            await client.close()

    return asyncio.run(work())


def test_probes_list_models_and_complete() -> None:
    with running(Behaviour(model="m")) as url:
        assert probe(url) == ("m",)


def test_a_probe_that_fails_says_why() -> None:
    with running(Behaviour(fault="error")) as url, pytest.raises(UnansweredError, match="HTTP 500"):
        probe(url)
    with pytest.raises(UnansweredError, match="first completion"):
        probe(url)


@pytest.mark.parametrize("fault", ["denied", "refused-in-200"])
def test_a_refusal_is_told_without_the_secret_also_where_it_is_cut(fault: str) -> None:
    with running(Behaviour(fault=fault)) as url:
        [exchange] = ask(url, "q", api_key="sk-very-secret", hide=lambda text: text.replace("sk-very-secret", "***"))
    assert exchange.reply is None
    assert "no such key" in exchange.error
    assert "sk-" not in exchange.error
