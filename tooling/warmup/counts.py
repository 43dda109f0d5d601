"""What look-ups of one pass came to, per operation. The observer fills them in; nothing here touches the tuner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """One operation in one pass: calls of the operation, look-ups and what they came to, buckets tuned.

    A call in tuning mode looks up once per bucket and once more for its own shape, so look-ups exceed calls there.
    `fell_back`: calls that ended with the fallback because nothing tuned was found. `skipped`: calls that skip_ops
    sent to the fallback without a look-up.
    """

    calls: int = 0
    hits: int = 0
    misses: int = 0
    fell_back: int = 0
    skipped: int = 0
    tuned: int = 0

    @property
    def lookups(self) -> int:
        return self.hits + self.misses

    def plus(self, other: Counts) -> Counts:
        return Counts(**{item.name: getattr(self, item.name) + getattr(other, item.name) for item in fields(Counts)})

    def as_json(self) -> dict[str, int]:
        return {"lookups": self.lookups, **{item.name: getattr(self, item.name) for item in fields(Counts)}}

    @staticmethod
    def from_json(body: Mapping[str, int]) -> Counts:
        return Counts(**{item.name: int(body[item.name]) for item in fields(Counts)})


def total(counts: Iterable[Counts]) -> Counts:
    result = Counts()
    for one in counts:
        result = result.plus(one)
    return result
