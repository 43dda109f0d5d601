"""Workers that do not keep to the channel: whatever they print, ignore or leave behind, the run ends and names them."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.smoke.workers.conftest import living
from tests.waiting import wait_for
from tooling.edges.serving.signals import ending_politely
from tooling.edges.smoke import watching
from tooling.edges.smoke.process import LINE_BYTES
from tooling.edges.smoke.watching import Crew
from tooling.smoke.observations import RankSeen
from tooling.smoke.orders import Order
from tooling.warmup.settings import Deadlines

READY = 'print(\'{"step": "ready", "profiles": 0}\', flush=True)\nsys.stdin.readline()\n'
ANSWER = (
    "from tooling.smoke.observations import RankSeen\n"
    'body = {"seen": RankSeen(rank=order["rank"], end="ended").as_json(), "opened": []}\n'
    'open(order["answer"], "w").write(json.dumps(body))\n'
)
GARBAGE = {
    "bytes": "while True: os.write(1, b'\\xff\\0garbage\\n' * 4096)",
    "an endless line": "while True: os.write(1, b'x' * 65536)",
    "JSON of another kind": 'while True: os.write(1, b\'[1]\\n{"step": 1}\\n{"profiles": 3}\\n\' * 1024)',
    "numbers that are none": 'while True: os.write(1, b\'{"step": "tune", "profiles": Infinity}\\n\' * 1024)',
    "nested lists": "while True: os.write(1, b'[' * 5000 + b'\\n')",
}

Start = Callable[..., Crew]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Starts ranks of a program that stands where the worker's interpreter would."""

    def start(*programs: str) -> Crew:
        python = tmp_path / "python"
        choices = [f"if order['rank'] == {rank}:\n" + _indented(text) for rank, text in enumerate(programs)]
        lines = [f"#!{sys.executable}", "import json, os, signal, subprocess, sys, time"]
        python.write_text("\n".join([*lines, "order = json.load(open(sys.argv[-1]))", *choices]) + "\n")
        python.chmod(0o755)
        orders = [
            Order(scenario="bad", temperature="cold", rank=rank, ranks=len(programs),
                  answer=str(tmp_path / f"answer-{rank}.json"), cache_root=str(tmp_path / "cache"))
            for rank in range(len(programs))
        ]  # fmt: skip
        return Crew(orders, tmp_path / "run", {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}, python=str(python))

    return start


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


def run(crew: Crew, *, silence_s: float = 60.0, total_s: float = 200.0) -> tuple[RankSeen, ...]:
    """Its deadlines begin once every worker is ready or gone, so that starting interpreters may take its time."""
    try:
        wait_for(lambda: all(not worker.hear() or worker.ready or not worker.alive for worker in crew.workers))
    except BaseException:
        crew.close()
        raise
    return crew.run(Deadlines(no_progress_s=silence_s, total_s=total_s), lambda _: None, peer_grace_s=60.0)


@pytest.mark.parametrize("kind", GARBAGE)
def test_garbage_on_the_channel_is_no_progress_and_its_worker_is_ended(start: Start, tmp_path: Path, kind: str) -> None:
    crew = start(READY + GARBAGE[kind])
    (seen,) = run(crew, silence_s=3.0)
    assert (seen.end, seen.step) == ("hung", "ready")
    assert "no rank made progress for 3 s" in seen.why
    assert len(crew.workers[0]._rest) <= LINE_BYTES
    assert living(tmp_path) == []


def test_a_worker_that_never_stops_telling_steps_is_ended_at_the_total(start: Start, tmp_path: Path) -> None:
    line = '{"step": "%s", "profiles": 1}' % ("x" * 2000)
    (seen,) = run(start(READY + f"while True: os.write(1, {line.encode()!r} + b'\\n')"), total_s=4.0)
    assert seen.end == "hung"
    assert "more than 4 s in all" in seen.why
    assert len(seen.step) == 300
    assert living(tmp_path) == []


def test_a_worker_and_its_stray_that_ignore_the_wish_to_end_are_killed(start: Start, tmp_path: Path) -> None:
    deaf = "for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(number, signal.SIG_IGN)\n"
    stray = "subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
    (seen,) = run(start(deaf + READY + stray + "time.sleep(600)"), silence_s=3.0)
    assert seen.end == "hung"
    assert living(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_wish_to_end_that_comes_while_strays_are_ended_waits_for_that(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """Their workers are dead by then, and nobody else would end them."""
    real = watching.end_all

    def end_all(*words: Any, **options: Any) -> bool:
        os.kill(os.getpid(), number)
        return real(*words, **options)

    monkeypatch.setattr(watching, "end_all", end_all)
    stray = "subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
    with ending_politely(), pytest.raises(KeyboardInterrupt):
        run(start(stray + READY + "time.sleep(600)"), silence_s=1.0)
    assert living(tmp_path) == []


def test_a_forked_child_that_holds_the_line_does_not_make_an_ended_worker_hang(start: Start, tmp_path: Path) -> None:
    child = "if os.fork() == 0: time.sleep(600)\nos._exit(0)"
    began = time.monotonic()
    (seen,) = run(start(READY + ANSWER + child))
    assert (seen.end, seen.exit_status) == ("ended", 0)
    assert time.monotonic() - began < 50
    assert living(tmp_path) == []


def test_an_ended_worker_that_does_not_exit_is_killed(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "EXIT_S", 1.0)
    (seen,) = run(start(READY + ANSWER + "os.close(1)\ntime.sleep(600)"))
    assert seen.end == "died"
    assert living(tmp_path) == []


def test_an_answer_that_another_rank_wrote_does_not_count(start: Start) -> None:
    """Rank 0 writes both; rank 1 dies without one of its own."""
    other = 'open(order["answer"].replace("-0", "-1"), "w").write(json.dumps(body))\n'
    first, second = run(start(READY + ANSWER + other, READY + "os.kill(os.getpid(), signal.SIGKILL)"))
    assert first.end == "ended"
    assert second.end == "died"
    assert "its answer cannot be read" in second.why


def test_a_worker_that_fills_its_log_is_ended_before_the_disk_is_full(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "LOG_BYTES", 1024**2)
    crew = start(READY + 'log = open(sys.argv[-1] + ".log", "wb", 0)\nwhile log.write(b"x" * 65536): time.sleep(0.01)')
    (seen,) = run(crew, silence_s=60.0)
    assert (seen.end, seen.step) == ("died", "ready")
    assert "rank 0 printed more than 1 MB" in seen.why
    assert living(tmp_path) == []


def test_an_interpreter_that_ends_at_once_never_came_to_life(start: Start) -> None:
    (seen,) = run(start("sys.exit(7)"))
    assert (seen.end, seen.exit_status) == ("not-started", 7)
