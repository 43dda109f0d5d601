"""Under torchrun: rank 0 orchestrates and records, the other rank runs what it orders."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.smoke.workers.conftest import LABELS, MODULE, environment, living
from tests.warmup.environments import ROOT, base_python, table_of
from tooling.edges.smoke.launcher import Launched, find_launched
from tooling.errors import InputError
from tooling.evidence import parse_record
from tooling.smoke.observations import Seen

RELEASE = "0.6.13"
PLACE = {
    "RANK": "3",
    "WORLD_SIZE": "4",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "2",
    "MASTER_ADDR": "host",
    "MASTER_PORT": "29500",
}


def test_the_launchers_variables_say_where_this_process_is() -> None:
    found = find_launched(PLACE)
    assert found == Launched(
        rank=3, ranks=4, local_rank=1, local_ranks=2, address="host", port=29500, agent_store=False
    )
    assert not found.one_host


def test_without_a_launcher_or_alone_there_is_no_world() -> None:
    assert find_launched({}) is None
    assert find_launched({**PLACE, "RANK": "0", "WORLD_SIZE": "1"}) is None


@pytest.mark.parametrize("name", ["LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"])
def test_a_part_of_a_launchers_variables_is_bad_input(name: str) -> None:
    with pytest.raises(InputError) as caught:
        find_launched({key: value for key, value in PLACE.items() if key != name})
    assert caught.value.reason == "BAD_WORLD"


@pytest.mark.online
def test_every_rank_runs_its_part_and_one_that_dies_is_named(tmp_path: Path) -> None:
    """A rehearsal's record never passes, since it names no GPU."""
    fault = {"kind": "die", "scenario": "two-ranks", "rank": 1, "step": "waits at barrier"}
    options = {
        "table": str(table_of(RELEASE)),
        "rehearsal": {"module": MODULE, "labels": LABELS, "options": {"faults": [fault]}},
    }
    launcher = [str(base_python()), "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    words = ["--evidence", str(tmp_path / "out"), "--scenario", "two-ranks", "deepep-v2", "--max-tokens", "16"]
    subprocess.run(
        [*launcher, "-m", "tests.smoke.workers.drive", json.dumps(options), *words],
        env={**environment(RELEASE, tmp_path), "TMPDIR": str(tmp_path)},
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=300,
        check=False,
    )
    record = parse_record((tmp_path / "out" / "smoke-none.json").read_text())
    seen = Seen.from_json(record.measurements)
    broken, sound = seen.scenario("two-ranks"), seen.scenario("deepep-v2")
    assert broken is not None
    assert broken.cold is not None
    assert (broken.cold.ranks[1].end, broken.cold.ranks[1].step) == ("died", "waits at barrier")
    assert sound is not None
    assert sound.warm is not None
    assert [rank.end for rank in sound.warm.ranks] == ["ended", "ended"]
    assert (record.status, record.reason, record.gpu) == ("not-run", "NO_GPU", None)
    assert living(tmp_path) == []
