"""Servers as real process groups: what they leave behind, and what is left when we are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import lives, wait_for, wait_until_dead
from tooling.edges.serving.installed import find_installed
from tooling.edges.serving.logs import LogFollower
from tooling.edges.serving.ports import find_free_port, is_port_taken
from tooling.edges.serving.process import ProcessServer
from tooling.errors import EdgeError

FAMILY = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"],
                         start_new_session=True)
print(os.getpid(), child.pid, flush=True)
time.sleep(600 if sys.argv[1] == "stay" else 0)
"""


def make(tmp_path: Path, *argv: str, grace_s: float = 0.3, **env: str) -> ProcessServer:
    return ProcessServer(argv, environ=os.environ, env=env, log_path=tmp_path / "log", grace_s=grace_s)


def wait_for_pids(log: Path) -> list[int]:
    wait_for(lambda: log.is_file() and log.read_text().endswith("\n"))
    return [int(word) for word in log.read_text().split()]


@pytest.mark.parametrize("stays", ["stay", "leave"], ids=["a living server", "a dead server with an orphan"])
def test_nothing_of_a_server_survives_its_end(tmp_path: Path, stays: str) -> None:
    server = make(tmp_path, sys.executable, "-c", FAMILY, stays)
    server.start()
    pids = wait_for_pids(tmp_path / "log")
    assert lives(pids[1])
    server.end()
    assert [pid for pid in pids if lives(pid)] == []
    server.close()


def test_a_server_that_ends_when_asked_is_not_killed(tmp_path: Path) -> None:
    code = "import os, signal, sys, time; signal.signal(15, lambda *_: (os.write(1, b'bye\\n'), sys.exit(0))); "
    server = make(tmp_path, sys.executable, "-c", code + "print('up', flush=True); time.sleep(600)", grace_s=60.0)
    server.start()
    wait_for(lambda: "up" in (tmp_path / "log").read_text())
    server.end()
    assert (tmp_path / "log").read_text() == "up\nbye\n"


def test_a_server_can_be_started_again_and_its_log_goes_on(tmp_path: Path) -> None:
    server = make(tmp_path, sys.executable, "-c", "import os; print(os.environ['WHO'])", WHO="me")
    for _ in range(2):
        server.start()
        wait_for(server.poll)
        death = server.poll()
        assert death is not None
        assert death.code == 0
        server.end()
    assert (tmp_path / "log").read_text() == "me\nme\n"


def test_a_missing_program_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(EdgeError, match="no-such-program") as caught:
        make(tmp_path, "no-such-program").start()
    assert caught.value.reason == "NO_SERVER"


def test_a_server_does_not_outlive_a_killed_stage(tmp_path: Path) -> None:
    script = tmp_path / "stage.py"
    script.write_text(
        "import os, sys, time\nfrom pathlib import Path\n"
        "from tooling.edges.serving.process import ProcessServer\n"
        f"server = ProcessServer([sys.executable, '-c', {FAMILY!r}, 'stay'], environ=os.environ, env={{}}, "
        f"log_path=Path({str(tmp_path / 'log')!r}))\n"
        "server.start()\ntime.sleep(600)\n"
    )
    root = Path(__file__).resolve().parents[3]
    stage = subprocess.Popen([sys.executable, str(script)], env={**os.environ, "PYTHONPATH": str(root)})
    pids = wait_for_pids(tmp_path / "log")
    os.kill(stage.pid, signal.SIGKILL)
    stage.wait()
    wait_until_dead(pids)


def test_a_log_is_followed_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    follower = LogFollower(path)
    assert follower.read_new() == []
    path.write_bytes(b"one\n\n 10%|#\r 20%|##\rtw")
    assert follower.read_new() == ["one", " 10%|#", " 20%|##"]
    with path.open("ab") as file:
        file.write(b"o\nthree \xff")
    assert follower.read_new() == ["two"]
    follower.finish()
    assert follower.tail(2) == ("two", "three \ufffd")


def test_of_an_endless_line_only_the_start_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"y" * 3_000_000 + b"\nnext\n" + b"z" * 3_000_000)
    follower = LogFollower(path)
    follower.finish()
    assert [len(line) for line in follower.lines] == [20_000, 4, 20_000]


def test_a_taken_port_is_seen_on_any_address() -> None:
    import socket

    port = find_free_port()
    assert not is_port_taken(port)
    for address in ("127.0.0.1", "0.0.0.0"):
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((address, port))
            listener.listen()
            assert is_port_taken(port)
    assert not is_port_taken(port)


def test_the_python_behind_a_command_tells_what_it_has_installed(tmp_path: Path) -> None:
    script = tmp_path / "serve"
    script.write_text(f"#!{sys.executable}\n")
    script.chmod(0o755)
    for argv in ([sys.executable, "-m", "x"], [str(script), "serve"]):
        found = find_installed("openai", argv, os.environ)
        assert found is not None
        assert found[0][0].isdigit()
        assert "package metadata of" in found[1]
    assert find_installed("no-such-package", [sys.executable], os.environ) is None
    assert find_installed("openai", ["sh", "-c", "x"], os.environ) is None
    assert find_installed("openai", ["no-such-program"], os.environ) is None
