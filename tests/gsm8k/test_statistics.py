"""Formulas against textbook values, brute force and their own meaning."""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tooling.gsm8k.statistics import (
    binomial_at_most,
    detectable_drop,
    distance_in_sigmas,
    gate_detectable_drop,
    largest_significant,
    mcnemar_exact,
    wilson,
)

# R's binom.confint(x, n, methods = "wilson").
WILSON = {
    "1 of 10": (1, 10, 0.01787621, 0.4041500),
    "5 of 10": (5, 10, 0.2365931, 0.7634069),
    "891 of 1319": (891, 1319, 0.6497799, 0.7002376),
    "none": (0, 20, 0.0, 0.1611252),
    "all": (20, 20, 0.8388748, 1.0),
}


@pytest.mark.parametrize(("correct", "total", "low", "high"), WILSON.values(), ids=WILSON.keys())
def test_wilsons_interval(correct: int, total: int, low: float, high: float) -> None:
    interval = wilson(correct, total)
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=1e-4)


@given(st.integers(1, 2000), st.data())
def test_an_interval_holds_its_share(total: int, data: st.DataObject) -> None:
    correct = data.draw(st.integers(0, total))
    interval = wilson(correct, total)
    assert 0 <= interval.low <= correct / total <= interval.high <= 1


@pytest.mark.parametrize(
    ("first", "second", "p"),
    [(0, 0, 1.0), (1, 0, 1.0), (5, 0, 0.0625), (6, 0, 0.03125), (10, 2, 0.03857421875), (4, 4, 1.0)],
)
def test_mcnemars_exact_test(first: int, second: int, p: float) -> None:
    assert mcnemar_exact(first, second) == pytest.approx(p)
    assert mcnemar_exact(second, first) == pytest.approx(p)


def test_mcnemar_equals_a_count_of_all_coin_flips() -> None:
    first, second = 7, 2
    total = first + second
    as_extreme = sum(
        1 for flips in product((0, 1), repeat=total) if min(sum(flips), total - sum(flips)) <= min(first, second)
    )
    assert mcnemar_exact(first, second) == pytest.approx(as_extreme / 2**total)


def test_mcnemar_of_thousands_of_flips_does_not_overflow() -> None:
    assert mcnemar_exact(3000, 3000) == 1.0
    assert 0 <= mcnemar_exact(3500, 2500) < 1e-30


@pytest.mark.parametrize(("accuracy", "total"), [(0.676, 1319), (0.676, 200), (0.9, 48), (0.3, 100), (1.0, 16)])
def test_the_smallest_detectable_drop_is_seen_with_80_percent(accuracy: float, total: int) -> None:
    drop = detectable_drop(accuracy, total)
    critical = largest_significant(accuracy, total)
    assert drop is not None
    assert critical is not None
    assert binomial_at_most(critical, total, accuracy) <= 0.05
    assert binomial_at_most(critical + 1, total, accuracy) > 0.05 or accuracy == 1
    assert binomial_at_most(critical, total, accuracy - drop) == pytest.approx(0.8, abs=1e-3)


def test_more_questions_see_smaller_drops() -> None:
    drops = [detectable_drop(0.676, total) for total in (100, 200, 1319)]
    assert drops == sorted(drops, reverse=True)
    # The normal approximation for 1,319 questions: (1.645 + 0.842) standard errors.
    assert drops[-1] == pytest.approx(2.487 * math.sqrt(0.676 * 0.324 / 1319), rel=0.06)


def test_one_question_sees_nothing() -> None:
    assert detectable_drop(0.5, 1) is None
    assert largest_significant(0.5, 4) is None


def test_a_gate_catches_what_falls_under_its_floor_with_80_percent() -> None:
    drop = gate_detectable_drop(0.676, 0.57, 1319)
    assert drop is not None
    assert binomial_at_most(math.ceil(0.57 * 1319) - 1, 1319, 0.676 - drop) == pytest.approx(0.8, abs=1e-3)
    assert drop > 0.676 - 0.57
    assert gate_detectable_drop(0.676, 0.0, 1319) is None


def test_the_distance_to_a_floor() -> None:
    assert distance_in_sigmas(0.676, 0.65, 1319) == pytest.approx(2.02, abs=0.01)
    assert distance_in_sigmas(1.0, 0.9, 100) is None
