"""What holds for all runs, and each run as a value: who works where, on which orders, in which environment."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from tooling.capabilities.table import Row
from tooling.edges.serving.ports import find_free_port
from tooling.edges.smoke.launcher import Launched
from tooling.edges.smoke.relay import WORLD
from tooling.edges.smoke.watching import PEER_GRACE_S
from tooling.smoke.expectations import expect
from tooling.smoke.orders import (
    MAX_TOKENS,
    Order,
    Rehearsal,
    choose_workload,
    count_sizes,
    scenario_environment,
)
from tooling.smoke.scenarios import Scenario
from tooling.warmup.settings import CACHE_DIR, TIMEOUT, Deadlines

DEADLINES = Deadlines(no_progress_s=300.0, total_s=900.0)
"""For both runs of a scenario; compiling one kernel says nothing for as long as it takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What holds for all runs: where they work, with which environment and devices, and for how long at most.

    Runs leave their files below `folder`; `jit` is where kernels are compiled to. `broken`: importing FlashInfer
    raises. `gpus`: device numbers, () without a GPU. `table`: a file with the row to use, "" for the shipped table.
    `ahead`: the next run's workers import while the present one works; where processors are few, that gains nothing.
    `rehearsal`: tests only.
    """

    folder: Path
    jit: Path
    environ: Mapping[str, str] = field(repr=False)
    gpus: tuple[int, ...] = ()
    row: Row | None = None
    broken: bool = False
    table: str = ""
    max_tokens: int = MAX_TOKENS
    deadlines: Deadlines = DEADLINES
    peer_grace_s: float = PEER_GRACE_S
    python: str = sys.executable
    ahead: bool = True
    launched: Launched | None = None
    rehearsal: Rehearsal | None = None


@dataclass(slots=True, kw_only=True)
class Run:
    """One run to come. `lay` puts files below the cache root before it; `shown` False for a preparation."""

    scenario: Scenario
    temperature: str
    cache: Path
    orders: tuple[Order, ...]
    folder: Path
    environ: Mapping[str, str] = field(repr=False)
    lay: Callable[[], None] | None = None
    shown: bool = True


def make_run(conditions: Conditions, scenario: Scenario, temperature: str, *, keep: bool = False) -> Run:
    """The run with an order for each rank; `keep`: rank 0 also leaves what FlashInfer would save."""
    home = conditions.folder / scenario.name
    folder, cache = home / temperature, home / "cache"
    gpus = conditions.gpus
    common = _common_order(conditions, scenario, temperature, folder=folder, cache=cache)
    orders = tuple(
        replace(
            common,
            rank=rank,
            answer=str(folder / f"answer-{rank}.json"),
            gpu=gpus[rank % len(gpus)] if gpus else None,
            keep=str(folder / "saved.json") if keep and rank == 0 else "",
        )
        for rank in range(scenario.ranks)
    )
    return Run(
        scenario=scenario,
        temperature=temperature,
        cache=cache,
        orders=orders,
        folder=folder,
        environ=_environment(conditions, scenario, cache),
    )


def _common_order(conditions: Conditions, scenario: Scenario, temperature: str, *, folder: Path, cache: Path) -> Order:
    """What all ranks of a run are told alike; each has its number, its answer and its GPU beside it."""
    workload = choose_workload(scenario, conditions.max_tokens)
    rehearsal, launched = conditions.rehearsal, conditions.launched
    several = scenario.ranks > 1 and len(conditions.gpus) >= (launched.local_ranks if launched else scenario.ranks)
    return Order(
        scenario=scenario.name,
        temperature=temperature,
        rank=0,
        ranks=scenario.ranks,
        answer="",
        cache_root=str(cache),
        backend=scenario.backend,
        transport="nccl" if several else "gloo",
        meeting=_meeting(conditions, folder) if scenario.ranks > 1 else "",
        table=conditions.table,
        labels=rehearsal.labels if rehearsal else workload.labels,
        max_tokens=workload.max_tokens,
        count_at=count_sizes(workload.max_tokens),
        forced=str(expect(scenario, conditions.row).forced or ""),
        slow_kernel=scenario.skip == "automatic",
        total_s=conditions.deadlines.total_s,
        cache_off=scenario.cache_off,
        rehearsal={"module": rehearsal.module, "options": dict(rehearsal.options)} if rehearsal else {},
    )


def _environment(conditions: Conditions, scenario: Scenario, cache: Path) -> dict[str, str]:
    environ = {
        **conditions.environ,
        **scenario_environment(scenario),
        CACHE_DIR: str(cache),
        TIMEOUT: str(conditions.deadlines.total_s),
        "FLASHINFER_WORKSPACE_BASE": str(conditions.jit),
    }
    if conditions.launched is not None:
        environ[WORLD] = json.dumps(asdict(conditions.launched))
    return environ


def _meeting(conditions: Conditions, folder: Path) -> str:
    """A file, which all ranks of a host see; a port of this host for ranks of others."""
    launched = conditions.launched
    if launched is None or launched.one_host:
        return f"file://{folder / 'meeting'}"
    return f"tcp://{launched.address}:{find_free_port()}"
