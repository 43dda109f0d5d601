"""What is hidden in a text is shown, and nothing else changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tooling.gate.escaping import clean, console_line, cut, one_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 漢字 🚀", "plain é 漢字 🚀"),
        ("a\tb\nc", "a\tb\nc"),
        ("a\r\nb", "a\nb"),
        ("a\rb", "a\\x0db"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\x00\x9b", "\\x00\\x9b"),
        ("\u202egnp", "\\u202egnp"),
        ("a\u200bb\ufeff", "a\\u200bb\\ufeff"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("a\U000e0100b\U0001d173", "a\\U000e0100b\\U0001d173"),
        ("👩\u200d👧", "👩\u200d👧"),
        ("\ufffe\uffff", "\\ufffe\\uffff"),
    ],
)
def test_what_is_hidden_is_shown(text: str, shown: str) -> None:
    assert clean(text) == shown


@given(st.text(st.characters(exclude_categories=())))
def test_any_clean_text_can_be_encoded_and_is_clean_already(text: str) -> None:
    shown = clean(text)
    shown.encode("utf-8")
    assert clean(shown) == shown
    assert "\x1b" not in shown


def test_a_text_on_one_line_has_no_other_white_space_than_single_blanks() -> None:
    assert one_line("  a\n\n b\t\tc ") == "a b c"


def test_a_line_for_a_terminal_holds_no_command_of_a_ci_server() -> None:
    assert console_line("a ##[error]b\n::c", 60) == "a ## [error]b ::c"


def test_a_long_text_is_cut_with_a_count() -> None:
    assert cut("x" * 1_210, 10) == "xxxxxxxxxx… (1,200 characters more)"
    assert cut("x" * 10, 10) == "x" * 10
