"""What the gating rule and the installed release's row let one expect of a scenario."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from tooling.capabilities.gating import Gating, Strategy, World, gate
from tooling.capabilities.table import Row
from tooling.smoke.scenarios import ORDINARY_BACKEND, SKIPPED, Scenario

AUTOMATIC = frozenset({"fp4_gemm"})
"""What the warm-up skips of itself where the model carries a CuTe-DSL NVFP4 kernel."""

EQUAL_TACTICS = frozenset({Strategy.LEADER_BROADCAST, Strategy.SYNCHRONIZED})
"""Strategies under which all ranks end with the same tactics."""

Fate = Literal["unchanged", "replaced", "its-own"]
"""What must become of a file that lay there beforehand: its bytes stay; ours takes its place; FlashInfer's own store
decides, and no start may fail over it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a scenario must come to on one release.

    `forced`: the strategy that the diagnosis puts in the rule's place, else None. `skip_ops`: the operations that are
    left out; `passed`: what FlashInfer's `autotune(skip_ops=…)` must get, None where the release lacks the argument.
    `kept`: files must lie below the cache root after the cold run. `warm_hits`: the warm run must take what the cold
    run left; else it must tune anew, also where a foreign file lies in our file's place (FlashInfer's own store puts
    its entries beside one). `laid_out`: None where nothing lies there beforehand.
    """

    scenario: Scenario
    gating: Gating
    strategy: Strategy
    persistent: bool
    forced: Strategy | None
    skip_ops: frozenset[str]
    passed: tuple[str, ...] | None
    kept: bool
    warm_hits: bool
    laid_out: Fate | None

    @property
    def diagnosis(self) -> bool:
        """The cache is forced on where the rule says off: losing entries is what it must show."""
        return self.forced is not None

    @property
    def equal_tactics(self) -> bool:
        return self.strategy in EQUAL_TACTICS

    def as_json(self) -> dict[str, object]:
        return {
            "strategy": str(self.strategy),
            "persistent": self.persistent,
            "rule": self.gating.rule,
            "why": self.gating.why,
            "forced": self.diagnosis,
            "skip_ops": sorted(self.skip_ops),
            "passed": None if self.passed is None else list(self.passed),
            "kept": self.kept,
            "warm_hits": self.warm_hits,
            "laid_out": self.laid_out,
        }


def expect(scenario: Scenario, row: Row | None) -> Expected:
    """What the scenario must come to on the release of that row; None: a release that the table does not list.

    Raises:
        UnknownBackendError: the scenario's backend looks like one of DeepEP's and is not in the table.
    """
    gating = gate(
        row.facts if row else None,
        World(ranks=scenario.ranks, backend=scenario.backend, cache_off=scenario.cache_off),
        deepep_synchronized=bool(row and row.deepep_synchronized),
    )
    forced = _forced(scenario, gating)
    strategy = forced or gating.strategy
    persistent = gating.persistent or forced is not None
    skip_ops = _skip_ops(scenario)
    shut_out = scenario.layout == "foreign" and strategy is not Strategy.MANAGED
    ours = persistent and not shut_out
    return Expected(
        scenario=scenario,
        gating=gating,
        strategy=strategy,
        persistent=persistent,
        forced=forced,
        skip_ops=skip_ops,
        passed=tuple(sorted(skip_ops)) if strategy is not Strategy.NONE and takes_skip_ops(row) else None,
        kept=ours,
        warm_hits=ours,
        laid_out=_fate(scenario, strategy, persistent=persistent),
    )


def fit_scenario(scenario: Scenario, row: Row | None, *, ranks: int = 0) -> Scenario:
    """The scenario in the world that it needs on that release: a file of ours is laid out where a strategy keeps one.

    Beside FlashInfer's own store that is two ranks. A world of several ranks may have more of them (`ranks`) than were
    asked for.
    """
    alone = gate(row.facts if row else None, World()).strategy
    if scenario.layout != "none" and alone is Strategy.MANAGED and scenario.ranks == 1:
        scenario = replace(scenario, ranks=2, backend=ORDINARY_BACKEND)
    return replace(scenario, ranks=max(scenario.ranks, ranks)) if scenario.ranks > 1 else scenario


def takes_skip_ops(row: Row | None) -> bool:
    """Whether the release's `autotune` has the argument; "could not tell" is no."""
    fact = row.facts.get("autotune_parameters") if row else None
    return fact is not None and isinstance(fact.value, tuple) and "skip_ops" in fact.value


def _forced(scenario: Scenario, gating: Gating) -> Strategy | None:
    """Where the rule keeps a cache anyway, or nothing can be tuned, there is nothing to force."""
    if not scenario.forced or gating.persistent or gating.strategy is Strategy.NONE:
        return None
    return Strategy.LEADER_BROADCAST


def _skip_ops(scenario: Scenario) -> frozenset[str]:
    match scenario.skip:
        case "given":
            return frozenset({SKIPPED})
        case "automatic":
            return AUTOMATIC
        case "unset" | "empty":
            return frozenset()


def _fate(scenario: Scenario, strategy: Strategy, *, persistent: bool) -> Fate | None:
    """A strategy without a cache never touches one; a foreign file is left alone; a broken one is tuned over."""
    if scenario.layout == "none":
        return None
    if scenario.layout == "foreign" or not persistent:
        return "unchanged"
    return "its-own" if strategy is Strategy.MANAGED else "replaced"
