"""What is read off the tuner's memory, whatever a release keeps there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from tooling.warmup.tuner import Tuner


class Pairs(list[tuple[Any, Any]]):
    """A cache whose keys need no hash here."""

    def items(self) -> list[tuple[Any, Any]]:
        return self


@dataclass(frozen=True)
class Config:
    """A tactic that JSON cannot hold."""

    tile: int


KEYS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "0.2.6": ((("gemm", "Runner"), ((True,), ((1, 2),))), ("('gemm', 'Runner', ((True,), ((1, 2),)))",)),
    "0.6.6": (("gemm", "Runner", 123, ((1, 2),)), ("('gemm', 'Runner', ((1, 2),))",) * 2),
    "0.6.13": (
        ("gemm", "Runner", 123, ((1, 2),), ("x",)),
        ("('gemm', 'Runner', ((1, 2),), ('x',))", "('gemm', 'Runner', ((1, 2),))"),
    ),
    "0.6.16": (SimpleNamespace(file_key="('gemm',)", runner_class_name="Runner"), ("('gemm',)",)),
}
"""How releases write their keys in memory, and what a file may hold for them."""


def tuner(tactic: Any, key: Any = KEYS["0.6.6"][0]) -> Tuner:
    return Tuner(SimpleNamespace(), SimpleNamespace(profiling_cache=Pairs([(key, (0, tactic, None))])))


@pytest.mark.parametrize(
    ("tactic", "plain"),
    [(-1, -1), ((64, (1, "x")), [64, [1, "x"]]), (Config(tile=64), "Config(tile=64)"), ({(1,): 2}, "{(1,): 2}")],
    ids=["a number", "tuples", "an object", "a key that is no text"],
)
def test_a_tactic_is_told_as_json_holds_it(tactic: Any, plain: Any) -> None:
    (entry,) = tuner(tactic).memory()
    assert (entry.tactic, entry.runner) == (plain, "Runner")
    assert json.dumps(entry.tactic)


@pytest.mark.parametrize("release", KEYS)
def test_an_entry_is_known_by_the_keys_that_a_file_may_hold(release: str) -> None:
    key, expected = KEYS[release]
    (entry,) = tuner(1, key).memory()
    assert (entry.file_keys, entry.runner, entry.operation) == (expected, "Runner", "gemm")
