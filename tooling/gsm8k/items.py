"""Problems in GSM8K's format (JSONL of question and answer), and which of them are asked or shown."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from tooling.errors import InputError
from tooling.gsm8k.answers import strict_answer

MAX_PROBLEMS_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A word problem; `answer` is the worked solution, which ends in `#### NUMBER`, and `value` that number."""

    question: str
    answer: str
    value: Decimal

    @property
    def id(self) -> str:
        """Sixteen hexadecimal digits that follow from the question's text alone."""
        return hashlib.sha256(self.question.encode()).hexdigest()[:16]


def parse_problems(text: str, *, path: str) -> tuple[Problem, ...]:
    """Every problem of a JSONL text, in order; blank lines are skipped.

    Raises:
        InputError: lines that are not JSON, without a question or a number in the answer, questions that stand twice,
            or no problem at all; the first few are named by line.
    """
    problems: list[Problem] = []
    wrong: list[str] = []
    seen: dict[str, int] = {}
    # Not splitlines: U+2028 and its like are legal inside a JSON text and end no line of JSONL.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        problem = _parse_line(line)
        if isinstance(problem, str):
            wrong.append(f"line {number}: {problem}")
        elif problem.question in seen:
            wrong.append(f"line {number}: the question of line {seen[problem.question]} stands again")
        else:
            seen[problem.question] = number
            problems.append(problem)
    if wrong:
        more = f" (and {len(wrong) - MAX_PROBLEMS_NAMED} more)" if len(wrong) > MAX_PROBLEMS_NAMED else ""
        raise InputError(
            f"{path}: {'; '.join(wrong[:MAX_PROBLEMS_NAMED])}{more}",
            hint='each line is {"question": "…", "answer": "… #### 42"}',
            reason="BAD_DATA",
        )
    if not problems:
        raise InputError(f"{path}: found no question, expected at least one", reason="NO_QUESTIONS")
    return tuple(problems)


def select_questions(
    problems: Sequence[Problem], count: int, *, order: Literal["first", "seeded"], seed: int
) -> tuple[Problem, ...]:
    """At most `count` problems: the first ones, or a sample that the seed fixes, kept in the file's order."""
    if order == "first" or count >= len(problems):
        return tuple(problems[:count])
    chosen = sorted(random.Random(seed).sample(range(len(problems)), count))  # noqa: S311  # a sample, not a secret
    return tuple(problems[index] for index in chosen)


def select_shots(train: Sequence[Problem], count: int, *, asked: Collection[Problem]) -> tuple[Problem, ...]:
    """The first `count` training problems whose question is not among those asked.

    Raises:
        InputError: there are not that many.
    """
    taken = {_plain(problem.question) for problem in asked}
    free = [problem for problem in train if _plain(problem.question) not in taken]
    if len(free) < count:
        raise InputError(
            f"num_fewshot is {count}, but only {len(free)} training problems are not among the questions asked",
            hint="ask for fewer shots, or give more training problems",
            reason="TOO_FEW_SHOTS",
        )
    return tuple(free[:count])


def _plain(question: str) -> str:
    return " ".join(question.casefold().split())


def _parse_line(line: str) -> Problem | str:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return f"is not JSON: {line.strip()[:40]!r}"
    if not isinstance(value, dict):
        return f"found {type(value).__name__}, expected an object"
    question, answer = value.get("question"), value.get("answer")
    if not isinstance(question, str) or not question.strip() or not isinstance(answer, str):
        return "has no text in question and answer"
    number = strict_answer(answer)
    if number is None:
        return "the answer has no number after ####"
    return Problem(question=question, answer=answer, value=number)
