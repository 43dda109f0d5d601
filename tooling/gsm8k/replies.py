"""What a server's reply says, read from its raw text, so that garbage is told from an answer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A completion: its text, its length in tokens where the server says it, and why it ended."""

    text: str
    tokens: int | None
    finish_reason: str | None


HTML_PAGE = "an HTML page"


class BadReplyError(ValueError):
    """The reply is no completion: an HTML page, broken JSON, another shape. Its text says which, in a few words."""


def parse_reply(raw: str, *, api: Literal["completions", "chat"]) -> Reply:
    """The completion in a response body.

    Raises:
        BadReplyError: the body is something else.
    """
    body = _load(raw)
    if body.get("error"):
        raise BadReplyError(f"an error: {_short(str(body['error']))}")
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise BadReplyError(f"JSON without choices: {_short(raw)}")
    choice = choices[0]
    text = choice.get("text") if api == "completions" else _content(choice)
    if text is None and api == "chat" and isinstance(choice.get("message"), dict):
        text = ""  # a model that only reasoned has no content; that is an empty answer, not a broken reply
    if not isinstance(text, str):
        raise BadReplyError(f"a choice without text: {_short(raw)}")
    usage = body.get("usage")
    tokens = usage.get("completion_tokens") if isinstance(usage, dict) else None
    reason = choice.get("finish_reason")
    return Reply(
        text=text,
        tokens=tokens if isinstance(tokens, int) else None,
        finish_reason=reason if isinstance(reason, str) else None,
    )


def parse_models(raw: str) -> tuple[str, ...]:
    """The ids that `/v1/models` lists.

    Raises:
        BadReplyError: the body is something else.
    """
    listed = _load(raw).get("data")
    if not isinstance(listed, list):
        raise BadReplyError(f"JSON without a list of models: {_short(raw)}")
    return tuple(str(entry["id"]) for entry in listed if isinstance(entry, dict) and "id" in entry)


def _load(raw: str) -> dict[str, object]:
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as cause:
        what = HTML_PAGE if raw.lstrip()[:1] == "<" else "no JSON"
        raise BadReplyError(f"{what} in place of JSON: {_short(raw)}") from cause
    if not isinstance(body, dict):
        raise BadReplyError(f"JSON that is no object: {_short(raw)}")
    return body


def _content(choice: dict[str, object]) -> object:
    message = choice.get("message")
    return message.get("content") if isinstance(message, dict) else None


def _short(text: str) -> str:
    plain = " ".join("".join(char if char.isprintable() else " " for char in text[:400]).split())
    return plain if len(plain) <= 100 else plain[:99] + "…"
