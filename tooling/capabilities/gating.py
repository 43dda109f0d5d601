"""The gating rule: which warm-up strategy fits a release in a world, and whether its cache may persist. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from tooling.capabilities.facts import Fact
from tooling.errors import InputError

DEEPEP_BACKENDS = frozenset({"deepep_high_throughput", "deepep_low_latency", "deepep_v2"})
"""All-to-all backends whose ranks wait for each other in dispatch and combine until DeepEP times out."""


class Strategy(StrEnum):
    """How the ranks of an engine tune."""

    NONE = "none"
    ALL_RANKS = "all_ranks"
    SYNCHRONIZED = "synchronized"
    MANAGED = "managed"
    LEADER_BROADCAST = "leader_broadcast"


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Where a warm-up runs. `backend` is the engine's all2all backend; `cache_off`: the operator wants no cache."""

    ranks: int = 1
    backend: str | None = None
    gpu: bool = True
    installed: bool = True
    cache_off: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Gating:
    """What the rule says: the first row of the table that applies (`rule`, from 1), and in words why.

    `persistent` null is never used: a cache that may not be trusted does not persist. `warning` is for the log of an
    engine that starts although the world is not known.
    """

    strategy: Strategy
    persistent: bool
    rule: int
    why: str
    warning: str = ""

    def as_json(self) -> dict[str, object]:
        return {"strategy": str(self.strategy), "persistent": self.persistent, "rule": self.rule, "why": self.why}


class UnknownBackendError(InputError):
    """A DeepEP backend that is not in the table: never guessed to be harmless."""

    reason = "UNKNOWN_BACKEND"

    def __init__(self, backend: str) -> None:
        super().__init__(
            f"all2all backend {backend!r} looks like one of DeepEP's and is not among "
            f"{', '.join(sorted(DEEPEP_BACKENDS))}",
            hint="add it to DEEPEP_BACKENDS once it is known how its ranks wait for each other",
        )
        self.backend = backend


def gate(
    facts: Mapping[str, Fact] | None, world: World, *, deepep_synchronized: bool = False, strict: bool = True
) -> Gating:
    """The strategy for a release with these facts in that world. None: the table has no row for the release.

    `deepep_synchronized` is the row's word, with evidence from real DeepEP, that timings synchronise there.

    Raises:
        UnknownBackendError: `strict`, and the backend starts with `deepep` but is not known.
    """
    stranger = _is_stranger(world.backend)
    if stranger and strict:
        raise UnknownBackendError(world.backend or "")
    if nothing := _nothing_to_tune(facts, world):
        return _no_tuning(nothing)
    if facts is None:
        return _all_ranks(3, "the table has no row for this release", warning="no row in the capabilities table")
    return _gate_tuning(facts, world, stranger=stranger, deepep_synchronized=deepep_synchronized)


def gate_worlds(facts: Mapping[str, Fact] | None, *, deepep_synchronized: bool = False) -> dict[str, Gating]:
    """The rule in the three worlds that reports name: `single`, `multi`, `deepep`."""
    worlds = {"single": World(), "multi": World(ranks=2), "deepep": World(ranks=2, backend="deepep_low_latency")}
    return {name: gate(facts, world, deepep_synchronized=deepep_synchronized) for name, world in worlds.items()}


def _nothing_to_tune(facts: Mapping[str, Fact] | None, world: World) -> str:
    if not world.installed:
        return "no FlashInfer is installed"
    if not world.gpu:
        return "there is no GPU"
    return "the release has no autotuner" if facts is not None and _value(facts, "autotuner") == "none" else ""


def _gate_tuning(facts: Mapping[str, Fact], world: World, *, stranger: bool, deepep_synchronized: bool) -> Gating:
    """Rules 2 to 7."""
    if world.cache_off:
        return _all_ranks(2, "the operator turned the cache off")
    if not (_is_true(facts, "disk_key_has_runner_extras") and _is_true(facts, "extras_have_sf_layout")):
        return _all_ranks(3, "the key on disk does not carry the runner's parameters and the scale-factor layout")
    if world.ranks > 1 and (stranger or (_plain(world.backend) in DEEPEP_BACKENDS and not deepep_synchronized)):
        warning = f"{world.backend} is not known; treated as DeepEP" if stranger else ""
        return _all_ranks(4, "DeepEP's ranks wait for each other", warning=warning)
    if world.ranks > 1 and _is_true(facts, "process_group_timing"):
        return _persistent(Strategy.SYNCHRONIZED, 5, "timings are averaged over the process group")
    if world.ranks == 1 and _is_true(facts, "managed_store"):
        return _persistent(Strategy.MANAGED, 6, "FlashInfer keeps its own store")
    return _persistent(Strategy.LEADER_BROADCAST, 7, "the leader tunes and every rank loads its file")


def _is_stranger(backend: str | None) -> bool:
    return _plain(backend).startswith("deepep") and _plain(backend) not in DEEPEP_BACKENDS


def _plain(backend: str | None) -> str:
    """The backend as names are compared: blind to case."""
    return (backend or "").strip().lower()


def _value(facts: Mapping[str, Fact], name: str) -> object:
    return facts[name].value if name in facts else None


def _is_true(facts: Mapping[str, Fact], name: str) -> bool:
    """True only where the fact was read; "could not tell" is never a pass."""
    return _value(facts, name) is True


def _no_tuning(why: str) -> Gating:
    return Gating(strategy=Strategy.NONE, persistent=False, rule=1, why=why)


def _all_ranks(rule: int, why: str, *, warning: str = "") -> Gating:
    return Gating(strategy=Strategy.ALL_RANKS, persistent=False, rule=rule, why=why, warning=warning)


def _persistent(strategy: Strategy, rule: int, why: str) -> Gating:
    return Gating(strategy=strategy, persistent=True, rule=rule, why=why)
