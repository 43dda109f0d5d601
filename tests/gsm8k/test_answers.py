"""Numbers out of what models write."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tooling.gsm8k.answers import find_numbers, flexible_answer, strict_answer
from tooling.gsm8k.prompts import cut_at_stop

TEXTS = {
    "plain": ("#### 42", "42", "42"),
    "negative": ("#### -9", "-9", "-9"),
    "a real minus sign": ("#### \u22129", "-9", "-9"),
    "decimal": ("#### 2.50", "2.5", "2.5"),
    "decimal without a zero": ("#### .5", "0.5", "0.5"),
    "thousands": ("#### 1,234,567", "1234567", "1234567"),
    "thousands and decimal": ("#### 1,234.50", "1234.5", "1234.5"),
    "dollars": ("#### $18", "18", "18"),
    "negative dollars": ("#### -$18", "-18", "-18"),
    "dollars negative": ("#### $-18", "-18", "-18"),
    "per cent": ("#### 25%", "25", "25"),
    "a unit": ("#### 30 km", "30", "30"),
    "a glued unit": ("#### 30km", "30", "30"),
    "a full stop": ("The answer is 18.", None, "18"),
    "bold": ("The answer is **18**.", None, "18"),
    "boxed": (r"So \boxed{18}", None, "18"),
    "no mark": ("It is 3 and then 4", None, "4"),
    "a mark without a number": ("#### none, but 7 before\nand 8 after", "7", "8"),
    "a mark and its number below": ("####\n7", "7", "7"),
    "two marks": ("#### 5\n\n#### 6", "5", "6"),
    "a difference": ("16-3=13", None, "13"),
    "a difference at the end": ("that is 16-3", None, "3"),
    "a minus after a bracket": ("(2+3)-4", None, "4"),
    "negative result": ("6-15=-9", None, "-9"),
    "zero is not negative": ("#### -0", "0", "0"),
    "words only": ("I cannot say", None, None),
    "nothing": ("", None, None),
    "a comma list is no thousands": ("1,2", None, "2"),
    "text after the number": ("#### 12 apples are left of 40", "12", "40"),
}


@pytest.mark.parametrize(("text", "strict", "flexible"), TEXTS.values(), ids=TEXTS.keys())
def test_a_text_gives_its_numbers(text: str, strict: str | None, flexible: str | None) -> None:
    assert strict_answer(text) == (None if strict is None else Decimal(strict))
    assert flexible_answer(text) == (None if flexible is None else Decimal(flexible))


def test_what_comes_after_a_stop_string_is_no_answer() -> None:
    text = " 4\n#### 4\n\nQuestion: What is 5?\nAnswer: 5\n#### 5"
    assert flexible_answer(cut_at_stop(text, ["Question", "<|separator|>"])) == 4
    assert cut_at_stop("no stop here", ["Question"]) == "no stop here"
    assert cut_at_stop("b a", ["a", "b"]) == ""


@given(st.text(max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    strict_answer(text)
    flexible_answer(text)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-(10**9), max_value=10**9))
def test_a_written_number_is_read_back(number: Decimal) -> None:
    assert find_numbers(f"it is {number:,}") == [number]
    assert find_numbers(f"${number:f}") == [number]


def test_every_shipped_answer_has_its_number() -> None:
    folder = Path(__file__).resolve().parents[2] / "tooling/data/gsm8k"
    for line in (folder / "test.jsonl").read_text().splitlines():
        answer = json.loads(line)["answer"]
        assert strict_answer(answer) == flexible_answer(answer)
