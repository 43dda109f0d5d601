"""What ranks agree on, and when a wait is over."""

from __future__ import annotations

import pytest

from tooling.capabilities.gating import Strategy
from tooling.warmup.agreement import Claim, agree, check_writers
from tooling.warmup.cache_text import CacheKind, CacheState, set_digest
from tooling.warmup.deadlines import Late, Wait, next_wait
from tooling.warmup.errors import DisagreementError, StuckError
from tooling.warmup.settings import Deadlines

ABSENT = CacheState(kind=CacheKind.ABSENT)
LEADER, TOGETHER = Strategy.LEADER_BROADCAST, Strategy.SYNCHRONIZED


def valid(digest: str) -> CacheState:
    return CacheState(kind=CacheKind.VALID, digest=digest, entries=1)


def bad(kind: CacheKind, reason: str) -> CacheState:
    return CacheState(kind=kind, reason=reason)


def claims(strategy: Strategy, *states: CacheState, mark: str = "", skip: tuple[str, ...] = ()) -> list[Claim]:
    return [
        Claim(
            rank=rank,
            strategy=strategy,
            release="0.6.16",
            cache=state,
            mark=mark,
            skip_ops=frozenset(skip[rank : rank + 1]),
        )
        for rank, state in enumerate(states)
    ]


WHOLE = set_digest(["a", "b"])


@pytest.mark.parametrize(
    ("found", "warm", "why"),
    [
        (claims(LEADER, valid("a"), valid("a")), True, ""),
        (claims(LEADER, valid("a"), valid("b")), False, "ASYMMETRIC_CACHE"),
        (claims(LEADER, valid("a"), ABSENT), False, "ASYMMETRIC_CACHE"),
        (claims(LEADER, ABSENT, ABSENT), False, "NO_CACHE"),
        (claims(LEADER, bad(CacheKind.MISS, "EMPTY"), bad(CacheKind.MISS, "EMPTY")), False, "EMPTY"),
        (claims(LEADER, bad(CacheKind.FOREIGN, "FOREIGN"), valid("a")), False, "FOREIGN"),
        (claims(TOGETHER, valid("a"), valid("b"), mark=WHOLE), True, ""),
        (claims(TOGETHER, valid("a"), valid("a"), mark=WHOLE), False, "NOT_ONE_SET"),
        (claims(TOGETHER, valid("a"), valid("b")), False, "NOT_ONE_SET"),
        (claims(TOGETHER, valid("a"), ABSENT, mark=WHOLE), False, "ASYMMETRIC_CACHE"),
    ],
    ids=[
        "same",
        "other bytes",
        "one lacks it",
        "none",
        "all broken",
        "foreign",
        "one set",
        "changed",
        "unmarked",
        "lost",
    ],
)
def test_files_are_used_by_all_or_by_none(found: list[Claim], warm: bool, why: str) -> None:
    agreement = agree(found)
    assert (agreement.warm, agreement.why_cold) == (warm, why)


def test_skip_sets_are_united() -> None:
    assert agree(claims(LEADER, ABSENT, ABSENT, ABSENT, skip=("a", "b", "a"))).skip_ops == {"a", "b"}


def test_ranks_that_would_tune_otherwise_are_named() -> None:
    mixed = [*claims(LEADER, ABSENT), *claims(TOGETHER, ABSENT, ABSENT)[1:]]
    with pytest.raises(DisagreementError, match="strategy: 'leader_broadcast' on rank 0; 'synchronized' on rank 1"):
        agree(mixed)


def test_two_writers_of_one_file_are_refused() -> None:
    same = [Claim(rank=rank, strategy=TOGETHER, release="x", cache=ABSENT, file="/c/rank0.json") for rank in range(4)]
    with pytest.raises(DisagreementError, match="on rank 0, 1, 2, 3"):
        check_writers(same)
    check_writers(
        [
            Claim(rank=rank, strategy=LEADER, release="x", cache=ABSENT, file="/c" if rank == 0 else "")
            for rank in (0, 1)
        ]
    )


DEADLINES = Deadlines(no_progress_s=300, total_s=1200)
WAIT = Wait(began=0, moved=100, progress=7)


@pytest.mark.parametrize(
    ("progress", "now", "expected"),
    [
        (7, 399, WAIT),
        (8, 500, Wait(began=0, moved=500, progress=8)),
        (7, 401, "no rank made progress for 300 s"),
        (8, 1201, "more than 1200 s in all"),
    ],
    ids=["still patient", "something moved", "nothing moves", "moves for too long"],
)
def test_a_wait_ends_without_progress_or_after_the_total(progress: int, now: float, expected: Wait | str) -> None:
    after = next_wait(WAIT, progress, now, DEADLINES)
    if isinstance(expected, str):
        assert isinstance(after, Late)
        assert expected in after.why
    else:
        assert after == expected


def test_a_stuck_rank_is_named_with_its_last_step() -> None:
    error = StuckError("barrier", {1: "tune: fp4_gemm", 3: "start"}, "no rank made progress for 300 s")
    assert "rank 1 (last step: tune: fp4_gemm), rank 3 (last step: start)" in error.message
