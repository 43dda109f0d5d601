"""Bodies of replies: completions, and everything else that servers send."""

from __future__ import annotations

import json
from typing import Literal

import pytest

from tooling.gsm8k.replies import BadReplyError, parse_models, parse_reply

BAD = {
    "an HTML page": ("<html><body>Bad gateway</body></html>", "an HTML page in place of JSON"),
    "broken JSON": ('{"choices": [{"te', "no JSON"),
    "nothing": ("", "no JSON"),
    "binary": ("\x00\x01\x02", "no JSON"),
    "a list": ("[]", "no object"),
    "an error": ('{"error": {"message": "engine dead"}}', "an error: "),
    "no choices": ('{"choices": []}', "without choices"),
    "a choice without text": ('{"choices": [{"index": 0}]}', "without text"),
    "a text that is a number": ('{"choices": [{"text": 4}]}', "without text"),
}


@pytest.mark.parametrize(("raw", "message"), BAD.values(), ids=BAD.keys())
@pytest.mark.parametrize("api", ["completions", "chat"])
def test_what_is_no_completion_is_refused(raw: str, message: str, api: Literal["completions", "chat"]) -> None:
    with pytest.raises(BadReplyError) as caught:
        parse_reply(raw, api=api)
    assert message in str(caught.value)
    assert str(caught.value).isprintable()


def test_completions_are_read() -> None:
    raw = json.dumps({"choices": [{"text": " 4", "finish_reason": "stop"}], "usage": {"completion_tokens": 2}})
    reply = parse_reply(raw, api="completions")
    assert (reply.text, reply.tokens, reply.finish_reason) == (" 4", 2, "stop")
    assert parse_reply('{"choices": [{"text": ""}]}', api="completions").tokens is None


def test_chat_is_read_and_a_message_without_content_is_empty() -> None:
    assert parse_reply('{"choices": [{"message": {"content": "4"}}]}', api="chat").text == "4"
    assert parse_reply('{"choices": [{"message": {"content": null, "reasoning": "…"}}]}', api="chat").text == ""


def test_models_are_listed() -> None:
    assert parse_models('{"data": [{"id": "a"}, {"id": "b"}, {}]}') == ("a", "b")
    with pytest.raises(BadReplyError):
        parse_models("{}")
