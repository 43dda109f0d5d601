"""The promises about real releases, against the index that pip is configured for."""

from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.version import Version

from tooling import cli

ROOT = Path(__file__).resolve().parents[2]
PINNED = (
    "versions.json",
    "requirements/cuda.txt",
    "docker/Dockerfile",
    "docker/Dockerfile.nightly_torch",
    "release.toml",
)

pytestmark = pytest.mark.online


@pytest.fixture
def bump(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., dict]:
    """This repository's own files at 0.6.12, in a folder of their own."""
    for name in PINNED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)

    def run(*words: str, command: str = "bump") -> dict:
        capsys.readouterr()
        cli.main([command, *words, "--root", str(tmp_path), "--json"])
        return json.loads(capsys.readouterr().out)

    assert run("0.6.12", "--offline")["exit"] == 0
    return run


def reasons(report: dict) -> set[str]:
    return {item["reason"] for item in report["findings"] if item["severity"] == "error"}


def test_0_6_13_passes_with_digests_of_both_wheels(bump: Callable[..., dict], tmp_path: Path) -> None:
    report = bump("0.6.13")
    assert (report["status"], report["exit"]) == ("moved", 0)
    names = set(tomllib.loads((tmp_path / "release.toml").read_text())["flashinfer"]["sha256"])
    assert {name.split("-")[0] for name in names} == {"flashinfer_python", "flashinfer_cubin"}


def test_0_6_14_is_refused_and_passes_without_cubin(bump: Callable[..., dict]) -> None:
    report = bump("0.6.14")
    assert (report["exit"], reasons(report)) == (4, {"ELSEWHERE"})
    assert bump("0.6.14", "--drop-cubin")["status"] == "moved"
    back = bump("0.6.13", "--restore-cubin")
    assert (back["status"], back["restored"]) == ("moved", ["flashinfer-cubin"])


def test_0_7_4_is_refused_and_passes_without_cubin_and_with_companions(bump: Callable[..., dict]) -> None:
    report = bump("0.7.4")
    assert (report["exit"], reasons(report)) == (4, {"ELSEWHERE", "COMPANION"})
    lowest = {item["package"]: item["lowest"] for item in report["companions"]}
    assert lowest == {"apache-tvm-ffi": "0.1.11", "nvidia-cutlass-dsl": "4.8.0", "nvidia-cudnn-frontend": "1.32.0"}
    assert bump("0.7.4", "--drop-cubin")["exit"] == 4
    assert bump("0.7.4", "--drop-cubin", "--with-companions")["status"] == "moved"
    resolved = bump("--resolve", command="check")
    assert [item["resolves"] for item in resolved["resolve"]] == [True, True], resolved["findings"]


def test_a_release_that_nobody_published_is_refused(bump: Callable[..., dict]) -> None:
    assert reasons(bump("0.6.13.post99", "--allow-unknown")) == {"NOT_PUBLISHED"}


def test_the_latest_in_reach_leaves_out_only_newer_ones_and_says_why(bump: Callable[..., dict]) -> None:
    report = bump("--latest", "--dry-run")
    assert report["exit"] == 0
    assert Version(report["to"]) >= Version("0.6.13")
    assert all(Version(item["release"]) > Version(report["to"]) and item["why"] for item in report["passed_over"])


def test_this_repositorys_pins_resolve_on_every_platform(bump: Callable[..., dict]) -> None:
    bump("0.6.13")
    report = bump("--resolve", command="check")
    assert [item["resolves"] for item in report["resolve"]] == [True, True], report["findings"]
