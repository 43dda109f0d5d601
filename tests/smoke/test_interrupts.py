"""A run that is ended from outside, at any moment, leaves no process and no pass; workers that hang stand for kernels."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.smoke.workers.conftest import living
from tests.trees import commit_all
from tests.waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]
TORCH = """
import os, sys, time
if os.environ.get("SLOW_MACHINE") and "tooling.edges.smoke.machine" in sys.orig_argv:
    time.sleep(600)
class version: cuda = "13.0"
class cuda:
    is_available = staticmethod(lambda: True)
    device_count = staticmethod(lambda: 1)
    get_device_name = staticmethod(lambda number: "NVIDIA H200")
    get_device_capability = staticmethod(lambda number: (9, 0))
    init = staticmethod(lambda: None)
"""
HANGS = """
import subprocess, time
subprocess.Popen(["sleep", "600"])
subprocess.Popen(["sleep", "600"], start_new_session=True)
time.sleep(600)
"""
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A tree with pins, and packages: a torch that sees a GPU, and whose `distributed` hangs in every worker."""
    site, tree = tmp_path / "site", tmp_path / "tree"
    for name, version in (("torch", "2.11.0"), ("flashinfer_python", "0.6.13")):
        info = site / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    for path, text in (("torch/__init__.py", TORCH), ("torch/distributed.py", HANGS), ("flashinfer.py", "")):
        (site / path).parent.mkdir(exist_ok=True)
        (site / path).write_text(text)
    tree.mkdir()
    (tree / "versions.json").write_text('{"variable": {"FLASHINFER_VERSION": {"default": "0.6.13"}}}\n')
    commit_all(tree, "pins")
    return tmp_path


@pytest.fixture
def start(home: Path) -> Iterator[Start]:
    started = []

    def start(**variables: str) -> subprocess.Popen[bytes]:
        words = ["--root", str(home / "tree"), "--evidence", str(home / "out"), "--scenario", "one-rank", "two-ranks"]
        (home / "tmp").mkdir(exist_ok=True)
        process = subprocess.Popen(
            [sys.executable, "-m", "tooling", "smoke", *words],
            env={
                "PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(home / "tmp"),
                "PYTHONPATH": f"{home / 'site'}{os.pathsep}{ROOT}", **variables,
            },
            cwd=home, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()


def records(home: Path) -> dict[str, tuple[str, str]]:
    bodies = {path.name: json.loads(path.read_text()) for path in (home / "out").glob("*.json")}
    return {name: (body["status"], body["reason"]) for name, body in bodies.items()}


def working(home: Path) -> bool:
    return any(line.startswith("sleep 600") for line in living(home))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_workers_their_children_and_strays_are_gone_and_the_record_says_interrupted(
    start: Start, home: Path, number: signal.Signals
) -> None:
    process = start()
    wait_for(lambda: working(home))
    process.send_signal(number)
    assert process.wait(timeout=240) == 130
    assert living(home) == []
    assert records(home) == {"smoke-sm90.json": ("not-run", "INTERRUPTED")}
    assert list((home / "tmp").iterdir()) == []


def test_killed_outright_workers_and_strays_end_by_themselves_and_the_record_says_unfinished(
    start: Start, home: Path
) -> None:
    process = start()
    wait_for(lambda: working(home))
    process.kill()
    process.wait()
    wait_for(lambda: living(home) == [])
    assert records(home) == {"smoke-sm90.json": ("not-run", "UNFINISHED")}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_while_the_machine_is_looked_at_it_ends_as_well(start: Start, home: Path, number: signal.Signals) -> None:
    process = start(SLOW_MACHINE="1")
    wait_for(lambda: any("smoke.machine" in line for line in living(home)))
    time.sleep(0.3)
    process.send_signal(number)
    assert process.wait(timeout=240) == 130
    assert living(home) == []
    assert records(home) == {"smoke-none.json": ("not-run", "INTERRUPTED")}


def test_impatience_leaves_nothing_either(start: Start, home: Path) -> None:
    process = start()
    wait_for(lambda: working(home))
    for _ in range(3):
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)
    process.wait(timeout=240)
    wait_for(lambda: living(home) == [])
    assert {status for status, _ in records(home).values()} == {"not-run"}


@pytest.mark.parametrize("delay_s", [0.02, 0.15, 0.4, 0.7, 1.0, 1.4])
def test_at_any_moment_nothing_is_left_and_nothing_passes(start: Start, home: Path, delay_s: float) -> None:
    """Before the run has begun, the signal does what it does to every process."""
    process = start()
    time.sleep(delay_s)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=240) in {130, -signal.SIGTERM}
    wait_for(lambda: living(home) == [])
    assert {status for status, _ in records(home).values()} <= {"not-run"}
