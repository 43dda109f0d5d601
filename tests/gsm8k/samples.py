"""Small values for the tests of this room."""

from __future__ import annotations

from decimal import Decimal

import yaml

from tooling.gsm8k.config import Config
from tooling.gsm8k.config_text import parse_config
from tooling.gsm8k.items import Problem
from tooling.gsm8k.replies import Reply
from tooling.gsm8k.score import Answered, Exchange, judge

LEAST = {"model_name": "tiny", "server_command": ["serve", "--port", "{port}"], "accuracy_threshold": 0.5}


def make_config(**values: object) -> Config:
    return parse_config(yaml.safe_dump({**LEAST, "tolerance": 0.02, **values}), path="c.yaml").config


def make_problem(number: int, value: int | None = None) -> Problem:
    wanted = number if value is None else value
    return Problem(question=f"What is {number}?", answer=f"It is.\n#### {wanted}", value=Decimal(wanted))


def make_answer(number: int, text: str | None, *, timeout: bool = False) -> Answered:
    """One judged question whose right answer is its number; `text` None: the request was lost."""
    reply = None if text is None else Reply(text=text, tokens=5, finish_reason="stop")
    exchange = Exchange(reply=reply, error="" if reply else "broken", timeout=timeout, latency_s=0.5)
    return judge(make_problem(number), f"{number:064x}", exchange, stop=("Question",))


def make_answers(correct: int, wrong: int = 0, unparsable: int = 0, lost: int = 0) -> tuple[Answered, ...]:
    texts = ["#### {n}"] * correct + ["#### -1"] * wrong + ["who knows"] * unparsable + [None] * lost
    return tuple(
        make_answer(number, None if text is None else text.format(n=number)) for number, text in enumerate(texts, 1)
    )
