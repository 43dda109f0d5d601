"""What is a count and what is a time."""

from __future__ import annotations

import pytest

from tooling.smoke.shapes import is_count, is_seconds


@pytest.mark.parametrize("value", [0, 1, 10**30])
def test_a_count_is_whole_and_not_below_nothing(value: object) -> None:
    assert is_count(value)


@pytest.mark.parametrize("value", [-1, 1.0, True, False, "1", None, [1]], ids=repr)
def test_anything_else_is_no_count(value: object) -> None:
    assert not is_count(value)


@pytest.mark.parametrize("value", [0, 0.0, 1.5, 10**30])
def test_a_time_can_have_passed(value: object) -> None:
    assert is_seconds(value)


@pytest.mark.parametrize("value", [-1, -0.1, float("inf"), float("nan"), True, "1", None], ids=repr)
def test_anything_else_is_no_time(value: object) -> None:
    assert not is_seconds(value)
