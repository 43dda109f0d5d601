"""The strategies, each as the steps of one rank. The gating rule chooses; every rank runs every pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tooling.capabilities.gating import Strategy
from tooling.warmup.agreement import Agreement
from tooling.warmup.cache_file import Written, probe_writable, read_cache, read_notes, write_notes
from tooling.warmup.cache_text import (
    ABSENT_STATE,
    ENTRIES_FIELD,
    MISSES_FIELD,
    SET_FIELD,
    CacheFile,
    CacheKind,
    CacheState,
    judge,
    merge,
    noted_misses,
    render,
    set_digest,
    with_notes,
)
from tooling.warmup.rank_files import write_set
from tooling.warmup.round_trip import RoundTrip
from tooling.warmup.store import blocked_by, managed_entries
from tooling.warmup.work import Work, tuned_in

FOREIGN_LEFT = Written(
    done=False, reason="FOREIGN", detail="a file of another environment lies there; it was left as it is"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a strategy on one rank. `tactics` by key on disk; `why_cold` if a cache was given up on the way."""

    warm: bool = False
    why_cold: str = ""
    tactics: Mapping[str, list[object]] = field(default_factory=dict)
    round_trip: RoundTrip = field(default_factory=RoundTrip)
    written: Written | None = None
    state: CacheState | None = None


def run_strategy(strategy: Strategy, work: Work, agreement: Agreement, owners: tuple[int, ...]) -> Outcome:
    """Runs it on this rank; `owners` are the ranks that write a shared file, the first of each host."""
    match strategy:
        case Strategy.NONE:
            return Outcome()
        case Strategy.ALL_RANKS:
            return _all_ranks(work)
        case Strategy.LEADER_BROADCAST:
            return _leader_broadcast(work, agreement, owners)
        case Strategy.SYNCHRONIZED:
            return _synchronized(work, agreement, owners)
        case Strategy.MANAGED:
            return _managed(work)


def _all_ranks(work: Work) -> Outcome:
    """Every rank tunes for itself, in memory."""
    work.run_pass("tune", work.tuning())
    return Outcome(tactics=_tactics(work))


def _leader_broadcast(work: Work, agreement: Agreement, owners: tuple[int, ...]) -> Outcome:
    """The leader tunes or reads, every rank loads the leader's bytes, and what still misses is tuned by all."""
    leads = work.ranks.rank == 0
    if agreement.warm:
        data = work.ranks.share("load", work.data)
    else:
        work.run_pass("tune", work.tuning() if leads else None)
        data = work.ranks.share("broadcast", work.save()[0] if leads else None)
    taken = work.load(data)
    if leads and not agreement.warm:
        work.loaded = 0  # its own entries, which it holds already
    content = judge(data, work.metadata)[1] if data else None
    expected = noted_misses(content.metadata) if agreement.warm and content else {}
    misses, tuned = _cover(work, expected)
    counted = work.ranks.meet("count", (tuned, taken))
    refused = agreement.warm and not all(taken for _, taken in counted)
    if refused or any(tuned for tuned, _ in counted):
        content = _union(work)
    if refused:
        work.loaded = 0
    why_cold = "NOT_LOADED" if refused else ""
    if content is None:
        return Outcome(why_cold=why_cold)
    trip = work.round_trip(content.entries, work.tuner.loaded_keys() if data else None)
    written = None
    if refused or not agreement.warm or content.digest != work.state.digest:
        written = _write_shared(work, with_notes(content, misses), agreement, owners, merged=not refused)
    return Outcome(
        warm=agreement.warm and not refused,
        why_cold=why_cold,
        tactics=content.entries,
        round_trip=trip,
        written=written,
    )


def _cover(work: Work, expected: Mapping[str, int] | None) -> tuple[dict[str, int], int]:
    """Counts what misses; where a rank misses more than expected, all tune once more. The last misses, buckets tuned.

    The count is outside of tuning mode: inside, releases from 0.7 refuse loaded entries whose way of timing they do not
    know, and tune them anew. `expected` None: nobody noted what the file covers, and all tune.
    """
    missed = work.misses(work.run_pass("verify"))
    if not any(work.ranks.meet("covered", not _as_expected(missed, expected))):
        return _most(work, missed), 0
    tuned = tuned_in(work.run_pass("complete", work.tuning()))
    return _most(work, work.misses(work.run_pass("recheck"))), tuned


def _as_expected(missed: Mapping[str, int], expected: Mapping[str, int] | None) -> bool:
    return expected is not None and all(count <= expected.get(name, 0) for name, count in missed.items())


def _most(work: Work, missed: dict[str, int]) -> dict[str, int]:
    """The most that any rank misses, by operation."""
    gathered = work.ranks.meet("misses", missed)
    return {name: max(one.get(name, 0) for one in gathered) for one in gathered for name in one}


def _union(work: Work) -> CacheFile | None:
    """The entries of all ranks, the lowest rank's choice where two differ; every rank then holds exactly these."""
    own_data, own = work.save()
    gathered = work.ranks.meet("gather", own_data)
    files = [file for data in gathered if data and (file := judge(data, work.metadata)[1])]
    if not files:
        return None
    union = merge(files)
    overruled = own is not None and any(value[:2] != union.entries[key][:2] for key, value in own.entries.items())
    if overruled and work.round_trip(own.entries if own else {}).lossless:
        work.tuner.clear()
    work.load(render(union))
    return union


def _write_shared(
    work: Work, content: CacheFile, agreement: Agreement, owners: tuple[int, ...], *, merged: bool
) -> Written | None:
    """The leader writes; then the first rank of every host that does not see the leader's file."""
    if agreement.foreign:
        return FOREIGN_LEFT
    leads = work.ranks.rank == 0
    written = work.write(content, merged=merged) if leads else None
    work.ranks.meet("written", None)
    if not leads and work.ranks.rank in owners and not _is_there(work, content):
        return work.write(content, merged=merged)
    return written


def _is_there(work: Work, content: CacheFile) -> bool:
    assert work.file is not None
    _, there, _ = read_cache(work.file, work.metadata)
    return there is not None and set(content.entries) <= set(there.entries)


def _synchronized(work: Work, agreement: Agreement, owners: tuple[int, ...]) -> Outcome:
    """Each rank loads its own file if all have one of the same set; else all tune together, from empty caches."""
    why_cold = ""
    if agreement.warm and work.content is not None:
        taken = work.load(work.data)
        missed = work.misses(work.run_pass("verify"))
        covered = taken and _as_expected(missed, noted_misses(work.content.metadata))
        told = work.ranks.meet("covered", (covered, taken))
        if all(covered for covered, _ in told):
            return Outcome(warm=True, tactics=work.content.entries)
        why_cold = "INCOMPLETE" if all(taken for _, taken in told) else "NOT_LOADED"
    return replace(_tune_together(work, agreement, owners), why_cold=why_cold)


def _tune_together(work: Work, agreement: Agreement, owners: tuple[int, ...]) -> Outcome:
    """A rank that hits where others miss would leave them in a reduction for ever: nobody starts with entries."""
    work.tuner.clear()
    work.loaded = 0
    work.ranks.meet("emptied", None)
    work.run_pass("tune", work.tuner.synchronized(work.ranks.group, work.skip_ops))
    _, content = work.save()
    missed = work.misses(work.run_pass("verify"))
    digests = work.ranks.meet("digests", content.digest if content else "")
    if content is None or not all(digests):
        return Outcome(tactics=content.entries if content else {})
    marked = with_notes(content, missed, **{SET_FIELD: set_digest(digests)})
    written = FOREIGN_LEFT if agreement.foreign else write_set(work, marked, owners)
    return Outcome(tactics=content.entries, round_trip=work.round_trip(content.entries), written=written)


def _managed(work: Work) -> Outcome:
    """FlashInfer's own store, one process only: it is asked first, and tuned into if something misses."""
    assert work.file is not None
    if stopped := blocked_by(work.file):
        return _beside_the_store(work, stopped)
    trouble = probe_writable(work.file)
    before, notes = managed_entries(work.file), read_notes(work.file)
    work.loaded = len(before)
    warm = bool(before) and len(before) >= notes.get(ENTRIES_FIELD, 0) and _serves(work, work.file, notes)
    if not warm:
        trouble = _tune_into_store(work, work.file, trouble)
    after = managed_entries(work.file)
    if trouble:
        work.warnings.append(f"the managed store cannot be written (UNWRITABLE): {trouble}")
    return Outcome(
        warm=warm,
        why_cold="" if warm else "INCOMPLETE" if before else "NO_CACHE",
        tactics=after,
        round_trip=work.round_trip(after),
        written=Written(done=not trouble, reason="UNWRITABLE" if trouble else "", detail=trouble),
        state=_managed_state(before),
    )


def _serves(work: Work, store: Path, notes: Mapping[str, object]) -> bool:
    """Whether the store answers all look-ups that it answered when it was tuned into."""
    missed = work.misses(work.run_pass("verify", work.tuner.managed(store, work.skip_ops, mode="replay")))
    return _as_expected(missed, noted_misses(notes))


def _tune_into_store(work: Work, store: Path, trouble: str) -> str:
    """Tunes, and notes what then misses. Why not all of it is on disk, or "": FlashInfer's store never says."""
    work.run_pass("tune", work.tuner.managed(store, work.skip_ops, mode="tune"))
    missed = work.misses(work.run_pass("recheck"))
    trouble = trouble or write_notes(store, lambda: {ENTRIES_FIELD: len(managed_entries(store)), MISSES_FIELD: missed})
    trip = work.round_trip(managed_entries(store))
    return trouble or (f"{trip.lost} of {trip.memory} tuned entries are not in it" if trip.lost else "")


def _beside_the_store(work: Work, stopped: str) -> Outcome:
    """Tuned in memory: FlashInfer would wait at what lies in its store, and for ever."""
    work.warnings.append(f"the managed store is left alone (UNREADABLE): {stopped}")
    written = Written(done=False, reason="UNREADABLE", detail=stopped)
    return replace(_all_ranks(work), why_cold="UNREADABLE", written=written)


def _managed_state(before: Mapping[str, list[object]]) -> CacheState:
    if not before:
        return ABSENT_STATE
    return CacheState(kind=CacheKind.VALID, entries=len(before), digest=CacheFile(entries=before).digest)


def _tactics(work: Work) -> dict[str, list[object]]:
    """The tuned entries in memory by their likeliest key on disk."""
    return {entry.file_keys[0]: [entry.runner, entry.tactic] for entry in work.tuner.memory()}


def needed_api(strategy: Strategy) -> tuple[str, ...]:
    """What the installed tuner must offer for a strategy: names of its module, of AutoTuner or of the package."""
    files = ("AutoTuner.save_configs", "AutoTuner.load_configs", "_collect_metadata")
    needs: Mapping[Strategy, tuple[str, ...]] = {
        Strategy.NONE: (),
        Strategy.ALL_RANKS: ("autotune",),
        Strategy.LEADER_BROADCAST: ("autotune", *files),
        Strategy.SYNCHRONIZED: ("autotune", *files, "set_autotune_process_group", "AutoTuner.clear_cache"),
        Strategy.MANAGED: ("autotune", "_collect_metadata", "autotune_v2"),
    }
    return needs[strategy]
