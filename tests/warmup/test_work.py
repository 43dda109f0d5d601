"""One rank under way: what it cannot save or load is told, and stops nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tooling.warmup.counts import Counts
from tooling.warmup.ranks import Alone
from tooling.warmup.work import Work


class BrokenTuner:
    """A tuner whose files fail in some way."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def save(self) -> bytes:
        raise self.error

    def load(self, data: bytes) -> bool:
        raise self.error


def make_work(tuner: Any = None) -> Work:
    return Work(runner=tuner, ranks=Alone(), tuner=tuner, max_tokens=1, metadata={}, file=None)


@pytest.mark.parametrize("error", [TypeError("not JSON serializable"), OSError(28, "No space left"), KeyError("x")])
def test_whatever_flashinfer_raises_over_its_files_is_told_and_stops_nothing(error: Exception) -> None:
    """A tactic may be what JSON cannot hold."""
    work = make_work(BrokenTuner(error))
    assert work.save() == (None, None)
    assert not work.load(b"{}")
    assert all(type(error).__name__ in warning for warning in work.warnings)
    assert len(work.warnings) == 2


def test_operations_that_are_skipped_do_not_count_as_missing() -> None:
    """Outside of tuning mode they are looked up, and nothing was tuned for them."""
    work = make_work()
    work.skip_ops = frozenset({"skipped"})
    found = {"skipped": Counts(misses=2), "hit": Counts(hits=1), "missed": Counts(hits=1, misses=3)}
    assert work.misses(found) == {"missed": 3}
