"""One run: its workers are let go together, heard until all have ended, and killed by process group if they do not."""

from __future__ import annotations

import secrets
import selectors
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tooling.edges.serving.leash import Leash
from tooling.edges.serving.reaping import end_all
from tooling.edges.serving.signals import undisturbed
from tooling.edges.smoke.process import Worker
from tooling.smoke.observations import RankSeen
from tooling.smoke.orders import Order
from tooling.warmup.deadlines import Late, Wait, next_wait
from tooling.warmup.settings import Deadlines

LOOK_EVERY_S = 0.2
PEER_GRACE_S = 20.0
"""How long the others have to notice that a rank is gone; collectives of gloo notice at once, of NCCL never."""

EXIT_S = 10.0
"""How long a worker may take to exit once it has said its last word."""

LOG_BYTES = 1024**3
"""How much a worker may print in all; one that never stops would fill the disk long before it is late."""

Tell = Callable[[Sequence[Worker]], None]
"""Shown the workers while they work."""


class Crew:
    """The workers of one run. `close` leaves no process of theirs alive, whatever happened."""

    def __init__(
        self, orders: Sequence[Order], folder: Path, environ: Mapping[str, str], *, python: str, relayed: bool = False
    ) -> None:
        self._mark = secrets.token_hex(8)
        self._leash: Leash | None = None
        self.workers: list[Worker] = []
        folder.mkdir(parents=True, exist_ok=True)
        try:
            for order in orders:
                self.workers.append(
                    Worker(order, folder, environ, self._mark, python=python, relayed=relayed and order.rank > 0)
                )
            # Workers that hear of our end kill each other, and a stray that is born meanwhile has nobody but this.
            self._leash = Leash("process", self._mark, str(self.workers[0].process_id), environ=environ)
        except BaseException:
            self.close()
            raise

    def run(self, deadlines: Deadlines, tell: Tell, *, peer_grace_s: float = PEER_GRACE_S) -> tuple[RankSeen, ...]:
        """Lets them go once all are ready, and waits until every one has ended or a deadline has passed."""
        try:
            self._watch(deadlines, tell, peer_grace_s)
            for worker in self.workers:
                worker.wait(EXIT_S)
        finally:
            self.close()
        return tuple(worker.seen() for worker in self.workers)

    def close(self) -> None:
        """Kills what is left, strays that left their group too; once begun, no signal keeps it from ending them."""
        with undisturbed():
            for worker in self.workers:
                worker.kill("the run was given up")
            for worker in self.workers:
                worker.close()
            end_all(self._mark, None, grace_s=0.0)
            if self._leash is not None:
                self._leash.release()

    def _watch(self, deadlines: Deadlines, tell: Tell, peer_grace_s: float) -> None:
        now = time.monotonic()
        wait, gone, lost_since = Wait(began=now, moved=now, progress=-1), False, 0.0
        with selectors.DefaultSelector() as selector:
            for worker in self.workers:
                selector.register(worker.handle, selectors.EVENT_READ, worker)
            while selector.get_map():
                selector.select(LOOK_EVERY_S)
                for key in list(selector.get_map().values()):
                    # A process that a worker has forked may hold its line open; the worker's own end counts.
                    ended = not key.data.alive
                    if not key.data.hear() or ended:
                        selector.unregister(key.fd)
                if not gone and all(worker.ready or not worker.alive for worker in self.workers):
                    gone = True
                    for worker in self.workers:
                        worker.go()
                tell(self.workers)
                looked = next_wait(wait, sum(worker.heard for worker in self.workers), time.monotonic(), deadlines)
                if isinstance(looked, Late):
                    self._give_up(f"HUNG: {_late(looked, deadlines)}")
                    return
                wait = looked
                if loud := [worker.rank for worker in self.workers if worker.log_bytes > LOG_BYTES]:
                    names = ", ".join(map(str, loud))
                    self._give_up(f"ended because rank {names} printed more than {LOG_BYTES / 1024**2:.0f} MB")
                    return
                lost_since = self._mind_the_lost(lost_since, peer_grace_s)

    def _mind_the_lost(self, since: float, grace_s: float) -> float:
        """Since when a rank is missing, 0 while none is; its peers are ended after a while."""
        lost = [worker for worker in self.workers if not worker.alive and not worker.answer()]
        if not lost:
            return 0.0
        if since and time.monotonic() - since > grace_s:
            names = ", ".join(f"rank {worker.rank} (last step: {worker.step})" for worker in lost)
            self._give_up(f"ended because {names} was gone")
        return since or time.monotonic()

    def _give_up(self, why: str) -> None:
        for worker in self.workers:
            worker.kill(why)


def _late(late: Late, deadlines: Deadlines) -> str:
    if late.why.startswith("no rank"):
        return f"no rank made progress for {deadlines.no_progress_s:.0f} s"
    return f"the run took more than {deadlines.total_s:.0f} s in all"
