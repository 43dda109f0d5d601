"""Facts about one release and the evidence behind each. How they are found is in the modules beside this one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

Value: TypeAlias = "bool | str | tuple[str, ...] | None"

TUNER_FACTS = (
    "autotuner",
    "autotune_parameters",
    "config_files",
    "disk_key_has_runner_extras",
    "extras_have_sf_layout",
    "metadata_fields",
    "foreign_save",
    "process_group_timing",
    "managed_store",
    "tuner_environment",
    "mismatch_policy",
    "packaging_layout",
    "requires",
)
"""Facts that metadata, the tuner and the GEMM modules tell."""
OPERATION_FACTS = ("extras_have_rank", "operations")
"""Facts that need every module of the package."""
CALENDAR_FACTS = ("cubin_on_index",)
"""Facts that change with the calendar; they stand apart in the table."""
FACTS = (*TUNER_FACTS, *OPERATION_FACTS, *CALENDAR_FACTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Where a fact was read: a member of the archive, a function or class in it (or ""), and what was seen there."""

    path: str
    where: str = ""
    seen: str

    def as_json(self) -> dict[str, object]:
        return {"path": self.path, "where": self.where, "seen": self.seen}

    def __str__(self) -> str:
        return f"{self.path}{':' if self.where else ''}{self.where}: {self.seen}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A value with its evidence. None is "could not tell", and `reason` says why; texts are sorted where order is none.

    A list that may lack something has a `reason`, too.
    """

    value: Value
    evidence: tuple[Evidence, ...] = ()
    reason: str = ""

    def as_json(self) -> dict[str, object]:
        value = list(self.value) if isinstance(self.value, tuple) else self.value
        rest = {"reason": self.reason} if self.reason else {}
        return {"value": value, "evidence": [item.as_json() for item in self.evidence], **rest}


Facts: TypeAlias = Mapping[str, Fact]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFault:
    """A fault of a release that the gating rule does not cover: which operations it hits, what it does, how to see it.

    `id` is `owner#number`, with a word behind a slash where one report covers several faults; `evidence` is what the
    release's source shows.
    """

    id: str
    operations: tuple[str, ...]
    effect: str
    how_to_see: str
    link: str
    evidence: tuple[Evidence, ...] = ()

    def as_json(self) -> dict[str, object]:
        return {
            "id": self.id,
            "operations": list(self.operations),
            "effect": self.effect,
            "how_to_see": self.how_to_see,
            "link": self.link,
            "evidence": [item.as_json() for item in self.evidence],
        }


def unknown(reason: str) -> Fact:
    """The fact that could not be told, and why."""
    return Fact(value=None, reason=reason)


def unread(facts: Facts, names: Iterable[str] = FACTS) -> dict[str, str]:
    """The reason of every named fact that could not be told."""
    return {
        name: facts[name].reason if name in facts else "not looked for"
        for name in names
        if name not in facts or facts[name].value is None
    }
