"""Verdicts on single questions, and the counts and rates of a whole run. Whether a run passes is judged elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from statistics import median, quantiles
from typing import Literal

from tooling.gsm8k.answers import flexible_answer, strict_answer
from tooling.gsm8k.items import Problem
from tooling.gsm8k.prompts import cut_at_stop
from tooling.gsm8k.replies import Reply


class Verdict(StrEnum):
    """How one question ended. Only the first two are answers."""

    CORRECT = "correct"
    WRONG = "wrong"
    UNPARSABLE = "unparsable"
    EMPTY = "empty"
    FAILED = "failed"
    TIMEOUT = "timeout"
    NOT_ASKED = "not-asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One question as it was asked: the reply, or what went wrong (`timeout` tells the two kinds apart).

    `latency_s` is of the last try; `tries` counts them.
    """

    reply: Reply | None = None
    error: str = ""
    timeout: bool = False
    latency_s: float = 0.0
    tries: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One question with its verdict by both rules; `exchange` None: it was never sent."""

    problem: Problem
    prompt_sha256: str
    exchange: Exchange | None
    strict: Verdict
    flexible: Verdict
    strict_value: Decimal | None
    flexible_value: Decimal | None

    def verdict(self, rule: Literal["flexible", "strict"]) -> Verdict:
        return self.strict if rule == "strict" else self.flexible


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many questions ended in which way, by one rule."""

    correct: int
    wrong: int
    unparsable: int
    empty: int
    failed: int
    timeout: int
    not_asked: int

    @property
    def replied(self) -> int:
        """The questions to which the server replied at all: what accuracy is a share of."""
        return self.correct + self.wrong + self.unparsable + self.empty

    @property
    def lost(self) -> int:
        return self.failed + self.timeout + self.not_asked

    @property
    def total(self) -> int:
        return self.replied + self.lost

    @property
    def accuracy(self) -> float | None:
        """Correct answers among replies; None without any reply, so that nothing can take it for 0."""
        return self.correct / self.replied if self.replied else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """How fast a run was; None where nothing was measured. Latencies are over questions with a reply."""

    seconds: float
    questions_per_second: float | None
    output_tokens: int | None
    output_tokens_per_second: float | None
    latency_median_s: float | None
    latency_p95_s: float | None


def judge(problem: Problem, prompt_sha256: str, exchange: Exchange | None, *, stop: Sequence[str]) -> Answered:
    """The verdict on one question by both rules."""
    strict = flexible = None
    if exchange is not None and exchange.reply is not None:
        text = cut_at_stop(exchange.reply.text, stop)
        strict, flexible = strict_answer(text), flexible_answer(text)
        kind = None if text.strip() else Verdict.EMPTY
    elif exchange is None:
        kind = Verdict.NOT_ASKED
    else:
        kind = Verdict.TIMEOUT if exchange.timeout else Verdict.FAILED
    return Answered(
        problem=problem,
        prompt_sha256=prompt_sha256,
        exchange=exchange,
        strict=kind or _compare(strict, problem.value),
        flexible=kind or _compare(flexible, problem.value),
        strict_value=strict,
        flexible_value=flexible,
    )


def count(answers: Sequence[Answered], rule: Literal["flexible", "strict"]) -> Counts:
    verdicts = [answer.verdict(rule) for answer in answers]
    return Counts(**{kind.value.replace("-", "_"): verdicts.count(kind) for kind in Verdict})


def measure_speed(answers: Sequence[Answered], *, seconds: float) -> Speed:
    """The run's speed; `seconds` is from the first request to the last reply."""
    replied = [answer.exchange for answer in answers if answer.exchange is not None and answer.exchange.reply]
    latencies = [exchange.latency_s for exchange in replied]
    counted = [exchange.reply.tokens for exchange in replied if exchange.reply and exchange.reply.tokens is not None]
    tokens = sum(counted) if counted and len(counted) == len(replied) else None
    return Speed(
        seconds=seconds,
        questions_per_second=len(replied) / seconds if replied and seconds > 0 else None,
        output_tokens=tokens,
        output_tokens_per_second=tokens / seconds if tokens is not None and seconds > 0 else None,
        latency_median_s=median(latencies) if latencies else None,
        latency_p95_s=quantiles(latencies, n=20)[-1] if len(latencies) > 1 else None,
    )


def _compare(found: Decimal | None, expected: Decimal) -> Verdict:
    if found is None:
        return Verdict.UNPARSABLE
    return Verdict.CORRECT if found == expected else Verdict.WRONG
