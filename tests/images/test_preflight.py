"""What is looked at before a build: pure judgements, and the command on machines without engine, client or buildx."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.images.conftest import ROOT, copy_checkout
from tooling.images.preflight import judge_base, judge_buildx, judge_disk


@pytest.mark.parametrize(
    ("answer", "complaint", "outcome", "reason"),
    [
        ("github.com/docker/buildx 0.13.1+ds1 0.13.1+ds1-3", "", "ok", ""),
        ("github.com/docker/buildx v0.21.2 1360a9e", "", "ok", ""),
        ("github.com/docker/buildx v0.9.1 ed00243", "", "problem", "TOOL_TOO_OLD"),
        ("something else", "", "problem", "TOOL_MISSING"),
        (None, "docker: 'buildx' is not a docker command.", "problem", "TOOL_MISSING"),
        (None, "unknown flag: --file", "problem", "TOOL_MISSING"),
        (None, "", "problem", "TOOL_MISSING"),
    ],
)
def test_buildx_must_be_there_and_not_too_old(answer: str | None, complaint: str, outcome: str, reason: str) -> None:
    check = judge_buildx(answer, complaint)
    assert (check.outcome, check.reason) == (outcome, reason)


def test_a_client_that_hangs_is_told_apart_from_one_without_buildx() -> None:
    check = judge_buildx(None, "`docker buildx version` did not answer within 10 s", is_late=True)
    assert (check.outcome, check.reason) == ("problem", "TOOL_HANGS")
    assert check.detail == "`docker buildx version` did not answer within 10 s."


def test_the_disk_is_judged_needed_against_free() -> None:
    check = judge_disk("/var/lib/docker", 3_500_000_000, 20)
    assert check.detail == "20 GB are needed in /var/lib/docker and 3.5 GB are free."
    assert (check.outcome, check.reason) == ("problem", "INFRA_DISK")
    assert judge_disk("/x", 21_000_000_000, 20).outcome == "ok"
    assert judge_disk("/x", None, 20).outcome == "not checked"


@pytest.mark.parametrize(
    ("is_local", "answer", "complaint", "reason"),
    [
        (True, None, "", ""),
        (False, "Name: x", "", ""),
        (False, None, "ERROR: docker.io/nvidia/cuda:9: not found", "BASE_IMAGE_MISSING"),
        (False, None, "manifest unknown: manifest unknown", "BASE_IMAGE_MISSING"),
        (False, None, "dial tcp: lookup registry.invalid: no such host", "BASE_IMAGE_UNREACHABLE"),
    ],
)
def test_a_base_image_is_to_be_had_or_named(is_local: bool, answer: str | None, complaint: str, reason: str) -> None:
    check = judge_base("nvidia/cuda:9", is_local=is_local, registry_answer=answer, complaint=complaint)
    assert check.reason == reason
    assert (check.outcome == "ok") is not bool(reason)
    assert not reason or "nvidia/cuda:9" in check.detail


FAKES = {
    "no client": (None, "TOOL_MISSING", "no program `docker`"),
    "no buildx": ("echo \"docker: 'buildx' is not a docker command.\" >&2; exit 1", "TOOL_MISSING", "docker has no buildx"),
    "an old client": ("echo 'unknown flag: --file' >&2; exit 125", "TOOL_MISSING", "docker has no buildx"),
    "old buildx": ('if [ "$2" = version ]; then echo "github.com/docker/buildx v0.5.1 x"; else exit 1; fi',
                   "TOOL_TOO_OLD", "buildx is 0.5.1"),
    "no engine": (('if [ "$2" = version ]; then echo "github.com/docker/buildx v0.13.1 x"; else '
                  'echo "Cannot connect to the Docker daemon" >&2; exit 1; fi'), "NO_ENGINE", "engine does not answer"),
}  # fmt: skip


def _image(tree: Path, folder: Path, script: str | None, *words: str) -> tuple[int, dict[str, object], str]:
    """`tooling image` where PATH has git and that `docker` only, and no engine listens."""
    tools = folder / "tools"
    tools.mkdir()
    for name in ("git", "sh"):
        found = next(path for path in ("/usr/bin", "/bin") if (Path(path) / name).exists())
        (tools / name).symlink_to(Path(found) / name)
    if script is not None:
        (tools / "docker").write_text(f"#!/bin/sh\n{script}\n")
        (tools / "docker").chmod(0o755)
    env = {**os.environ, "PATH": str(tools), "DOCKER_HOST": f"unix://{folder}/nobody.sock", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tooling", "image", "--root", str(tree), "--json", "--offline", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    return done.returncode, json.loads(done.stdout), done.stderr


@pytest.mark.parametrize(("script", "reason", "sentence"), FAKES.values(), ids=FAKES.keys())
def test_a_machine_that_cannot_build_is_told_in_one_sentence(
    tmp_path: Path, script: str | None, reason: str, sentence: str
) -> None:
    tree = copy_checkout(tmp_path / "tree")
    status, report, text = _image(tree, tmp_path, script, "release")
    assert status == 3, text
    assert report["error"]["reason"] == reason
    assert sentence in report["error"]["message"]
    record = json.loads((tree / "evidence" / "image-release.json").read_text())
    assert (record["status"], record["reason"]) == ("not-run", reason)
    assert (report["status"], report["records"]) == ("not-run", [record])


FEW = {name: FAKES[name] for name in ("no client", "no engine")}


@pytest.mark.parametrize(("script", "reason", "sentence"), FEW.values(), ids=FEW.keys())
def test_the_doctor_lists_it_and_builds_nothing(tmp_path: Path, script: str | None, reason: str, sentence: str) -> None:
    tree = copy_checkout(tmp_path / "tree")
    status, report, _ = _image(tree, tmp_path, script, "--doctor")
    assert status == 3
    assert reason in {check["reason"] for check in report["checks"]}
    assert not (tree / "evidence").exists()


@pytest.mark.parametrize(("script", "reason", "sentence"), FEW.values(), ids=FEW.keys())
def test_the_plan_needs_no_engine_and_says_that_it_is_our_own_reading(
    tmp_path: Path, script: str | None, reason: str, sentence: str
) -> None:
    status, report, text = _image(copy_checkout(tmp_path / "tree"), tmp_path, script, "release", "--plan")
    assert (status, report["plan_source"]) == (0, "static"), text
    (target,) = report["plan"]
    assert target["args"]["CUDA_VERSION"] == "13.0.2"
    assert "static" in text
