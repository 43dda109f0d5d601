"""Every strategy through the same orchestration as on a GPU: the real tuner of three releases on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.smoke.workers.conftest import Rehearse, living
from tests.warmup.environments import table_of
from tooling.capabilities.table import Row, Table
from tooling.capabilities.table_text import dump, parse
from tooling.smoke.observations import RunSeen, ScenarioSeen
from tooling.smoke.scenarios import choose

pytestmark = pytest.mark.online

CHOSEN = {
    "0.6.12": ("one-rank", "foreign"),
    "0.6.13": ("one-rank", "two-ranks", "skip-given", "skip-automatic", "truncated", "foreign"),
    "0.7.0.post1": ("one-rank", "foreign"),
}


@pytest.fixture(scope="module")
def seen(
    rehearse: Rehearse, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], dict[str, ScenarioSeen]]]:
    """The scenarios of a release, run when first asked for."""
    kept: dict[str, dict[str, ScenarioSeen]] = {}
    homes: list[Path] = []

    def get(release: str) -> dict[str, ScenarioSeen]:
        if release not in kept:
            homes.append(tmp_path_factory.mktemp("rehearsal"))
            chosen = choose(CHOSEN[release], force_persistent=release == "0.6.12")
            kept[release] = rehearse(release, homes[-1], chosen)
        return kept[release]

    yield get
    assert [line for home in homes for line in living(home)] == []


def both(scenario: ScenarioSeen) -> tuple[RunSeen, RunSeen]:
    assert scenario.cold is not None
    assert scenario.warm is not None
    assert scenario.cold.ended, scenario.cold
    assert scenario.warm.ended, scenario.warm
    return scenario.cold, scenario.warm


def tuned(run: RunSeen) -> list[int]:
    return [rank.report["tuned"] for rank in run.ranks]


@pytest.mark.parametrize(
    ("release", "name", "strategy", "warm"),
    [
        ("0.6.12", "one-rank", "all_ranks", False),
        ("0.6.13", "one-rank", "leader_broadcast", True),
        ("0.6.13", "two-ranks", "leader_broadcast", True),
        ("0.7.0.post1", "one-rank", "managed", True),
    ],
)
def test_a_warm_start_takes_what_the_cold_one_left_only_where_the_rule_keeps_it(
    seen: Callable[[str], dict[str, ScenarioSeen]], release: str, name: str, strategy: str, warm: bool
) -> None:
    cold, second = both(seen(release)[name])
    assert {rank.strategy for rank in (*cold.ranks, *second.ranks)} == {strategy}
    assert sum(tuned(cold)) > 0
    assert (sum(tuned(second)) == 0) is warm
    assert bool(cold.files.after) is warm
    assert second.record["warm"] is warm


def test_results_and_lookups_and_errors_are_measured_cold_and_warm(
    seen: Callable[[str], dict[str, ScenarioSeen]],
) -> None:
    cold, warm = both(seen("0.6.13")["one-rank"])
    for run in (cold, warm):
        (rank,) = run.ranks
        assert set(rank.lookups) == {"3", "4", "6", "12", "16"}
        assert all(counts["host_gemm"]["hits"] == 2 for counts in rank.lookups.values())
        assert [(error.label, error.finite) for error in rank.errors] == [("host_bf16", True), ("host_fp16", True)]
        assert all(0 <= (error.largest or 0.0) < 0.01 for error in rank.errors)
        assert rank.downloads == ()
        assert run.seconds is not None
    assert [error.sha256 for error in cold.ranks[0].errors] == [error.sha256 for error in warm.ranks[0].errors]
    assert (cold.ranks[0].tuning_s or 0.0) > 0.0
    assert warm.ranks[0].tuning_s == 0.0


def test_what_a_warm_start_read_is_seen(seen: Callable[[str], dict[str, ScenarioSeen]]) -> None:
    cold, warm = both(seen("0.6.13")["one-rank"])
    (file,) = [path for path in cold.files.created if path.endswith("autotune_configs.json")]
    assert file in (warm.files.read or ())


def test_ranks_end_with_equal_tactics(seen: Callable[[str], dict[str, ScenarioSeen]]) -> None:
    for run in both(seen("0.6.13")["two-ranks"]):
        assert len(run.ranks) == 2
        assert len({rank.tactics_sha256 for rank in run.ranks}) == 1
        assert run.ranks[0].tactics_sha256


@pytest.mark.parametrize(
    ("release", "name", "passed"),
    [
        ("0.6.12", "one-rank", None),
        ("0.6.13", "one-rank", ()),
        ("0.6.13", "skip-given", ("bf16_gemm",)),
        ("0.6.13", "skip-automatic", ("fp4_gemm",)),
    ],
)
def test_the_skipped_operations_are_seen_in_the_call_itself(
    seen: Callable[[str], dict[str, ScenarioSeen]], release: str, name: str, passed: tuple[str, ...] | None
) -> None:
    assert both(seen(release)[name])[0].ranks[0].passed == passed


@pytest.mark.parametrize("release", sorted(CHOSEN))
def test_a_foreign_file_keeps_its_bytes_and_the_warm_start_tunes_anew(
    seen: Callable[[str], dict[str, ScenarioSeen]], release: str
) -> None:
    cold, warm = both(seen(release)["foreign"])
    assert cold.files.before
    assert (cold.files.changed, cold.files.removed, warm.files.changed, warm.files.removed) == ((), (), (), ())
    assert all(count > 0 for count in tuned(warm) if warm.record["strategy"] != "leader_broadcast")
    assert sum(tuned(warm)) > 0
    assert warm.record["warm"] is False
    if release != "0.6.12":
        assert (cold.record["why_cold"], warm.record["why_cold"]) == ("FOREIGN", "FOREIGN")


def test_without_a_cache_a_file_that_lies_there_is_not_even_read(
    seen: Callable[[str], dict[str, ScenarioSeen]],
) -> None:
    assert [run.files.read for run in both(seen("0.6.12")["foreign"])] == [(), ()]


def test_a_truncated_file_is_replaced_and_the_warm_start_hits(
    seen: Callable[[str], dict[str, ScenarioSeen]],
) -> None:
    cold, warm = both(seen("0.6.13")["truncated"])
    assert cold.record["why_cold"] == "TRUNCATED"
    assert len(cold.files.changed) == 1
    assert (warm.record["warm"], sum(tuned(warm))) == (True, 0)


def test_beside_flashinfers_own_store_a_foreign_file_lies_in_a_world_of_two(
    seen: Callable[[str], dict[str, ScenarioSeen]],
) -> None:
    cold, _ = both(seen("0.7.0.post1")["foreign"])
    assert [rank.strategy for rank in cold.ranks] == ["synchronized", "synchronized"]


def test_the_forced_cache_loses_entries_on_a_release_whose_keys_collide(
    seen: Callable[[str], dict[str, ScenarioSeen]],
) -> None:
    cold, _ = both(seen("0.6.12")["force-persistent"])
    trip = cold.ranks[0].report["round_trip"]
    assert (trip["memory"], trip["disk"], trip["lost"]) == (10, 5, 5)


def test_a_row_that_promises_what_the_release_lacks_is_an_error_of_every_rank(
    rehearse: Rehearse, tmp_path: Path
) -> None:
    row = parse(table_of("0.7.0.post1").read_text()).rows[0]
    wrong = Row(releases=parse(table_of("0.6.13").read_text()).rows[0].releases, facts=row.facts)
    table = tmp_path / "wrong.json"
    table.write_text(dump(Table(rows=(wrong,))))
    found = rehearse("0.6.13", tmp_path, choose(["one-rank"], force_persistent=False), table=table)["one-rank"]
    assert found.cold is not None
    assert found.warm is None
    assert [rank.end for rank in found.cold.ranks] == ["error"]
    assert "[WRONG_ROW]" in found.cold.ranks[0].why
