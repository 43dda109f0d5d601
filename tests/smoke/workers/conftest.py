"""Rehearsals: the orchestrator itself with the real tuner on the CPU, in the environments that the warm-up's tests made."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.warmup.environments import ROOT, base_python, release_folder, table_of
from tooling.capabilities.table_text import parse
from tooling.edges.smoke.orchestrator import Conditions, Orchestrator
from tooling.smoke.observations import RunSeen, ScenarioSeen
from tooling.smoke.orders import Rehearsal
from tooling.smoke.scenarios import Scenario
from tooling.warmup.settings import Deadlines

LABELS = ("host_bf16", "host_fp16")
MODULE = "tests.smoke.workers.rehearsal"


class Nobody:
    """An audience that looks away."""

    def begin(self, scenario: str, temperature: str) -> None: ...

    def working(self, workers: Sequence[Any]) -> None: ...

    def end(self, scenario: str, temperature: str, run: RunSeen) -> None: ...


def environment(release: str, home: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PYTHONPATH": f"{release_folder(release)}{os.pathsep}{ROOT}",
        "OMP_NUM_THREADS": "1",
    }


def rehearse(
    release: str,
    home: Path,
    scenarios: Sequence[Scenario],
    *,
    table: Path | None = None,
    no_progress_s: float = 60.0,
    ahead: bool = True,
    **options: Any,
) -> dict[str, ScenarioSeen]:
    """What was seen of each scenario."""
    table = table or table_of(release)
    conditions = Conditions(
        folder=home / "runs",
        jit=home / "jit",
        environ=environment(release, home),
        row=parse(table.read_text()).rows[0],
        table=str(table),
        max_tokens=16,
        deadlines=Deadlines(no_progress_s=no_progress_s, total_s=200.0),
        peer_grace_s=2.0,
        ahead=ahead,
        python=str(base_python()),
        rehearsal=Rehearsal(module=MODULE, labels=LABELS, options=options),
    )
    return {one.name: one for one in Orchestrator(conditions, scenarios, Nobody()).conduct()}


def living(home: Path) -> list[str]:
    """Command lines of processes that name that folder, or belong to a worker of it."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            state = (folder / "stat").read_text().rsplit(")", 1)[1].split()[0]
            surroundings = (folder / "environ").read_bytes()
        except OSError:
            continue
        mine = str(home) in words or str(home).encode() in surroundings
        if mine and state not in "ZX" and int(folder.name) != os.getpid():
            found.append(words)
    return found
