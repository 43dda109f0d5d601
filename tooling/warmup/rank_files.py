"""The files of a synchronized strategy, one for each rank, put on disk as one set.

Replicas of a model (data parallel engines, or simply two engines of one configuration) come to the same paths, and know
nothing of each other. A set is written under locks that last until its last file is there, and a set that another
replica has put there meanwhile is left as it is: two sets never mix, and each path has one writer at a time.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from tooling.capabilities.gating import Strategy
from tooling.warmup.agreement import Claim, verdict
from tooling.warmup.cache_file import Written, read_cache
from tooling.warmup.cache_text import SET_FIELD, CacheFile
from tooling.warmup.locks import Lock, locked, token_beside
from tooling.warmup.work import Work

LOCK_NAME = "ranks"
"""The lock of a set lies beside its files as `.ranks.lock`."""
KEPT = Written(done=False, reason="KEPT", detail="another replica wrote a whole set meanwhile; it was left as it is")
BUSY = Written(done=False, reason="BUSY", detail="another replica was writing for too long; nothing was written")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What one rank sees under the lock: its file now, and whether another set is there than at the start.

    `busy`: another replica did not let go of the lock.
    """

    claim: Claim
    changed: bool
    busy: bool


def write_set(work: Work, content: CacheFile, owners: tuple[int, ...]) -> Written:
    """Puts this rank's file there with those of all ranks, or none of them. Meetings of all ranks.

    `owners` are the first ranks of each host.
    """
    with _locked_set(work, owners) as lock:
        refused = _refusal(work.ranks.meet("set locked", _look(work, lock)))
        written = refused or work.write(content, merged=False)
        work.ranks.meet("set written", None)
    if lock.trouble and not refused:
        work.warnings.append(f"rank {work.ranks.rank}: {lock.trouble}; the files of all ranks are written without it")
    if refused is BUSY:
        work.warnings.append(f"rank {work.ranks.rank}: the cache was not written (BUSY): {BUSY.detail}")
    return written


@contextlib.contextmanager
def _locked_set(work: Work, owners: tuple[int, ...]) -> Iterator[Lock]:
    """The leader holds the lock; so does the first rank of every host that does not see the leader's."""
    assert work.file is not None
    path = work.file.with_name(LOCK_NAME)
    leads = work.ranks.rank == 0
    with contextlib.ExitStack() as held:
        token = uuid.uuid4().hex
        lock = held.enter_context(locked(path, token=token)) if leads else Lock()
        leaders = work.ranks.share("set lock", token)
        if not leads and work.ranks.rank in owners and token_beside(path) != leaders:
            lock = held.enter_context(locked(path))
        yield lock


def _look(work: Work, lock: Lock) -> Seen:
    assert work.file is not None
    state, content, _ = read_cache(work.file, work.metadata)
    mark, before = (str(one.metadata.get(SET_FIELD, "")) if one else "" for one in (content, work.content))
    claim = Claim(rank=work.ranks.rank, strategy=Strategy.SYNCHRONIZED, release="", cache=state, mark=mark)
    return Seen(claim=claim, changed=mark != before, busy=lock.busy)


def _refusal(seen: list[Seen]) -> Written | None:
    """Why nobody writes: another replica is at it, or has put a whole set there since this one looked."""
    if any(one.busy for one in seen):
        return BUSY
    whole, _ = verdict([one.claim for one in seen])
    return KEPT if whole and any(one.changed for one in seen) else None
