"""Asks an OpenAI-compatible server through the `openai` client. Replies are read elsewhere."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

import openai

from tooling.gsm8k.replies import HTML_PAGE, BadReplyError, parse_models, parse_reply
from tooling.gsm8k.score import Exchange

T = TypeVar("T")

MAX_REPLY_BYTES = 8_000_000
"""No answer to a word problem comes near it; a server that streams without end is cut off."""
RETRY_PAUSES_S = (0.2, 1.0)
"""Only what broke below HTTP is tried again: a refused or dropped connection."""
PROBE_TIMEOUT_S = 10.0

# Which HTTP library the client stands on differs between its major versions (httpx, httpx2); its error class is needed
# for bodies that break off, which the client passes on as they are.
_http = import_module(
    next(base.__module__ for base in openai.DefaultAsyncHttpxClient.__mro__ if base.__name__ == "AsyncClient")
)
_BROKEN: tuple[type[Exception], ...] = (openai.APIConnectionError, _http.HTTPError, OSError)
_SLOW: tuple[type[Exception], ...] = (TimeoutError, openai.APITimeoutError, _http.TimeoutException)
_UNANSWERED: tuple[type[Exception], ...] = (*_SLOW, *_BROKEN, openai.APIError, BadReplyError)


class UnansweredError(Exception):
    """The server did not answer a probe as it should; the text says how. `foreign`: what answers is a website."""

    def __init__(self, message: str, *, foreign: bool = False) -> None:
        super().__init__(message)
        self.foreign = foreign


class Client:
    """One server and how it is asked. Used in one event loop and closed there.

    `hide` takes secrets out of what the server says when it refuses: some repeat the key that they were given.
    """

    def __init__(
        self,
        url: str,
        *,
        model: str,
        api: Literal["completions", "chat"],
        api_key: str | None = None,
        max_tokens: int = 16,
        temperature: float = 0.0,
        stop: Sequence[str] = (),
        extra_body: Mapping[str, object] | None = None,
        timeout_s: float = 600.0,
        concurrency: int = 1,
        hide: Callable[[str], str] = str,
    ) -> None:
        base = url.rstrip("/")
        self._model, self._api, self._timeout_s = model, api, timeout_s
        self._body = {"max_tokens": max_tokens, "temperature": temperature, "stop": list(stop)}
        self._extra = dict(extra_body or {})
        self._hide = hide
        limits = _http.Limits(max_connections=concurrency + 2, max_keepalive_connections=concurrency + 2)
        self._client = openai.AsyncOpenAI(
            base_url=base if base.endswith("/v1") else f"{base}/v1",
            api_key=api_key or "none",
            max_retries=0,
            # A proxy between this machine and itself would be asked for a server that it cannot see.
            http_client=openai.DefaultAsyncHttpxClient(
                trust_env=not _is_loopback(base), limits=limits, timeout=_http.Timeout(timeout_s, connect=30.0)
            ),
        )

    async def close(self) -> None:
        await self._client.close()

    async def list_models(self) -> tuple[str, ...]:
        """The ids that the server lists. Raises UnansweredError."""
        try:
            async with asyncio.timeout(PROBE_TIMEOUT_S):
                async with self._client.models.with_streaming_response.list() as response:
                    return self._parse(parse_models, await _read(response))
        except _UNANSWERED as cause:
            foreign = isinstance(cause, BadReplyError) and str(cause).startswith(HTML_PAGE)
            raise UnansweredError(f"/v1/models: {_describe(cause, self._hide)}", foreign=foreign) from cause

    async def complete_once(self) -> None:
        """One tiny completion; it may take as long as a first request needs. Raises UnansweredError."""
        exchange, _ = await self._try("Question: What is 1 + 1?\nAnswer:", max_tokens=1)
        if exchange.reply is None:
            raise UnansweredError(f"first completion: {exchange.error}")

    async def ask(self, prompt: str) -> Exchange:
        """The exchange for one prompt. Never raises for what the server does; broken connections are tried again."""
        for tries, pause_s in enumerate(RETRY_PAUSES_S, start=1):
            exchange, broken = await self._try(prompt, tries=tries)
            if not broken:
                return exchange
            await asyncio.sleep(pause_s)
        exchange, _ = await self._try(prompt, tries=len(RETRY_PAUSES_S) + 1)
        return exchange

    async def _try(self, prompt: str, *, max_tokens: int | None = None, tries: int = 1) -> tuple[Exchange, bool]:
        """The exchange, and whether the connection broke, which is worth another try."""
        begun = time.monotonic()

        def ended(**parts: Any) -> Exchange:
            return Exchange(latency_s=time.monotonic() - begun, tries=tries, **parts)

        body = self._body if max_tokens is None else {**self._body, "max_tokens": max_tokens}
        try:
            async with asyncio.timeout(self._timeout_s), self._send(prompt, body) as response:
                return ended(reply=self._parse(partial(parse_reply, api=self._api), await _read(response))), False
        except _SLOW:
            return ended(error=f"no reply within {self._timeout_s:g} s", timeout=True), False
        except (openai.APIStatusError, BadReplyError) as cause:
            return ended(error=_describe(cause, self._hide)), False
        except _BROKEN as cause:
            return ended(error=_describe(cause, self._hide)), True

    def _parse(self, parse: Callable[[str], T], raw: str) -> T:
        try:
            return parse(raw)
        except BadReplyError:
            # What is quoted of the body is cut; half a secret could no longer be found in it.
            return parse(self._hide(raw))

    def _send(self, prompt: str, body: Mapping[str, Any]) -> Any:
        """The request, as a context manager that opens the response."""
        extra = self._extra or None
        if self._api == "chat":
            message: Any = {"role": "user", "content": prompt}
            return self._client.chat.completions.with_streaming_response.create(
                model=self._model, messages=[message], extra_body=extra, **body
            )
        return self._client.completions.with_streaming_response.create(
            model=self._model, prompt=prompt, extra_body=extra, **body
        )


async def _read(response: Any) -> str:
    """The body as text. Raises BadReplyError if it does not end in time to be an answer."""
    raw = bytearray()
    async for chunk in response.iter_bytes():
        raw += chunk
        if len(raw) > MAX_REPLY_BYTES:
            raise BadReplyError(f"more than {MAX_REPLY_BYTES:,} bytes")
    return raw.decode(errors="replace")


def _describe(cause: Exception, hide: Callable[[str], str]) -> str:
    """One line: the HTTP status with the start of its body, or the innermost reason of a broken connection."""
    if isinstance(cause, openai.APIStatusError):
        return f"HTTP {cause.status_code}: {hide(' '.join(cause.response.text.split()))[:150]}"
    if isinstance(cause, BadReplyError):
        return hide(str(cause))
    if isinstance(cause, _SLOW):
        return "no reply in time"
    innermost: BaseException = cause
    while innermost.__cause__ is not None:
        innermost = innermost.__cause__
    return hide(f"{type(innermost).__name__}: {innermost}")[:200].rstrip(": ")


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    return host in {"localhost", "::1"} or host.startswith("127.")
