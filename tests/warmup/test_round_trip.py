"""What is lost between memory and disk."""

from __future__ import annotations

from tooling.warmup.counts import Counts, total
from tooling.warmup.round_trip import compare_round_trip
from tooling.warmup.tuner import MemoryEntry


def entry(key: str, tactic: object = 1, runner: str = "R") -> MemoryEntry:
    return MemoryEntry(file_keys=(f"{key}+extras", key), runner=runner, tactic=tactic)


def test_entries_that_share_a_key_on_disk_are_lost() -> None:
    trip = compare_round_trip([entry("a", 1), entry("a", 2), entry("b")], {"a": ["R", 2], "b": ["R", 1]})
    assert (trip.memory, trip.disk, trip.lost, trip.lost_keys, trip.other_tactic) == (3, 2, 1, ("a",), ("a",))
    assert not trip.lossless


def test_the_key_with_extras_is_looked_for_first() -> None:
    assert compare_round_trip([entry("a"), entry("b")], {"a+extras": ["R", 1], "b+extras": ["R", 1]}).lossless


def test_entries_that_are_not_on_disk_or_not_loaded_back_are_lost() -> None:
    assert compare_round_trip([entry("a")], {}).lost_keys == ("a+extras",)
    assert compare_round_trip([entry("a")], {"a": ["R", 1]}, loaded=frozenset()).lost == 1


def test_tactics_compare_as_json_does() -> None:
    assert compare_round_trip([entry("a", [1, [2]])], {"a": ["R", [1, [2]], ["policy"]]}).lossless
    assert compare_round_trip([entry("a", runner="S")], {"a": ["R", 1]}).other_tactic == ("a",)


def test_counts_add_up() -> None:
    one = Counts(calls=1, hits=2, misses=3, fell_back=1, tuned=3)
    assert total([one, one]) == Counts(calls=2, hits=4, misses=6, fell_back=2, tuned=6)
    assert one.lookups == 5
    assert Counts.from_json(one.as_json()) == one
