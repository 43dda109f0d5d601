"""`tooling smoke --image` on a real engine: what comes out of the container, and how each end is told."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.smoke.conftest import Done, Images, Smoke, make_pinned_tree
from tests.smoke.gpu_engine import GpuEngine
from tooling.evidence import parse_record
from tooling.smoke.container_plan import EVIDENCE, JIT, SOURCE

pytestmark = [pytest.mark.docker, pytest.mark.timeout(300)]
TOO_OLD = (
    "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=13.0, please update your driver to a newer "
    "version, or use an earlier cuda container\n"
)


def _only(done: Done) -> dict[str, object]:
    (record,) = done.records.values()
    return record


@dataclass(frozen=True, slots=True)
class Passed:
    """One run that passes, in a tree of its own, for all tests that only look at what came of it."""

    done: Done
    tree: Path
    commit: str
    image_before: str
    image_after: str


@pytest.fixture(scope="module")
def passed(
    gpu_engine: GpuEngine, client: Any, images: Images, package_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Passed:
    tree = make_pinned_tree(tmp_path_factory.mktemp("passed"))
    head = subprocess.run(["git", "-C", tree, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    before = client.images.get(images.whole).id
    done = Smoke(tree, package_home, gpu_engine, client)("--image", images.whole)
    return Passed(done, tree, head.stdout.strip(), before, client.images.get(images.whole).id)


def test_a_run_inside_is_streamed_and_its_evidence_comes_out_with_the_images_digest(passed: Passed) -> None:
    done = passed.done
    assert done.status == 0, done.text
    assert done.text.index("first line inside") < done.text.index("last line inside")
    record = done.records["smoke-sm90.json"]
    assert record["image_id"] == passed.image_before
    assert record["manifest_digest"] is None
    assert (record["status"], record["subject"]) == ("pass", "sm90")
    parse_record((passed.tree / "evidence/smoke-sm90.json").read_text())  # sealed again
    assert (passed.tree / "evidence/smoke-sm90.log").read_text() == "what a worker said\n"
    assert done.body["records"] == [record]
    assert (done.body["status"], done.body["exit"], done.body["story"]) == ("pass", 0, "a story")


def test_the_record_names_the_trees_commit_and_that_it_is_clean(passed: Passed) -> None:
    """There is no git in the container, so that only we know."""
    record = _only(passed.done)
    assert (record["commit"], record["dirty"]) == (passed.commit, False)


def test_a_dirty_tree_is_said_and_a_given_commit_is_taken(smoke: Smoke, images: Images) -> None:
    (smoke.tree / "secret.txt").write_text("changed")
    record = _only(smoke("--image", images.whole, "--commit", "0" * 40))
    assert (record["commit"], record["dirty"]) == ("0" * 40, True)


def test_inside_there_is_no_network_and_no_file_but_the_pins_and_the_image_is_unchanged(passed: Passed) -> None:
    seen = _only(passed.done)["measurements"]
    assert isinstance(seen, dict)
    assert seen["interfaces"] == ["lo"]
    assert seen["user"] == 10001
    assert seen["shared_memory"] == 8 << 30
    assert seen["environ"]["NVIDIA_VISIBLE_DEVICES"] == "all"
    assert seen["environ"]["PYTHONPATH"] == SOURCE
    assert "DOCKER_HOST" not in seen["environ"]
    assert passed.image_after == passed.image_before


def test_another_stages_record_in_the_container_replaces_none_of_ours(smoke: Smoke, images: Images) -> None:
    (smoke.tree / "evidence").mkdir()
    (smoke.tree / "evidence" / "image-release.json").write_text('{"ours": 1}')
    assert smoke("--image", images.whole).records["image-release.json"] == {"ours": 1}


def test_a_failed_run_brings_its_evidence_and_its_findings_out(smoke: Smoke, images: Images) -> None:
    done = smoke("--image", images.whole, "--scenario", "fail")
    assert (done.status, _only(done)["status"], _only(done)["reason"]) == (4, "fail", "LOST")
    assert [finding["detail"] for finding in done.body["findings"]] == ["one entry was lost"]
    assert _only(done)["image_id"] is not None


def test_no_gpu_inside_is_not_run_with_the_runs_own_reason(smoke: Smoke, images: Images) -> None:
    done = smoke("--image", images.whole, "--scenario", "no-gpu")
    assert (done.status, _only(done)["status"], _only(done)["reason"]) == (3, "not-run", "NO_GPU")
    assert done.body["error"]["message"] == "in the container: there is no GPU"
    assert _only(done)["image_id"] is not None


def test_torchs_complaint_inside_makes_no_gpu_an_old_driver(smoke: Smoke, images: Images) -> None:
    done = smoke("--image", images.whole, "--scenario", "old-driver")
    assert (done.status, _only(done)["status"], _only(done)["reason"]) == (3, "not-run", "DRIVER_TOO_OLD")
    assert "CUDA 12.8" in done.body["error"]["message"]


def test_bad_input_inside_is_bad_input_and_leaves_no_record(smoke: Smoke, images: Images) -> None:
    done = smoke("--image", images.whole, "--scenario", "bad-input")
    assert (done.status, done.body["error"]["kind"], done.body["error"]["reason"]) == (2, "input", "UNKNOWN_SCENARIO")
    assert done.records == {}


def test_a_run_that_leaves_no_record_is_no_pass(smoke: Smoke, images: Images) -> None:
    done = smoke("--image", images.whole, "--scenario", "no-record")
    assert (done.status, _only(done)["status"], _only(done)["reason"]) == (3, "not-run", "NO_EVIDENCE")


def test_our_own_crash_inside_is_a_crash_with_its_traceback(smoke: Smoke, images: Images) -> None:
    done = smoke("--image", images.whole, "--scenario", "crash")
    assert (done.status, _only(done)["status"], _only(done)["reason"]) == (1, "not-run", "CRASH")
    assert "ZeroDivisionError: a bug" in done.text


def test_a_process_that_is_killed_inside_fails_with_its_last_line(smoke: Smoke, images: Images) -> None:
    done = smoke("--image", images.whole, "--scenario", "killed")
    assert (done.status, _only(done)["status"], _only(done)["reason"]) == (4, "fail", "CONTAINER_DIED")
    assert "about to die" in done.body["findings"][0]["detail"]


@pytest.mark.parametrize(("act", "reason"), [("broken-record", "BAD_EVIDENCE"), ("other-pins", "PINS_MOVED")])
def test_a_record_that_cannot_be_ours_is_not_kept(smoke: Smoke, images: Images, act: str, reason: str) -> None:
    done = smoke("--image", images.whole, "--scenario", act)
    assert (done.status, _only(done)["status"], _only(done)["reason"]) == (3, "not-run", reason)


def test_without_a_gpu_runtime_the_reason_says_so(smoke: Smoke, images: Images, engine: None) -> None:
    """The machine's first engine has no hook; the image is brought over as a registry would."""
    import docker

    plain = docker.from_env()
    try:
        plain.images.load(smoke.client.images.get(images.whole).save(named=True))
        done = smoke("--image", images.whole, address="unix:///var/run/docker.sock")
        left = plain.containers.list(all=True, filters={"label": "tooling.smoke.container"})
        plain.images.remove(images.whole, force=True)
    finally:
        plain.close()
    assert (done.status, _only(done)["status"], _only(done)["reason"]) == (3, "not-run", "NO_GPU_RUNTIME")
    assert "container toolkit" in done.body["error"]["hint"]
    assert _only(done)["image_id"] is not None
    assert left == []


def test_a_driver_that_is_too_old_is_told_from_a_missing_runtime(smoke: Smoke, images: Images) -> None:
    smoke.engine.say(TOO_OLD)
    done = smoke("--image", images.whole)
    assert (done.status, _only(done)["status"], _only(done)["reason"]) == (3, "not-run", "DRIVER_TOO_OLD")
    assert "cuda>=13.0" in done.body["error"]["message"]
    assert "update the driver" in done.body["error"]["hint"]


def test_a_driver_that_is_not_loaded_is_told_too(smoke: Smoke, images: Images) -> None:
    smoke.engine.say("nvidia-container-cli: initialization error: nvml error: driver not loaded\n")
    done = smoke("--image", images.whole)
    assert (done.status, _only(done)["reason"]) == (3, "NO_GPU_DRIVER")


def test_an_image_that_the_engine_lacks_is_not_run(smoke: Smoke) -> None:
    done = smoke("--image", "no-such-image:1")
    assert (done.status, _only(done)["status"], _only(done)["reason"]) == (3, "not-run", "NO_IMAGE")
    assert "nox -s image" in done.body["error"]["hint"]


def test_a_text_that_names_no_image_is_bad_input(smoke: Smoke) -> None:
    done = smoke("--image", "Not An Image")
    assert (done.status, done.records) == (2, {})


@pytest.mark.parametrize(
    ("which", "reason"),
    [
        ("no_python", "IMAGE_LACKS_PYTHON"),
        ("closed_python", "IMAGE_LACKS_PYTHON"),
        ("other_machine", "IMAGE_OTHER_MACHINE"),
        ("no_packaging", "IMAGE_LACKS_PACKAGING"),
        ("no_torch", "IMAGE_LACKS_TORCH"),
        ("no_flashinfer", "IMAGE_LACKS_FLASHINFER"),
        ("old_python", "IMAGE_PYTHON_TOO_OLD"),
    ],
)
def test_what_the_image_lacks_fails_with_its_name(smoke: Smoke, images: Images, which: str, reason: str) -> None:
    done = smoke("--image", getattr(images, which))
    assert (done.status, _only(done)["status"], _only(done)["reason"]) == (4, "fail", reason), done.text
    assert done.body["findings"][0]["reason"] == reason


def test_a_jit_cache_goes_in_and_comes_out_with_times_and_modes(smoke: Smoke, images: Images, tmp_path: Path) -> None:
    cache = tmp_path / "jit"
    cache.mkdir()
    (cache / "kernel.so").write_text("old")
    (cache / "kernel.so").chmod(0o755)
    os.utime(cache / "kernel.so", (1_700_000_000, 1_700_000_000))
    done = smoke("--image", images.whole, "--scenario", "jit", "--jit-cache", str(cache))
    assert done.status == 0, done.text
    assert "compiled before: old 1700000000.0 True" in done.text
    assert ((cache / "kernel.so").read_text(), (cache / "deep/new.so").read_text()) == ("changed", "new")
    assert (cache / "deep/new.so").stat().st_mtime > time.time() - 600
    assert os.access(cache / "kernel.so", os.X_OK)


def test_an_evidence_folder_that_cannot_be_written_is_said_before_anything_starts(
    smoke: Smoke, images: Images, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    done = smoke("--image", images.whole, "--evidence", str(tmp_path / "file" / "evidence"))
    assert (done.status, done.body["error"]["reason"]) == (3, "UNWRITABLE")
    assert "in a container" not in done.text


def test_a_network_is_given_only_if_asked_for(smoke: Smoke, images: Images) -> None:
    done = smoke("--image", images.whole, "--network", "no-such-network")
    assert (done.status, _only(done)["reason"]) == (3, "ENGINE_REFUSED")
    assert "no-such-network" in done.body["error"]["message"]


def test_what_lies_where_in_the_container_is_apart_from_what_images_hold() -> None:
    assert all(place.startswith("/pin-smoke/") for place in (SOURCE, EVIDENCE, JIT))
