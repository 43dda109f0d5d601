"""However a run in a container is ended, the container is gone, no process is left, and a record says what happened."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.smoke.conftest import Images, Smoke

pytestmark = [pytest.mark.docker, pytest.mark.timeout(300)]


def _wait_until(holds: Callable[[], bool]) -> None:
    for _ in range(2400):
        if holds():
            return
        time.sleep(0.1)
    pytest.fail("it did not happen within minutes")


def _read_until(process: subprocess.Popen[str], text: str) -> None:
    """Reads standard error until a line holds the text; a test whose run says it never is ended by its own timeout."""
    assert process.stderr is not None
    for line in process.stderr:
        if text in line:
            return
    pytest.fail(f"{text!r} was never said")


def _leashes(smoke: Smoke) -> list[str]:
    """The processes beside ours that know of a container of this test's own engine."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            ours = smoke.engine.address.encode() in (folder / "environ").read_bytes()
            if ours and b"engine-container" in (folder / "cmdline").read_bytes():
                found.append(folder.name)
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_lets_the_run_inside_write_what_it_has_and_removes_the_container(
    smoke: Smoke, images: Images, number: signal.Signals
) -> None:
    process = smoke.start("--image", images.whole, "--scenario", "hang-politely")
    _read_until(process, "hanging")
    process.send_signal(number)
    done = smoke.finish(process)
    assert done.status == 130
    record = done.records["smoke-sm90.json"]
    assert (record["status"], record["reason"]) == ("not-run", "INTERRUPTED")
    assert record["image_id"] == smoke.client.images.get(images.whole).id
    assert smoke.containers() == []
    _wait_until(lambda: _leashes(smoke) == [])


@pytest.mark.parametrize("held_s", [0, 5], ids=["while files go in", "while the engine starts it"])
def test_a_signal_before_anything_runs_inside_leaves_nothing(smoke: Smoke, images: Images, held_s: int) -> None:
    smoke.engine.hold(held_s)
    process = smoke.start("--image", images.whole, "--scenario", "hang", "--stop", "1")
    _read_until(process, "in a container of")
    if held_s:
        _wait_until(smoke.engine.is_held)
    process.send_signal(signal.SIGTERM)
    done = smoke.finish(process)
    assert done.status == 130
    assert [record["reason"] for record in done.records.values()] == ["INTERRUPTED"]
    _wait_until(lambda: smoke.containers() == [] and _leashes(smoke) == [])


def test_a_killed_tool_leaves_no_container(smoke: Smoke, images: Images) -> None:
    process = smoke.start("--image", images.whole, "--scenario", "hang")
    _read_until(process, "hanging")
    process.kill()
    process.communicate()
    _wait_until(lambda: smoke.containers() == [] and _leashes(smoke) == [])


def test_a_run_that_does_not_end_is_ended_at_its_deadline_and_what_it_wrote_comes_out(
    smoke: Smoke, images: Images
) -> None:
    done = smoke("--image", images.whole, "--scenario", "hang-politely", "--limit", "25")
    record = done.records["smoke-sm90.json"]
    assert (done.status, record["status"], record["reason"]) == (3, "not-run", "TIMEOUT")
    assert "hanging" in done.body["error"]["message"]


def test_a_run_that_hears_no_signal_is_killed(smoke: Smoke, images: Images) -> None:
    done = smoke("--image", images.whole, "--scenario", "hang", "--limit", "5", "--stop", "1")
    (record,) = done.records.values()
    assert (done.status, record["status"], record["reason"]) == (3, "not-run", "TIMEOUT")


def test_a_container_that_somebody_removes_is_said(smoke: Smoke, images: Images) -> None:
    process = smoke.start("--image", images.whole, "--scenario", "hang")
    _read_until(process, "hanging")
    (container,) = smoke.containers()
    container.remove(force=True)
    done = smoke.finish(process)
    (record,) = done.records.values()
    assert (done.status, record["status"], record["reason"]) == (3, "not-run", "CONTAINER_GONE")


def test_without_an_engine_nothing_runs_and_the_record_says_so(smoke: Smoke, tmp_path: Path) -> None:
    done = smoke("--image", "some:1", address=f"unix://{tmp_path}/nowhere.sock")
    (record,) = done.records.values()
    assert (done.status, record["status"], record["reason"]) == (3, "not-run", "NO_ENGINE")
    assert "DOCKER_HOST" in done.body["error"]["hint"]


def test_an_engine_that_goes_away_in_the_middle_is_no_engine(smoke: Smoke, images: Images, tmp_path: Path) -> None:
    """Seen through a relay that is cut; the engine itself lives on, and with it our container, until we clean up."""
    relay = tmp_path / "relay.sock"
    cut = threading.Event()
    thread = threading.Thread(target=_relay, args=(relay, smoke.engine.address.removeprefix("unix://"), cut))
    thread.start()
    try:
        _wait_until(relay.exists)
        process = smoke.start("--image", images.whole, "--scenario", "hang", address=f"unix://{relay}")
        _read_until(process, "hanging")
    finally:
        cut.set()
        thread.join()
    done = smoke.finish(process)
    (record,) = done.records.values()
    assert (done.status, record["status"], record["reason"]) == (3, "not-run", "NO_ENGINE")
    for container in smoke.containers():  # found by its label, as the page says
        container.remove(force=True)


def _relay(path: Path, target: str, cut: threading.Event) -> None:
    """The engine's socket under another name, until it is cut."""
    import socket

    pairs: list[socket.socket] = []
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()
    server.settimeout(0.1)

    def pump(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    threads = []
    while not cut.is_set():
        with suppress(TimeoutError):
            near, _ = server.accept()
            near.settimeout(None)
            far = socket.socket(socket.AF_UNIX)
            far.connect(target)
            pairs += [near, far]
            for ends in ((near, far), (far, near)):
                threads.append(threading.Thread(target=pump, args=ends))
                threads[-1].start()
    path.unlink()
    server.close()
    for one in pairs:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
    for thread in threads:
        thread.join()
    for one in pairs:
        one.close()
