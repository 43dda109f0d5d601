"""A thin observer of FlashInfer's tuner: counts look-ups and says that work goes on. Works from 0.6.7 to 0.7.4.

It wraps `choose_one` and `search_cache` of the one instance, both public, while a pass lasts; of the statistics only
`tuned_op_successful_configs` is read, since no release counts its misses. `_profile_single_kernel`, where it
exists, is wrapped to report progress only.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from tooling.warmup.counts import Counts
from tooling.warmup.wrapping import wrapped

Progress = Callable[[str], None]
"""Told the operation at hand, often; the listener thins it out."""


@dataclass(slots=True)
class Tally:
    """Counts that grow during one pass, by operation."""

    counts: dict[str, Counts] = field(default_factory=dict)
    looked: list[bool] = field(default_factory=list)
    """Outcomes of the look-ups of the call at hand."""

    def add(self, operation: str, change: Counts) -> None:
        self.counts[operation] = self.counts.get(operation, Counts()).plus(change)


@contextlib.contextmanager
def observed(tuner: Any, progress: Progress) -> Iterator[Tally]:
    """The tally of everything that the tuner is asked inside; the tuner is as before afterwards."""
    tally = Tally()
    tuned = dict(getattr(tuner.stats, "tuned_op_successful_configs", {}))
    with (
        wrapped(tuner, "search_cache", lambda call: _counting_lookup(call, tally)),
        wrapped(tuner, "choose_one", lambda call: _counting_call(call, tally, progress)),
        wrapped(tuner, "_profile_single_kernel", lambda call: _telling(call, progress)),
    ):
        yield tally
    for operation, after in getattr(tuner.stats, "tuned_op_successful_configs", {}).items():
        if new := after - tuned.get(operation, 0):
            tally.add(operation, Counts(tuned=new))


def _counting_lookup(call: Any, tally: Tally) -> Any:
    def search_cache(*args: Any, **kwargs: Any) -> Any:
        answer = call(*args, **kwargs)
        tally.looked.append(bool(answer[0]))
        return answer

    return search_cache


def _counting_call(call: Any, tally: Tally, progress: Progress) -> Any:
    def choose_one(*args: Any, **kwargs: Any) -> Any:
        operation = str(args[0] if args else kwargs["custom_op"])
        outer, tally.looked = tally.looked, []
        progress(operation)
        try:
            return call(*args, **kwargs)
        finally:
            tally.add(operation, _of_one_call(tally.looked))
            tally.looked = outer

    return choose_one


def _of_one_call(looked: list[bool]) -> Counts:
    if not looked:
        return Counts(calls=1, skipped=1)
    hits = sum(looked)
    counts = Counts(calls=1, hits=hits, misses=len(looked) - hits)
    return counts if looked[-1] else replace(counts, fell_back=1)


def _telling(call: Any, progress: Progress) -> Any:
    def profile(*args: Any, **kwargs: Any) -> Any:
        progress("")
        return call(*args, **kwargs)

    return profile
