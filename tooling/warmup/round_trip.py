"""What is lost between memory and disk: entries that are not there, or come back with another tactic. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tooling.warmup.tuner import MemoryEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundTrip:
    """Entries in memory and on disk, and the keys of those that do not come back as they were.

    `lost` counts entries in memory that have no entry of their own on disk: two that share a key leave one.
    `other_tactic` are keys whose entry on disk has another tactic than an entry in memory.
    """

    memory: int = 0
    disk: int = 0
    lost: int = 0
    lost_keys: tuple[str, ...] = ()
    other_tactic: tuple[str, ...] = ()

    @property
    def lossless(self) -> bool:
        return self.lost == 0 and not self.other_tactic

    def as_json(self) -> dict[str, object]:
        return {
            "memory": self.memory,
            "disk": self.disk,
            "lost": self.lost,
            "lost_keys": list(self.lost_keys),
            "other_tactic": list(self.other_tactic),
        }


def compare_round_trip(
    memory: Sequence[MemoryEntry], disk: Mapping[str, list[object]], loaded: Collection[str] | None = None
) -> RoundTrip:
    """The loss from memory to disk, and back: `loaded` are the keys that FlashInfer took when it read the file."""
    served: dict[str, int] = {}
    lost: list[str] = []
    other: set[str] = set()
    for entry in memory:
        key = next((key for key in entry.file_keys if key in disk), None)
        if key is None or (loaded is not None and key not in loaded):
            lost.append(key or entry.file_keys[0])
            continue
        served[key] = served.get(key, 0) + 1
        if served[key] > 1:
            lost.append(key)
        if disk[key][:2] != [entry.runner, entry.tactic]:
            other.add(key)
    return RoundTrip(
        memory=len(memory),
        disk=len(disk),
        lost=len(lost),
        lost_keys=tuple(sorted(set(lost))),
        other_tactic=tuple(sorted(other)),
    )
