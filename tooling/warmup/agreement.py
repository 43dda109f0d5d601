"""What ranks tell each other before anyone tunes, and what follows from it. Meeting is `ranks`'."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tooling.capabilities.gating import Strategy
from tooling.warmup.cache_text import CacheKind, CacheState, set_digest
from tooling.warmup.errors import DisagreementError


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One rank's word: what it would do, with which release, whom it skips, and what it found on disk.

    `file` is the path that this rank would write, "" where it would not; `mark` is the set that its file belongs to;
    `doubt` is what this rank does not know of its world, and all take care of.
    """

    rank: int
    strategy: Strategy
    release: str
    skip_ops: frozenset[str] = frozenset()
    cache: CacheState
    file: str = ""
    mark: str = ""
    doubt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """What holds for all ranks. `warm`: the files may be used; if not, `why_cold` says why not (a reason word)."""

    skip_ops: frozenset[str] = frozenset()
    warm: bool = False
    why_cold: str = ""
    foreign: tuple[int, ...] = ()


def agree(claims: Sequence[Claim]) -> Agreement:
    """The union of the skip sets, and one verdict on the caches for all ranks.

    Raises:
        DisagreementError: strategy or release differ.
    """
    for name in ("strategy", "release"):
        values = {claim.rank: str(getattr(claim, name)) for claim in claims}
        if len(set(values.values())) > 1:
            raise DisagreementError(name, values)
    warm, why = verdict(claims)
    return Agreement(
        skip_ops=frozenset().union(*(claim.skip_ops for claim in claims)),
        warm=warm,
        why_cold=why,
        foreign=tuple(claim.rank for claim in claims if claim.cache.kind is CacheKind.FOREIGN),
    )


def check_writers(claims: Sequence[Claim]) -> None:
    """Nothing, if each rank that writes has a path of its own.

    Raises:
        DisagreementError: two ranks would write one file.
    """
    writers = [claim for claim in claims if claim.file]
    if len({claim.file for claim in writers}) < len(writers):
        raise DisagreementError("who writes which file", {claim.rank: claim.file for claim in writers})


def verdict(claims: Sequence[Claim]) -> tuple[bool, str]:
    """Whether all ranks' files may be used together, and why not."""
    states = [claim.cache for claim in claims]
    kinds = {state.kind for state in states}
    if kinds == {CacheKind.VALID}:
        return _fits_together(claims)
    if CacheKind.FOREIGN in kinds:
        return False, "FOREIGN"
    if len(kinds) > 1:
        return False, "ASYMMETRIC_CACHE"
    return False, "NO_CACHE" if kinds == {CacheKind.ABSENT} else next(state.reason for state in states)


def _fits_together(claims: Sequence[Claim]) -> tuple[bool, str]:
    """One file is the same on every rank; files of ranks were written together after one pass."""
    digests = [claim.cache.digest for claim in claims]
    if claims[0].strategy is Strategy.SYNCHRONIZED:
        together = {claim.mark for claim in claims} == {set_digest(digests)}
        return together, "" if together else "NOT_ONE_SET"
    same = len(set(digests)) == 1
    return same, "" if same else "ASYMMETRIC_CACHE"
