"""The relay between rank 0's host and another's: the last word before an end is repeated, whatever came first."""

from __future__ import annotations

import json

from tooling.edges.smoke.relay import _follow


class Store:
    """A key-value store as torch's, into which the other side puts its last step and its end at once."""

    def __init__(self) -> None:
        self.values = {"k/line/1": json.dumps({"step": "verify", "profiles": 1})}

    def check(self, keys: list[str]) -> bool:
        return all(key in self.values for key in keys)

    def get(self, key: str) -> str:
        return self.values[key]

    def set(self, key: str, value: str) -> None:
        self.values[key] = value

    def add(self, key: str, _: int) -> int:
        if key == "k/relay":
            self.values |= {"k/line/2": json.dumps({"step": "waits at barrier", "profiles": 2}), "k/end": "-9"}
        return 1


class Channel:
    """Hears what is repeated."""

    may_go = True

    def __init__(self) -> None:
        self.said: list[tuple[str, int]] = []

    def repeat(self, step: str, profiles: int) -> None:
        self.said.append((step, profiles))


def test_a_step_that_comes_together_with_the_end_is_repeated() -> None:
    channel = Channel()
    assert _follow(Store(), "k", channel) == -9
    assert channel.said == [("verify", 1), ("waits at barrier", 2)]
