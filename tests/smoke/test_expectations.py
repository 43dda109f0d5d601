"""What the rule lets one expect of each scenario."""

from __future__ import annotations

import pytest

from tests.smoke.samples import RELEASES, STRATEGIES, row_for
from tooling.capabilities.gating import Strategy
from tooling.smoke.expectations import expect, fit_scenario
from tooling.smoke.scenarios import FORCED, SCENARIOS

CASES = [(release, name) for release in RELEASES for name in STRATEGIES[release]]


@pytest.mark.parametrize(("release", "name"), CASES)
def test_the_strategy_is_the_one_of_the_gating_table(release: str, name: str) -> None:
    row = row_for(release)
    scenario = fit_scenario(FORCED if name == FORCED.name else SCENARIOS[name], row)
    expected = expect(scenario, row)
    assert (str(expected.strategy), expected.gating.rule) == STRATEGIES[release][name]


@pytest.mark.parametrize(
    ("release", "name", "passed"),
    [
        ("0.6.12", "skip-given", None),
        ("0.6.12", "one-rank", None),
        ("0.6.13", "skip-given", ("bf16_gemm",)),
        ("0.6.13", "skip-empty", ()),
        ("0.6.13", "skip-automatic", ("fp4_gemm",)),
        ("0.6.13", "one-rank", ()),
        ("0.7.0.post1", "skip-automatic", ("fp4_gemm",)),
    ],
)
def test_skip_ops_are_passed_only_to_a_release_that_takes_them(
    release: str, name: str, passed: tuple[str, ...] | None
) -> None:
    assert expect(SCENARIOS[name], row_for(release)).passed == passed


@pytest.mark.parametrize(
    ("release", "name", "kept", "warm_hits", "laid_out"),
    [
        ("0.6.12", "one-rank", False, False, None),
        ("0.6.12", "truncated", False, False, "unchanged"),
        ("0.6.12", "foreign", False, False, "unchanged"),
        ("0.6.13", "one-rank", True, True, None),
        ("0.6.13", "truncated", True, True, "replaced"),
        ("0.6.13", "foreign", False, False, "unchanged"),
        ("0.6.13", "cache-off", False, False, None),
        ("0.6.13", "deepep-v2", False, False, None),
        ("0.7.0.post1", "one-rank", True, True, None),
        ("0.7.0.post1", "two-ranks", True, True, None),
    ],
)
def test_files_and_hits_follow_from_the_strategy_and_what_lies_there(
    release: str, name: str, kept: bool, warm_hits: bool, laid_out: str | None
) -> None:
    expected = expect(SCENARIOS[name], row_for(release))
    assert (expected.kept, expected.warm_hits, expected.laid_out) == (kept, warm_hits, laid_out)


def test_a_file_is_laid_out_for_two_ranks_where_one_rank_has_flashinfers_own_store() -> None:
    fitted = fit_scenario(SCENARIOS["foreign"], row_for("0.7.0.post1"))
    assert (fitted.ranks, expect(fitted, row_for("0.7.0.post1")).strategy) == (2, Strategy.SYNCHRONIZED)
    assert fit_scenario(fitted, row_for("0.7.0.post1")) == fitted
    assert fit_scenario(SCENARIOS["foreign"], row_for("0.6.13")) == SCENARIOS["foreign"]


def test_the_cache_is_forced_only_where_the_rule_keeps_none() -> None:
    forced = expect(FORCED, row_for("0.6.12"))
    assert (forced.diagnosis, forced.strategy, forced.kept) == (True, Strategy.LEADER_BROADCAST, True)
    assert not expect(FORCED, row_for("0.6.13")).diagnosis


def test_a_release_without_a_row_is_tuned_by_every_rank_and_gets_no_skip_ops() -> None:
    expected = expect(SCENARIOS["skip-given"], None)
    assert (expected.strategy, expected.persistent, expected.passed) == (Strategy.ALL_RANKS, False, None)


def test_more_ranks_than_were_asked_for_are_fine_and_fewer_are_not() -> None:
    row = row_for("0.6.13")
    assert fit_scenario(SCENARIOS["two-ranks"], row, ranks=8).ranks == 8
    assert fit_scenario(SCENARIOS["two-ranks"], row, ranks=1).ranks == 2
    assert fit_scenario(SCENARIOS["one-rank"], row, ranks=8).ranks == 1
