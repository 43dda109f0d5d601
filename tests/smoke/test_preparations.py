"""A file that cannot be made for a scenario is told as the cause, not as a file that nobody laid out."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.smoke.samples import row_for
from tests.smoke.workers.conftest import Nobody, living
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


def test_a_preparation_that_dies_is_the_cause_and_nothing_is_run_without_its_file(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(DIES)
    python.chmod(0o755)
    conditions = Conditions(
        folder=tmp_path / "runs",
        jit=tmp_path / "jit",
        environ={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        row=row_for("0.6.13"),
        deadlines=Deadlines(no_progress_s=60.0, total_s=60.0),
        python=str(python),
    )
    scenarios = (SCENARIOS["truncated"], SCENARIOS["foreign"])
    orchestrator = Orchestrator(conditions, scenarios, Nobody())
    seen = orchestrator.conduct()
    assert (tmp_path / "ran").read_text() == "prepare-1 cold\n"
    for one in seen:
        assert one.cold is not None
        assert (one.cold.ranks[0].end, one.warm) == ("died", None)
        assert "SIGSEGV" in one.cold.ranks[0].why
        assert "while the file was made" in one.cold.ranks[0].why
    assert living(tmp_path) == []
