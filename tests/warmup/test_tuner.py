"""What is read off the tuner's memory, whatever a release keeps there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from tooling.warmup.tuner import Tuner


@dataclass(frozen=True)
class Config:
    """A tactic that JSON cannot hold."""

    tile: int


def tuner(tactic: Any) -> Tuner:
    key = ("gemm", "Runner", 123, ((1, 2),))
    return Tuner(SimpleNamespace(), SimpleNamespace(profiling_cache={key: (0, tactic, None)}))


@pytest.mark.parametrize(
    ("tactic", "plain"),
    [(-1, -1), ((64, (1, "x")), [64, [1, "x"]]), (Config(tile=64), "Config(tile=64)"), ({(1,): 2}, "{(1,): 2}")],
    ids=["a number", "tuples", "an object", "a key that is no text"],
)
def test_a_tactic_is_told_as_json_holds_it(tactic: Any, plain: Any) -> None:
    (entry,) = tuner(tactic).memory()
    assert (entry.tactic, entry.runner) == (plain, "Runner")
    assert json.dumps(entry.tactic)
