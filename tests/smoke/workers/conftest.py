"""Rehearsals: the orchestrator itself with the real tuner on the CPU, in the environments that the warm-up's tests made.

Workers are forked by a process that has imported torch (`zygote`); `test_launcher` starts them as users do.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.smoke.workers.zygote import Zygote
from tests.warmup.environments import ROOT, base_python, release_folder, table_of
from tooling.capabilities.table_text import parse
from tooling.edges.smoke import process
from tooling.edges.smoke.orchestrator import Orchestrator
from tooling.edges.smoke.runs import Conditions
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


class Rehearse:
    """Runs scenarios with forked workers, and returns what was seen of each."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._zygotes: dict[str, Zygote] = {}

    def __call__(
        self,
        release: str,
        home: Path,
        scenarios: Sequence[Scenario],
        *,
        table: Path | None = None,
        no_progress_s: float = 60.0,
        ahead: bool = True,
        **options: Any,
    ) -> dict[str, ScenarioSeen]:
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
            rehearsal=Rehearsal(module=MODULE, labels=LABELS, options=options),
        )
        forking = SimpleNamespace(
            Popen=self._zygote(release).popen, TimeoutExpired=subprocess.TimeoutExpired,
            PIPE=subprocess.PIPE, DEVNULL=subprocess.DEVNULL,
        )  # fmt: skip
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(process, "subprocess", forking)
            return {one.name: one for one in Orchestrator(conditions, scenarios, Nobody()).conduct()}

    def _zygote(self, release: str) -> Zygote:
        if release not in self._zygotes:
            surroundings = environment(release, self._home)
            surroundings["FLASHINFER_WORKSPACE_BASE"] = str(self._home)
            self._zygotes[release] = Zygote(base_python(), surroundings)
        return self._zygotes[release]

    def close(self) -> None:
        for zygote in self._zygotes.values():
            zygote.close()


@pytest.fixture(scope="session")
def rehearse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearse]:
    made = Rehearse(tmp_path_factory.mktemp("zygote"))
    yield made
    made.close()


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
