"""Under torchrun: rank 0 orchestrates and records, the other rank runs what it orders."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.smoke.workers.conftest import LABELS, MODULE, environment, living
from tests.warmup.environments import ROOT, base_python, table_of
from tooling.edges.smoke.launcher import Launched, find_launched, hear_done, say_done
from tooling.edges.smoke.serving_rank import choose_gpu
from tooling.errors import EdgeError, InputError
from tooling.evidence import parse_record
from tooling.smoke.observations import Seen
from tooling.smoke.orders import Order

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


@pytest.mark.parametrize(
    "nonsense",
    [
        {"WORLD_SIZE": "0"},
        {"RANK": "-1"},
        {"RANK": "4"},
        {"LOCAL_RANK": "2"},
        {"LOCAL_RANK": "-1"},
        {"LOCAL_WORLD_SIZE": "5"},
        {"MASTER_PORT": "0"},
        {"MASTER_PORT": "65536"},
        {"MASTER_ADDR": ""},
    ],
    ids=str,
)
def test_a_place_that_no_world_has_is_bad_input(nonsense: dict[str, str]) -> None:
    with pytest.raises(InputError) as caught:
        find_launched({**PLACE, **nonsense})
    assert caught.value.reason == "BAD_WORLD"
    (name, value) = next(iter(nonsense.items()))
    assert f"{name}={value!r}" in caught.value.message


def test_a_rank_of_the_first_host_takes_the_gpu_that_was_chosen_for_it_and_one_elsewhere_its_own() -> None:
    """Two ranks may share the one GPU of their host, and `--device` speaks of the first host's."""
    order = Order(scenario="two-ranks", temperature="cold", rank=1, ranks=2, answer="", cache_root="", gpu=0)
    beside = find_launched({**PLACE, "RANK": "1", "WORLD_SIZE": "2"})
    elsewhere = find_launched(PLACE)
    assert beside is not None
    assert elsewhere is not None
    assert choose_gpu(order, beside) == 0
    assert choose_gpu(replace(order, gpu=3), elsewhere) == 1
    assert choose_gpu(replace(order, gpu=None), elsewhere) is None


class Store:
    """A launcher's store in this process. Whoever asks how many have left has waited a while: one leaves meanwhile."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}
        self.left, self.asked, self.gone = 0, 0, False

    def set(self, key: str, value: str) -> None:
        self.kept[key] = value

    def check(self, keys: list[str]) -> bool:
        if self.gone:
            raise RuntimeError("failed to recv, got 0 bytes")
        return all(key in self.kept for key in keys)

    def get(self, key: str) -> bytes:
        return self.kept[key].encode()

    def add(self, _: str, amount: int) -> int:
        self.asked += 1
        self.left += amount or (self.asked > 1)
        return self.left


def test_a_rank_that_serves_the_store_itself_stays_until_the_others_have_heard_how_it_ended() -> None:
    place = find_launched({**PLACE, "RANK": "0", "LOCAL_RANK": "0"})
    assert place is not None
    store = Store()
    say_done(store, place, 4)
    assert (store.left, hear_done(store)) == (3, 4)
    launched = Store()
    say_done(launched, replace(place, agent_store=True), 4)
    assert (launched.asked, hear_done(launched)) == (0, 4)


def test_a_rank_whose_first_rank_has_gone_says_so() -> None:
    store = Store()
    assert hear_done(store) is None
    store.gone = True
    with pytest.raises(EdgeError, match="rank 0 has gone") as caught:
        hear_done(store)
    assert caught.value.reason == "NO_STORE"


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
