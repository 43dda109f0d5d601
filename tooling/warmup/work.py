"""One rank's warm-up under way: counted passes, saving and loading with their failures. Strategies build on it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from tooling.warmup.cache_file import Written, read_cache, write_cache
from tooling.warmup.cache_text import ABSENT_STATE, CacheFile, CacheState, judge
from tooling.warmup.counts import Counts
from tooling.warmup.jit_clock import jit_clock
from tooling.warmup.observer import observed
from tooling.warmup.ranks import Ranks
from tooling.warmup.round_trip import RoundTrip, compare_round_trip
from tooling.warmup.runner import Runner, dummy_pass
from tooling.warmup.tuner import Tuner


class Work:
    """What one rank has at hand, and what it has done so far.

    `file` is where this rank's cache lies, None where the strategy keeps none; `state`, `content` and `data` are what
    was found there.
    """

    def __init__(
        self,
        *,
        runner: Runner,
        ranks: Ranks,
        tuner: Tuner,
        max_tokens: int,
        metadata: Mapping[str, str],
        file: Path | None,
    ) -> None:
        self.runner = runner
        self.ranks = ranks
        self.tuner = tuner
        self.max_tokens = max_tokens
        self.metadata = metadata
        self.file = file
        self.skip_ops: frozenset[str] = frozenset()
        self.state: CacheState = ABSENT_STATE
        self.content: CacheFile | None = None
        self.data: bytes | None = None
        self.loaded = 0
        self.phases: dict[str, dict[str, Counts]] = {}
        self.seconds: dict[str, float] = {}
        self.jit_s: dict[str, float] = {}
        self.builds: dict[str, int] = {}
        self.warnings: list[str] = []

    def look(self) -> None:
        """Reads the file that lies there."""
        if self.file is not None:
            self.state, self.content, self.data = read_cache(self.file, self.metadata)

    def run_pass(self, name: str, context: AbstractContextManager[object] | None = None) -> dict[str, Counts]:
        """One dummy pass in that context, counted; outside of tuning mode without one. The counts by operation."""
        import torch  # noqa: PLC0415  # only when called

        self.ranks.at(name)
        started = time.monotonic()
        with (
            jit_clock() as jit,
            torch.inference_mode(),
            context or contextlib.nullcontext(),
            observed(self.tuner.instance, self.ranks.progress) as tally,
        ):
            dummy_pass(self.runner, num_tokens=self.max_tokens)
        self.seconds[name] = time.monotonic() - started
        self.jit_s[name], self.builds[name] = jit.seconds, jit.builds
        self.phases[name] = tally.counts
        return tally.counts

    def tuning(self) -> AbstractContextManager[object]:
        return self.tuner.tuning(self.skip_ops)

    def save(self) -> tuple[bytes | None, CacheFile | None]:
        """What FlashInfer would write, as bytes and as content; nothing where it cannot be had."""
        try:
            data = self.tuner.save()
        except Exception as cause:  # noqa: BLE001  # as in `load`; a tactic may be what JSON cannot hold
            told = f"{type(cause).__name__}: {cause}"
            self.warnings.append(f"rank {self.ranks.rank}: the tuned entries could not be saved: {told}")
            return None, None
        content = judge(data, self.metadata)[1]
        return (data, content) if content is not None and content.entries else (None, None)

    def load(self, data: bytes | None) -> bool:
        """Whether FlashInfer took those bytes; it may refuse, and then the entries are tuned."""
        if data is None:
            return False
        try:
            taken = self.tuner.load(data)
        except Exception as cause:  # noqa: BLE001  # a cache never fails a start, whatever FlashInfer makes of its bytes
            self.warnings.append(
                f"rank {self.ranks.rank}: FlashInfer could not load the cache: {type(cause).__name__}: {cause}"
            )
            return False
        content = judge(data, self.metadata)[1]
        self.loaded = len(content.entries) if taken and content else 0
        return taken

    def write(self, content: CacheFile, *, merged: bool) -> Written:
        """Puts the content where this rank's cache lies, and says aloud if that fails."""
        assert self.file is not None
        written = write_cache(self.file, content, self.metadata, merged=merged)
        if not written.done:
            self.warnings.append(
                f"rank {self.ranks.rank}: the cache was not written ({written.reason}): {written.detail}"
            )
        elif written.lock:
            self.warnings.append(f"rank {self.ranks.rank}: {self.file}: {written.lock}; written by rename alone")
        return written

    def misses(self, counts: Mapping[str, Counts]) -> dict[str, int]:
        """Misses by operation, without those of skipped operations, which miss outside of tuning mode by design."""
        return {name: one.misses for name, one in counts.items() if one.misses and name not in self.skip_ops}

    def round_trip(self, disk: Mapping[str, list[object]], loaded: frozenset[str] | None = None) -> RoundTrip:
        return compare_round_trip(self.tuner.memory(), disk, loaded)


def tuned_in(counts: Mapping[str, Counts]) -> int:
    return sum(one.tuned for one in counts.values())
