"""The cache as it was watched from outside: what was kept, what reached the disk, what the warm run made of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tooling.capabilities.gating import Strategy
from tooling.findings import Finding, Severity
from tooling.smoke.case import Case, text, tuned, was_warm
from tooling.smoke.checks_runs import nothing_to_tune
from tooling.smoke.files_seen import FilesSeen
from tooling.smoke.observations import RunSeen

KEYS_SHOWN = 3


def check_cache(case: Case) -> tuple[Finding, ...]:
    """Every finding on files, loss and the warm run; nothing of a run that did not end or had nothing to tune."""
    telling = {name: run for name, run in case.ended_runs if not nothing_to_tune(case, run)}
    cold, warm = telling.get("cold"), telling.get("warm")
    findings: list[Finding] = []
    if cold is not None:
        findings += [*_check_before(case, cold), *_check_kept(case, cold)]
    for name, run in telling.items():
        findings += [*_check_laid_out(case, name, run), *_check_left(case, name, run)]
        findings += [*_check_unread(case, name, run), *_check_round_trip(case, name, run)]
    if cold is not None and warm is not None:
        findings += _check_between(case, cold, warm)
        findings += _check_warm(case, cold, warm) if case.expected.warm_hits else _check_anew(case, cold, warm)
    return tuple(findings)


def ratio(case: Case) -> float | None:
    """How many times faster the warm run was than the cold one, compiling left out; None if that was not measured."""
    cold, warm = case.seen.cold, case.seen.warm
    if cold is None or warm is None or not (cold.ended and warm.ended):
        return None
    took, again = _without_compiling(cold), _without_compiling(warm)
    return took / again if took > 0 and again > 0 else None


def _without_compiling(run: RunSeen) -> float:
    """Seconds of the run less the most that a rank compiled: compiled kernels are shared, and no cache's merit."""
    return (run.seconds or 0.0) - max((rank.jit_s or 0.0 for rank in run.ranks), default=0.0)


def kept_files(files: FilesSeen) -> tuple[str, ...]:
    """Files that were created or changed, without locks, which hold nothing."""
    return tuple(path for path in (*files.created, *files.changed) if not path.endswith(".lock"))


def _check_before(case: Case, cold: RunSeen) -> Iterator[Finding]:
    """The cold run starts from nothing, or from what the scenario lays out, and uses no cache."""
    if was_warm(cold):
        yield case.finding("smoke-files", "NOT_FRESH", "it says that it used a cache", run="cold")
    elif case.expected.scenario.layout == "none" and (found := _found(case, cold)):
        detail = f"nothing lay there before, and it found a cache of another kind: {text(found)}"
        yield case.finding("smoke-files", "NOT_FRESH", detail, run="cold")
    there = [file.path for file in cold.files.before]
    if case.expected.scenario.layout == "none" and there:
        detail = f"the cache root was not fresh: {text(there)} lay there before"
        yield case.finding("smoke-files", "NOT_FRESH", detail, run="cold")
    elif case.expected.scenario.layout != "none" and not there:
        detail = f"no {case.expected.scenario.layout} file lay there before, so nothing was shown"
        yield case.finding("smoke-files", "NOT_LAID_OUT", detail, run="cold")


def _found(case: Case, run: RunSeen) -> set[str]:
    """What the ranks of a run that starts from nothing say of the cache, where that is not that there is none."""
    why = run.record["why_cold"]
    kinds = {rank.report["cache"]["kind"] for rank in run.ranks} - {"absent"}
    return kinds | ({why or "no reason"} - {"NO_CACHE"} if case.expected.persistent else set())


def _check_kept(case: Case, cold: RunSeen) -> Iterator[Finding]:
    """Where the cache persists, the strategy's own files are there afterwards."""
    if not case.expected.kept:
        return
    paths = [file.path for file in cold.files.after]
    if missing := _missing(case, kept_files(cold.files)):
        detail = f"the cache persists, and no {text(missing)} was written; there is {text(paths)}"
        yield case.finding("smoke-files", "NOT_KEPT", detail, run="cold")
    for rank in cold.ranks:
        written = rank.report["written"]
        if written is None and (rank.rank == 0 or case.expected.strategy is Strategy.SYNCHRONIZED):
            detail = "it does not say whether it wrote the cache"
            yield case.finding("smoke-files", "NOT_KEPT", detail, run="cold", rank=rank.rank)
        elif written is not None and not written["done"]:
            detail = f"it could not write the cache: {written.get('reason')}: {written.get('detail')}"
            yield case.finding("smoke-files", "NOT_KEPT", detail, run="cold", rank=rank.rank)
    file = str(cold.record.get("file") or "")
    if not any(file.endswith("/" + path) or f"/{path}".startswith(f"/{_tail(file, path)}/") for path in paths):
        detail = f"the warm-up's record names {file or 'no file'}, and below the cache root there is {text(paths)}"
        yield case.finding("smoke-files", "NOT_KEPT", detail, run="cold")


def _tail(file: str, path: str) -> str:
    """The end of a folder's absolute path that a file below the cache root begins with, "-" if none does."""
    parts = path.split("/")
    starts = ("/".join(parts[:count]) for count in range(len(parts) - 1, 0, -1))
    return next((start for start in starts if file.endswith("/" + start)), "-")


def _missing(case: Case, paths: Sequence[str]) -> list[str]:
    """The names that the strategy writes and that are not among those paths."""
    match case.expected.strategy:
        case Strategy.LEADER_BROADCAST:
            wanted = ["autotune_configs.json"]
        case Strategy.SYNCHRONIZED:
            ranks = case.expected.scenario.ranks
            wanted = [f"rank-{rank}-of-{ranks}.json" for rank in range(ranks)]
        case Strategy.MANAGED:
            return [] if any("/entries/" in path for path in paths) else ["entries of FlashInfer's own store"]
        case Strategy.NONE | Strategy.ALL_RANKS:
            return []
    return [name for name in wanted if not any(f"/{path}".endswith("/" + name) for path in paths)]


def _check_laid_out(case: Case, name: str, run: RunSeen) -> Iterator[Finding]:
    """What lay there was seen for what it is, and replaced where that is right. That it stays: `_check_left`."""
    fate, layout = case.expected.laid_out, case.expected.scenario.layout
    if name == "cold" and fate == "replaced" and not set(run.files.changed) & {file.path for file in run.files.before}:
        yield case.finding("smoke-files", "NOT_REPLACED", "the broken file still lies there as it was", run=name)
    if not case.expected.persistent or fate is None or case.expected.strategy is Strategy.MANAGED:
        return
    if name == "warm" and fate == "replaced":
        return
    why = run.record["why_cold"]
    kinds = {rank.report["cache"]["kind"] for rank in run.ranks}
    wrong = why != "FOREIGN" if layout == "foreign" else why in {"", "NO_CACHE", "FOREIGN"}
    if wrong or kinds != {"foreign" if layout == "foreign" else "miss"}:
        detail = f"the {layout} file was taken for {why or 'a good one'} ({text(kinds)})"
        yield case.finding("smoke-files", "NOT_RECOGNISED", detail, run=name)


def _check_left(case: Case, name: str, run: RunSeen) -> Iterator[Finding]:
    """Where nothing persists no file comes, goes or changes; a warm run that hits has nothing to write either."""
    files, before = run.files, {file.path for file in run.files.before}
    gone = [path for path in files.removed if not path.endswith(".lock")]
    if case.expected.laid_out == "unchanged" and (touched := sorted({*files.changed, *gone} & before)):
        detail = f"{text(touched)} lay there and must keep its bytes; it was changed or removed"
        yield case.finding("smoke-files", "LAID_OUT_CHANGED", detail, run=name)
        return
    if case.expected.kept and name == "cold":
        if gone:
            yield case.finding("smoke-files", "LEFT_FILES", f"{text(gone)} was removed", run=name)
        return
    if not case.expected.persistent and run.record.get("file"):
        detail = f"the cache is off here, and the warm-up's record names {run.record['file']}"
        yield case.finding("smoke-files", "LEFT_FILES", detail, run=name)
    if touched := sorted({*kept_files(files), *gone}):
        kept = "a warm run has nothing to write" if case.expected.kept else "the cache is off here"
        yield case.finding("smoke-files", "LEFT_FILES", f"{kept}, and these changed: {text(touched)}", run=name)


def _check_unread(case: Case, name: str, run: RunSeen) -> Iterator[Finding]:
    """Where the cache is off, nobody reads what lies there."""
    if not case.expected.persistent and run.files.read:
        detail = f"the cache is off here, and it read {text(run.files.read)}"
        yield case.finding("smoke-files", "LAID_OUT_READ", detail, run=name)


def _check_round_trip(case: Case, name: str, run: RunSeen) -> Iterator[Finding]:
    """Entries in memory against entries on disk, on every rank that compared them."""
    if not case.expected.persistent:
        return
    wrote = [rank for rank in run.ranks if (rank.report.get("written") or {}).get("done")]
    for rank in run.ranks:
        trip = rank.report.get("round_trip", {})
        if trip.get("lost") or trip.get("other_tactic"):
            yield _loss(case, name, rank.rank, trip)
        elif name == "cold" and rank in wrote and not was_warm(run) and not trip["memory"]:
            detail = "entries in memory were not compared with those on disk"
            yield case.finding("smoke-loss", "ROUND_TRIP_LOSS", detail, run=name, rank=rank.rank)
        elif name == "cold" and rank in wrote and case.expected.diagnosis:
            detail = f"nothing was lost: {trip['memory']} entries in memory, {trip['disk']} on disk"
            hint = "the row says that keys on disk are not told apart: derive it anew with nox -s probe"
            yield case.finding(
                "smoke-loss", "TABLE_OUT_OF_DATE", detail, run=name, severity=Severity.WARNING, hint=hint
            )


def _loss(case: Case, name: str, rank: int, trip: dict[str, Any]) -> Finding:
    lost, other = trip.get("lost", 0), trip.get("other_tactic", ())
    keys = [*trip.get("lost_keys", ()), *other][:KEYS_SHOWN]
    detail = (
        f"{trip.get('memory')} entries in memory, {trip.get('disk')} on disk: {lost} lost to equal keys, "
        f"{len(other)} come back with another tactic, such as {'; '.join(keys)}"
    )
    if case.expected.diagnosis:
        detail += "; this is why the rule keeps no cache here"
        return case.finding("smoke-loss", "EXPECTED_LOSS", detail, run=name, rank=rank, severity=Severity.NOTE)
    return case.finding("smoke-loss", "ROUND_TRIP_LOSS", detail, run=name, rank=rank)


def _check_between(case: Case, cold: RunSeen, warm: RunSeen) -> Iterator[Finding]:
    """The warm run starts from exactly what the cold one left."""
    if set(cold.files.after) != set(warm.files.before):
        detail = "the cache root is not as the cold run left it"
        yield case.finding("smoke-files", "NOT_FRESH", detail, run="warm")
    if cold.record["file"] != warm.record["file"]:
        detail = f"it looked at {text(warm.record['file'])}, the cold run at {text(cold.record['file'])}"
        yield case.finding("smoke-files", "NOT_FRESH", detail, run="warm")


def _check_warm(case: Case, cold: RunSeen, warm: RunSeen) -> Iterator[Finding]:
    """The warm run took all that was written, tuned nothing, read the file, and was faster."""
    if not was_warm(warm):
        why = warm.record.get("why_cold") or "no reason given"
        yield case.finding("smoke-warm", "WARM_MISSED", f"it did not use what the cold run left ({why})", run="warm")
    disk = max((rank.report.get("round_trip", {}).get("disk", 0) for rank in cold.ranks), default=0)
    for rank in warm.ranks:
        loaded, anew = rank.report.get("loaded", 0), {name: count for name, count in tuned(rank).items() if count}
        if anew:
            detail = f"it tuned anew: {', '.join(f'{count} buckets of {name}' for name, count in sorted(anew.items()))}"
            yield case.finding("smoke-warm", "WARM_MISSED", detail, run="warm", rank=rank.rank)
        if (kind := rank.report["cache"]["kind"]) != "valid":
            detail = f"it found the cache {kind or 'of an unknown kind'}, not valid"
            yield case.finding("smoke-warm", "WARM_MISSED", detail, run="warm", rank=rank.rank)
        if not loaded or loaded < disk:
            detail = f"it loaded {loaded} entries of {disk} on disk"
            yield case.finding("smoke-warm", "WARM_MISSED", detail, run="warm", rank=rank.rank)
    if warm.files.read is not None and not set(warm.files.read) & {file.path for file in warm.files.before}:
        detail = "no file below the cache root was read"
        yield case.finding("smoke-warm", "WARM_MISSED", detail, run="warm")
    yield from _check_faster(case, cold, warm)


def _check_faster(case: Case, cold: RunSeen, warm: RunSeen) -> Iterator[Finding]:
    took, again = _without_compiling(cold), _without_compiling(warm)
    if took <= 0 or again <= 0:
        detail = f"cold {text(cold.seconds)} s, warm {text(warm.seconds)} s, and no more than compiling: not measured"
        yield case.finding("smoke-warm", "NOT_FASTER", detail)
    elif not case.expected.diagnosis and again >= took:
        detail = f"the warm run took {again:.2f} s, the cold one {took:.2f} s, compiling left out"
        yield case.finding("smoke-warm", "NOT_FASTER", detail, hint="look at what the warm run tuned or compiled")


def _check_anew(case: Case, cold: RunSeen, warm: RunSeen) -> Iterator[Finding]:
    """The warm run took nothing, and tuned on every rank what the cold one had tuned there."""
    why = "the cache is off here" if not case.expected.persistent else "the file is of another environment"
    if was_warm(warm):
        yield case.finding("smoke-warm", "NOT_ANEW", f"it used a cache, and {why}", run="warm")
    for before, after in zip(cold.ranks, warm.ranks, strict=False):
        same = sorted(name for name, count in tuned(before).items() if count and not tuned(after).get(name))
        if same:
            detail = f"it did not tune {text(same)} anew, and {why}"
            yield case.finding("smoke-warm", "NOT_ANEW", detail, run="warm", rank=after.rank)
        if case.expected.strategy is Strategy.ALL_RANKS and (loaded := after.report.get("loaded", 0)):
            detail = f"it loaded {loaded} entries, and {why}"
            yield case.finding("smoke-warm", "NOT_ANEW", detail, run="warm", rank=after.rank)
