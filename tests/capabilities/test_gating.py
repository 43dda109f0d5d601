"""The gating rule, over every row of the shipped table and every world, against the rule written out by release."""

from __future__ import annotations

from itertools import product

import pytest
from packaging.version import Version

from tooling.capabilities.comparing import gate_row
from tooling.capabilities.facts import Fact, unknown
from tooling.capabilities.gating import DEEPEP_BACKENDS, Gating, Strategy, UnknownBackendError, World, gate
from tooling.edges.capability_table import load_table

BACKENDS = (None, "allgather_reducescatter", "pplx", *sorted(DEEPEP_BACKENDS))
WORLDS = [
    World(ranks=ranks, backend=backend, gpu=gpu, installed=installed, cache_off=cache_off)
    for ranks, backend, gpu, installed, cache_off in product(
        (1, 2, 8), BACKENDS, (True, False), (True, False), (True, False)
    )
]
RELEASES = load_table().releases


def by_release(release: Version, world: World) -> tuple[str, bool]:
    """What the design's table says, from version numbers alone: the side branch 0.6.11.post2/.post3 included."""
    if not world.installed or not world.gpu or release < Version("0.2.6"):
        return "none", False
    if world.cache_off or release < Version("0.6.13"):
        return "all_ranks", False
    if world.ranks > 1 and world.backend in {"deepep_high_throughput", "deepep_low_latency", "deepep_v2"}:
        return "all_ranks", False
    if world.ranks > 1 and release >= Version("0.6.16"):
        return "synchronized", True
    if world.ranks == 1 and release >= Version("0.7.0"):
        return "managed", True
    return "leader_broadcast", True


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_every_row_in_every_world_is_gated_as_designed(release: Version) -> None:
    row = next(row for row in load_table().rows if release in row.releases)
    for world in WORLDS:
        found = gate(row.facts, world)
        assert (str(found.strategy), found.persistent) == by_release(release, world), world


def test_the_side_branch_with_extras_but_without_the_layout_is_not_trusted() -> None:
    row = next(row for row in load_table().rows if Version("0.6.11.post2") in row.releases)
    assert row.facts["disk_key_has_runner_extras"].value is True
    assert gate(row.facts, World()).rule == 3


GOOD = {
    name: Fact(value=value)
    for name, value in {
        "autotuner": "package",
        "disk_key_has_runner_extras": True,
        "extras_have_sf_layout": True,
        "process_group_timing": True,
        "managed_store": True,
    }.items()
}


@pytest.mark.parametrize("name", ["disk_key_has_runner_extras", "extras_have_sf_layout"])
def test_could_not_tell_is_never_a_pass(name: str) -> None:
    for facts in ({**GOOD, name: unknown("never seen")}, {key: GOOD[key] for key in GOOD if key != name}):
        assert gate(facts, World()) == Gating(
            strategy=Strategy.ALL_RANKS, persistent=False, rule=3, why=gate(facts, World()).why
        )


def test_a_tuner_that_could_not_be_read_is_not_taken_for_none() -> None:
    assert gate({"autotuner": unknown("never seen")}, World()).strategy is Strategy.ALL_RANKS


def test_a_release_without_a_row_tunes_on_all_ranks_and_says_so() -> None:
    found = gate(None, World(ranks=2))
    assert (found.strategy, found.persistent) == (Strategy.ALL_RANKS, False)
    assert "no row" in found.warning


def test_an_unknown_deepep_backend_is_never_guessed_to_be_harmless() -> None:
    world = World(ranks=2, backend="deepep_v3")
    with pytest.raises(UnknownBackendError, match="deepep_v3"):
        gate(GOOD, world)
    found = gate(GOOD, world, strict=False)
    assert (found.strategy, found.rule) == (Strategy.ALL_RANKS, 4)
    assert "deepep_v3" in found.warning
    assert gate(GOOD, world, strict=False, deepep_synchronized=True).strategy is Strategy.ALL_RANKS


def test_an_unknown_deepep_backend_is_refused_on_one_rank_too() -> None:
    world = World(ranks=1, backend="deepep_v3")
    with pytest.raises(UnknownBackendError, match="deepep_v3"):
        gate(GOOD, world)
    assert gate(GOOD, world, strict=False).strategy is Strategy.MANAGED


def test_backends_are_compared_whatever_their_case() -> None:
    assert gate(GOOD, World(ranks=2, backend="DeepEP_V2")).rule == 4
    with pytest.raises(UnknownBackendError, match="DEEPEP_V3"):
        gate(GOOD, World(ranks=2, backend="DEEPEP_V3"))


def test_evidence_from_real_deepep_lifts_rule_four() -> None:
    world = World(ranks=2, backend="deepep_v2")
    assert gate(GOOD, world, deepep_synchronized=True).strategy is Strategy.SYNCHRONIZED
    assert gate(GOOD, world).rule == 4


def test_reports_name_three_worlds() -> None:
    row = next(row for row in load_table().rows if Version("0.6.13") in row.releases)
    assert {world: item.as_json() for world, item in gate_row(row).items()} == {
        "single": {
            "strategy": "leader_broadcast",
            "persistent": True,
            "rule": 7,
            "why": "the leader tunes and every rank loads its file",
        },
        "multi": {
            "strategy": "leader_broadcast",
            "persistent": True,
            "rule": 7,
            "why": "the leader tunes and every rank loads its file",
        },
        "deepep": {
            "strategy": "all_ranks",
            "persistent": False,
            "rule": 4,
            "why": "DeepEP's ranks wait for each other",
        },
    }
