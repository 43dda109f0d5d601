"""The real smoke in a container whose torch sees no GPU: the record comes out and says why, and exit is 3."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.smoke.conftest import Images, Smoke
from tests.smoke.gpu_engine import GpuEngine, add_files, stand_ins
from tooling.edges.smoke_container import LABEL
from tooling.evidence import parse_record
from tooling.smoke.observations import Seen

pytestmark = [pytest.mark.docker, pytest.mark.timeout(300)]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def smoke(pinned_tree: Path, gpu_engine: GpuEngine, client: Any) -> Smoke:
    """As in the other tests, with this checkout's own package."""
    return Smoke(pinned_tree, ROOT, gpu_engine, client)


def test_the_smoke_runs_in_an_image_that_has_only_what_it_needs(smoke: Smoke, images: Images) -> None:
    done = smoke("--image", images.whole, "--scenario", "one-rank", "--max-tokens", "64")
    assert done.status == 3, done.text
    (record,) = done.records.values()
    assert (record["status"], record["reason"]) == ("not-run", "NO_GPU")
    assert record["image_id"] == smoke.client.images.get(images.whole).id
    assert record["flashinfer_version"] == "0.6.13"
    assert done.body["records"] == [record]
    (path,) = (smoke.tree / "evidence").glob("*.json")
    seen = Seen.from_json(parse_record(path.read_text()).measurements)
    assert seen.machine.packages["flashinfer-python"] == "0.6.13"
    assert seen.pinned == {"flashinfer-python": "0.6.13"}
    assert smoke.client.containers.list(all=True, filters={"label": LABEL}) == []


@pytest.mark.parametrize(
    "trouble",
    [
        "The NVIDIA driver on your system is too old (found version 12080). Please update your GPU driver",
        "Unexpected error from cudaGetDeviceCount(). Error 804: forward compatibility was attempted on non supported HW",
    ],
    ids=["by torch's check", "by CUDA's compatibility package"],
)
def test_an_old_driver_seen_inside_is_told_from_no_gpu(smoke: Smoke, images: Images, client: Any, trouble: str) -> None:
    old = add_files(client, images.no_torch, "smoke-old-driver", stand_ins(trouble))
    done = smoke("--image", old, "--scenario", "one-rank")
    (record,) = done.records.values()
    assert (done.status, record["status"], record["reason"]) == (3, "not-run", "DRIVER_TOO_OLD"), done.text


def test_an_unknown_scenario_is_refused_before_an_engine_is_asked(smoke: Smoke, tmp_path: Path) -> None:
    done = smoke("--image", "some:1", "--scenario", "no-such", address=f"unix://{tmp_path}/nowhere.sock")
    assert (done.status, done.body["error"]["reason"], done.records) == (2, "UNKNOWN_SCENARIO", {})


def test_an_image_under_torchrun_is_refused(smoke: Smoke, monkeypatch: pytest.MonkeyPatch) -> None:
    world = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "MASTER_PORT": "29500"}
    for name, value in {**world, "MASTER_ADDR": "127.0.0.1"}.items():
        monkeypatch.setenv(name, value)
    done = smoke("--image", "some:1")
    assert (done.status, done.body["error"]["reason"], done.records) == (2, "BAD_ARGUMENTS", {})
    assert "torchrun" in done.body["error"]["message"]


def test_a_network_without_an_image_is_refused(smoke: Smoke) -> None:
    done = smoke("--network", "bridge")
    assert (done.status, done.body["error"]["reason"], done.records) == (2, "BAD_ARGUMENTS", {})
