"""The ranks of an engine meet over torch.distributed; a wait names the rank that does not come, and its last step.

Meetings are collectives on a gloo group with the warm-up's timeout; before each, and before the group is made, a rank
waits on torch.distributed's key-value store until all have arrived, so that a rank that never comes is named instead of
timing out anonymously.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Protocol, TypeVar

from tooling.warmup.deadlines import Late, Wait, next_wait
from tooling.warmup.errors import PeerFailedError, StuckError
from tooling.warmup.settings import Deadlines

T = TypeVar("T")
FIRST_POLL_S, LAST_POLL_S = 0.001, 0.05
CLOSE_PATIENCE_S = 5.0
FIRST_STEP = "start"
TELL_EVERY_S = 1.0
"""Progress is passed on this often; a tuned bucket may take microseconds or minutes."""

Listener = Callable[[str], None]
"""Told this rank's steps and the operations at hand, often: an orchestrator notes what a rank did last."""


def unheard(_: str) -> None:
    """The listener where nobody listens."""


class Ranks(Protocol):
    """The ranks that warm up together: one process alone, or a group."""

    rank: int
    size: int
    group: Any
    waits: dict[str, float]
    """Seconds that this rank waited at each step."""

    def at(self, step: str) -> None:
        """Says what this rank does from now on."""

    def progress(self, detail: str) -> None:
        """Says that work goes on."""

    def meet(self, step: str, payload: T) -> list[T]:
        """Waits for all ranks; what each brought, by rank.

        Raises:
            StuckError: a deadline passed. PeerFailedError: another rank failed.
        """

    def share(self, step: str, payload: T | None) -> T | None:
        """Waits for all ranks; what rank 0 brought."""

    def fail(self, message: str) -> None:
        """Tells the others that this rank will not come, and gives back what meeting took; waits for nobody."""

    def close(self) -> None:
        """Waits for all ranks and gives back what meeting took."""


@dataclass(slots=True)
class Alone:
    """One process: it waits for nobody."""

    rank: int = 0
    size: int = 1
    group: Any = None
    waits: dict[str, float] = field(default_factory=dict)
    listener: Listener = unheard

    def at(self, step: str) -> None:
        self.listener(step)

    def progress(self, detail: str) -> None:
        self.listener(detail)

    def meet(self, step: str, payload: T) -> list[T]:
        self.waits[step] = 0.0
        return [payload]

    def share(self, step: str, payload: T | None) -> T | None:
        self.waits[step] = 0.0
        return payload

    def fail(self, message: str) -> None:
        """Nobody listens."""

    def close(self) -> None:
        """There is nothing to give back."""


class Group:
    """Several processes with an initialised torch.distributed; making one is a collective of all its ranks."""

    def __init__(self, deadlines: Deadlines, listener: Listener = unheard) -> None:
        import torch.distributed as dist  # noqa: PLC0415  # only where ranks meet

        self._dist = dist
        self._clock = time.monotonic
        self._listener = listener
        self._deadlines = deadlines
        self._began = self._clock()
        self._told = 0.0
        self._meeting = 0
        self._exchanging = False
        self._step = "start"
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.waits: dict[str, float] = {}
        self.group: Any = None
        self._store = _meeting_place(dist, self.rank)
        self._open()

    def at(self, step: str) -> None:
        self._step = step
        self._listener(step)
        self._tell(step)

    def progress(self, detail: str) -> None:
        self._listener(detail)
        if self._clock() - self._told >= TELL_EVERY_S:
            self._tell(f"{self._step}: {detail}" if detail else self._step)

    def meet(self, step: str, payload: T) -> list[T]:
        self._arrive(step)
        gathered: list[Any] = [None] * self.size
        self._collective(step, lambda: self._dist.all_gather_object(gathered, payload, group=self.group))
        return gathered

    def share(self, step: str, payload: T | None) -> T | None:
        self._arrive(step)
        box: list[Any] = [payload if self.rank == 0 else None]
        self._collective(step, lambda: self._dist.broadcast_object_list(box, src=0, group=self.group))
        return box[0]  # type: ignore[no-any-return]

    def fail(self, message: str) -> None:
        with contextlib.suppress(RuntimeError):  # the meeting place is gone, and so is whoever would read it
            self._store.set("failed", json.dumps([self.rank, message]))
        if not self._exchanging:  # giving back a group in the middle of an exchange waits for the exchange
            with contextlib.suppress(Exception):  # what went wrong first is what the caller must hear of
                self._give_back()

    def close(self) -> None:
        """A rank that is still in the last exchange is waited for, but not for long: all is said by then."""
        with contextlib.suppress(RuntimeError):  # the meeting place may go with its rank
            self._store.add("closing", 1)
            until = self._clock() + CLOSE_PATIENCE_S
            while self._store.add("closing", 0) < self.size and self._clock() < until:
                time.sleep(FIRST_POLL_S)
        self._give_back()

    def _open(self) -> None:
        """Makes the group once all ranks have come: torch's own wait, for one that does not, names nobody."""

        def make() -> None:
            timeout = timedelta(seconds=self._deadlines.total_s)
            self.group = self._dist.new_group(backend="gloo", timeout=timeout)

        try:
            self._arrive(FIRST_STEP)
            self._collective(FIRST_STEP, make)
        except BaseException as cause:
            self.fail(f"{type(cause).__name__}: {cause}")
            raise

    def _give_back(self) -> None:
        """Once only: torch takes no group at all for the engine's own."""
        group, self.group = self.group, None
        if group is not None:
            self._dist.destroy_process_group(group)

    def _tell(self, text: str) -> None:
        """Notes this rank's last step and that something moved."""
        self._told = self._clock()
        try:
            self._store.set(f"step/{self.rank}", text)
            self._store.add("progress", 1)
        except RuntimeError as cause:
            raise _gone(text, cause) from cause

    def _arrive(self, step: str) -> None:
        """Returns once every rank has come to this meeting."""
        self._meeting += 1
        self.at(f"waits at {step}")
        started = self._clock()
        try:
            self._store.set(f"met/{self.rank}", str(self._meeting))
            self._store.add(f"arrived/{self._meeting}", 1)
            self._wait(step, started)
        except RuntimeError as cause:
            raise _gone(step, cause) from cause
        self.waits[step] = self._clock() - started
        self.at(f"after {step}")

    def _wait(self, step: str, started: float) -> None:
        poll = FIRST_POLL_S
        wait = Wait(began=self._began, moved=started, progress=-1)
        deadlines = self._deadlines
        if step == FIRST_STEP:  # until then a rank tells nobody how it gets on
            deadlines = replace(deadlines, no_progress_s=deadlines.total_s)
        while True:
            if self._store.check(["failed"]):
                rank, message = json.loads(self._store.get("failed"))
                raise PeerFailedError(step, rank, message)
            if self._store.add(f"arrived/{self._meeting}", 0) >= self.size:
                return
            looked = next_wait(wait, self._store.add("progress", 0), self._clock(), deadlines)
            if isinstance(looked, Late):
                raise StuckError(step, self._behind(), looked.why)
            wait = looked
            time.sleep(poll)
            poll = min(poll * 1.5, LAST_POLL_S)

    def _behind(self) -> dict[int, str]:
        """The ranks that have not come to this meeting, with the last step that each noted."""
        late = [rank for rank in range(self.size) if self._number(rank) < self._meeting]
        return {rank: self._noted(f"step/{rank}") or "has not begun" for rank in late}

    def _number(self, rank: int) -> int:
        return int(self._noted(f"met/{rank}") or 0)

    def _noted(self, key: str) -> str:
        return self._store.get(key).decode() if self._store.check([key]) else ""

    def _collective(self, step: str, call: Callable[[], None]) -> None:
        """The exchange; one that is interrupted from outside stays under way."""
        self._exchanging = True
        try:
            call()
            self._exchanging = False
        except RuntimeError as cause:
            self._exchanging = False
            raise StuckError(step, {}, f"a rank left during the exchange ({_first_line(cause)})") from cause


def open_ranks(deadlines: Deadlines, listener: Listener = unheard) -> Ranks:
    """The ranks of the initialised torch.distributed, or this process alone."""
    try:
        import torch.distributed as dist  # noqa: PLC0415
    except ImportError:
        return Alone(listener=listener)
    if not dist.is_available() or not dist.is_initialized() or dist.get_world_size() == 1:
        return Alone(listener=listener)
    return Group(deadlines, listener)


def _meeting_place(dist: Any, rank: int) -> Any:
    """The engine's own store, under a name for this warm-up; every rank counts its warm-ups for itself."""
    from torch.distributed.distributed_c10d import _get_default_store  # noqa: PLC0415  # only where ranks meet

    store = _get_default_store()
    try:
        number = store.add(f"flashinfer-warmup/opened/{rank}", 1)
    except RuntimeError as cause:
        raise _gone(FIRST_STEP, cause) from cause
    return dist.PrefixStore(f"flashinfer-warmup/{number}", store)


def _gone(step: str, cause: BaseException) -> StuckError:
    return StuckError(step, {0: "not known"}, f"rank 0, where the ranks meet, is gone ({_first_line(cause)})")


def _first_line(error: BaseException) -> str:
    return str(error).split("\n", 1)[0][:200]
