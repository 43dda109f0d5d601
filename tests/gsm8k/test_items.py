"""Problems from JSONL, and which are asked and shown."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from tests.gsm8k.samples import make_problem
from tooling.errors import InputError
from tooling.gsm8k.items import Problem, parse_problems, select_questions, select_shots
from tooling.gsm8k.prompts import prompt_hash, render_prompt

DATA = Path(__file__).resolve().parents[2] / "tooling/data/gsm8k"
GOOD_LINE = json.dumps({"question": "q", "answer": "a #### 1"})

BAD = {
    "no JSON": ("{", "BAD_DATA", "line 1: is not JSON"),
    "CSV": ("question,answer\nq,1", "BAD_DATA", "line 1: is not JSON: 'question,answer'"),
    "an HTML page": ("<html>", "BAD_DATA", "line 1"),
    "a list": ("[1]", "BAD_DATA", "line 1: found list"),
    "no answer": ('{"question": "q"}', "BAD_DATA", "no text in question and answer"),
    "an empty question": ('{"question": " ", "answer": "#### 1"}', "BAD_DATA", "no text"),
    "an answer without a number": ('{"question": "q", "answer": "#### many"}', "BAD_DATA", "no number after ####"),
    "a question twice": (f"{GOOD_LINE}\n\n{GOOD_LINE}", "BAD_DATA", "line 3: the question of line 1 stands again"),
    "nothing": ("\n\n", "NO_QUESTIONS", "found no question"),
}


@pytest.mark.parametrize(("text", "reason", "message"), BAD.values(), ids=BAD.keys())
def test_bad_data_are_refused_with_the_line(text: str, reason: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_problems(text, path="test.jsonl")
    assert caught.value.reason == reason
    assert message in caught.value.message


def test_only_the_first_few_bad_lines_are_named() -> None:
    with pytest.raises(InputError, match=r"\(and 3 more\)"):
        parse_problems("{\n" * 8, path="test.jsonl")


def test_a_line_separator_inside_a_question_ends_no_line() -> None:
    line = json.dumps({"question": "a\u2028b", "answer": "#### 1"}, ensure_ascii=False)
    assert parse_problems(line, path="x")[0].question == "a\u2028b"


def test_the_first_questions_are_those_that_vllm_asks() -> None:
    problems = [make_problem(number) for number in range(20)]
    assert select_questions(problems, 3, order="first", seed=5) == tuple(problems[:3])
    assert select_questions(problems, 50, order="first", seed=5) == tuple(problems)


def test_a_seed_fixes_the_sample() -> None:
    problems = [make_problem(number) for number in range(100)]
    sample = select_questions(problems, 10, order="seeded", seed=1)
    assert sample == select_questions(problems, 10, order="seeded", seed=1)
    assert sample != select_questions(problems, 10, order="seeded", seed=2)
    assert sample != tuple(problems[:10])
    assert list(sample) == sorted(sample, key=problems.index)


def test_a_question_that_is_asked_is_never_shown_as_a_shot() -> None:
    train = [make_problem(number) for number in range(6)]
    leaked = Problem(question="  what IS 0? ", answer="#### 0", value=Decimal(0))
    assert select_shots(train, 2, asked=[leaked, train[2]]) == (train[1], train[3])


def test_too_few_shots_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        select_shots([make_problem(1)], 2, asked=[])
    assert caught.value.reason == "TOO_FEW_SHOTS"


def test_a_prompt_is_shots_and_the_question() -> None:
    prompt = render_prompt("What is 9?", [make_problem(4)])
    assert prompt == "Question: What is 4?\nAnswer: It is.\n#### 4\n\nQuestion: What is 9?\nAnswer:"
    assert prompt_hash(prompt) != prompt_hash(render_prompt("What is 9?", []))


def test_the_shipped_problems_are_sound() -> None:
    """Every worked step is right, and no question is both asked and shown."""
    test = parse_problems((DATA / "test.jsonl").read_text(), path="test")
    train = parse_problems((DATA / "train.jsonl").read_text(), path="train")
    assert len(test) >= 40
    assert len(train) >= 8
    assert not {problem.question for problem in test} & {problem.question for problem in train}
    for problem in (*test, *train):
        for step in problem.answer.split("<<")[1:]:
            expression, _, result = step.partition(">>")[0].partition("=")
            assert eval(expression) == pytest.approx(float(result)), problem.question
