"""Where a scenario's file cannot be made, or a release has no tuner, that is told, and nothing is run in vain."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

from tests.smoke.samples import judge, row_for, seen_for
from tests.smoke.workers.conftest import Nobody, living
from tooling.edges.smoke.machine import NO_TUNER
from tooling.edges.smoke.orchestrator import Orchestrator
from tooling.edges.smoke.runs import Conditions
from tooling.smoke.scenarios import SCENARIOS
from tooling.warmup.settings import Deadlines

DIES = f"""#!{sys.executable}
import json, os, signal, sys
order = json.load(open(sys.argv[-1]))
print('{{"step": "ready", "profiles": 0}}', flush=True)
sys.stdin.readline()
open(os.path.dirname(sys.argv[0]) + "/ran", "a").write(order["scenario"] + " " + order["temperature"] + "\\n")
os.kill(os.getpid(), signal.SIGSEGV)
"""


def orchestrator_of(home: Path, release: str, *names: str) -> Orchestrator:
    """Its workers write down what they are asked, and die."""
    python = home / "python"
    python.write_text(DIES)
    python.chmod(0o755)
    conditions = Conditions(
        folder=home / "runs",
        jit=home / "jit",
        environ={"HOME": str(home), "PATH": os.environ["PATH"]},
        row=row_for(release),
        deadlines=Deadlines(no_progress_s=60.0, total_s=60.0),
        python=str(python),
    )
    return Orchestrator(conditions, [SCENARIOS[name] for name in names], Nobody())


def test_a_preparation_that_dies_is_the_cause_and_nothing_is_run_without_its_file(tmp_path: Path) -> None:
    seen = orchestrator_of(tmp_path, "0.6.13", "truncated", "foreign").conduct()
    assert (tmp_path / "ran").read_text() == "prepare-1 cold\n"
    for one in seen:
        assert one.cold is not None
        assert (one.cold.ranks[0].end, one.warm) == ("died", None)
        assert "SIGSEGV" in one.cold.ranks[0].why
        assert "while the file was made" in one.cold.ranks[0].why
    assert living(tmp_path) == []


def test_on_a_release_without_a_tuner_nothing_runs_and_that_is_no_difference_from_its_row(tmp_path: Path) -> None:
    """Before 0.2.6; what its interface lacks is what the row says."""
    scenarios = orchestrator_of(tmp_path, "0.2.5", "one-rank", "two-ranks").conduct()
    assert [one.not_run for one in scenarios] == ["the release has no autotuner"] * 2
    assert not (tmp_path / "ran").exists()
    seen = seen_for("0.6.13", names=(), scenarios=scenarios, pinned={"flashinfer-python": "0.2.5"})
    packages = {**seen.machine.packages, "flashinfer-python": "0.2.5"}
    seen = replace(seen, machine=replace(seen.machine, packages=packages, api=NO_TUNER))
    judged = judge(seen, "0.2.5", names=("one-rank", "two-ranks"))
    assert (judged.status, judged.reason) == ("not-run", "NOT_RUN")
