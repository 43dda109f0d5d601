"""What goes wrong with a real engine: interrupts, a lost engine, a full disk, missing packages, pins that move, secrets."""

from __future__ import annotations

import http.server
import json
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.http_servers import serving
from tests.images.conftest import ROOT, Image, build_image, command, load_records, tiny_tree
from tests.waiting import listens, wait_for
from tooling.edges import docker_engine
from tooling.edges.image_layers import CHUNK_BYTES, overlay_folders, read_archive, read_overlay_folder
from tooling.images.filesystem import merge_layers

pytestmark = [pytest.mark.docker, pytest.mark.timeout(300)]
QUICK = ("--offline", "--disk-gb", "0.1")


def _wait_for(log: Path, text: str) -> None:
    wait_for(lambda: log.exists() and text in log.read_text())


def _has(tag: str) -> bool:
    with docker_engine.connect() as client:
        return docker_engine.find_image(client, tag) is not None


def test_ctrl_c_leaves_no_image_and_a_record_that_says_so(base: str, tmp_path: Path) -> None:
    tree = tiny_tree(tmp_path / "slow", f"RUN echo begun {time.time()} && sleep 120")
    process = subprocess.Popen(command(tree, *QUICK), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    _wait_for(tree / "evidence" / "image-tiny.log", " begun ")
    process.send_signal(signal.SIGINT)
    text, _ = process.communicate(timeout=240)
    assert process.returncode == 130, text
    assert not _has("tiny-slow:1.2.3")
    assert (load_records(tree)["tiny"]["status"], load_records(tree)["tiny"]["reason"]) == ("not-run", "INTERRUPTED")


@contextmanager
def _proxy(path: Path) -> Iterator[threading.Event]:
    """The engine's socket under another name; setting the event cuts every connection and refuses new ones."""
    cut, pairs = threading.Event(), list[socket.socket]()
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()

    def pump(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = server.accept()
                real = socket.socket(socket.AF_UNIX)
                real.connect("/var/run/docker.sock")
                pairs.extend((client, real))
                for pair in ((client, real), (real, client)):
                    threading.Thread(target=pump, args=pair, daemon=True).start()

    def wait() -> None:
        cut.wait()
        for item in (server, *pairs):
            with suppress(OSError):
                item.shutdown(socket.SHUT_RDWR)
            item.close()

    threads = [threading.Thread(target=accept, daemon=True), threading.Thread(target=wait, daemon=True)]
    for thread in threads:
        thread.start()
    yield cut
    cut.set()
    threads[1].join()


def test_an_engine_that_stops_during_the_build_is_no_verdict_on_the_release(
    base: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tiny_tree(tmp_path / "lost", f"RUN echo begun {time.time()} && sleep 120")
    path = tmp_path_factory.mktemp("s") / "d.sock"
    with _proxy(path) as cut:
        monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
        process = subprocess.Popen(command(tree, *QUICK), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        _wait_for(tree / "evidence" / "image-tiny.log", " begun ")
        cut.set()
        text, _ = process.communicate(timeout=120)
    assert process.returncode == 3, text
    assert load_records(tree)["tiny"]["reason"] == "ENGINE_LOST", text


def test_a_full_disk_is_named_and_may_be_tried_again(image: Image, base: str, tmp_path: Path) -> None:
    done = image(tiny_tree(tmp_path / "full", "RUN cp /etc/passwd /dev/full"), *QUICK)
    assert (done.status, done.records["tiny"]["status"], done.records["tiny"]["reason"]) == (3, "not-run", "INFRA_DISK")


@pytest.fixture
def index(bridge: str) -> Iterator[str]:
    """An index on the engine's bridge that has no package at all; it asks for a password and never gets one wrong."""

    class Empty(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(404)
            self.end_headers()

        def log_message(self, *words: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer((bridge, 0), Empty)
    with serving(server):
        yield f"http://someone:hunter2@{bridge}:{server.server_port}/simple"


PIP = "apt-install python3 python3-pip ca-certificates"
SECRETS = "--mount=type=secret,id=pip_config --mount=type=secret,id=uv_config --mount=type=secret,id=ca_bundle"
STEP = "--mount=type=bind,source=docker/build-step.sh,target=/run/build-step.sh"


def test_an_index_that_has_no_such_package_is_a_finding(image: Image, base: str, index: str, tmp_path: Path) -> None:
    steps = (
        f"RUN {STEP} sh /run/build-step.sh {PIP}\n"
        f"RUN {STEP} {SECRETS} sh /run/build-step.sh python3 -m pip install --break-system-packages flashinfer-cubin==9.9"
    )
    (tmp_path / "pip.conf").write_text(f"[global]\nindex-url = {index}\n")
    done = image(
        tiny_tree(tmp_path / "absent", steps), "--disk-gb", "0.1", "--index-config", str(tmp_path / "pip.conf")
    )
    assert (done.status, done.records["tiny"]["status"]) == (4, "fail"), done.text
    assert done.records["tiny"]["reason"] == "PACKAGE_MISSING"
    assert "hunter2" not in done.text + json.dumps(done.records)
    assert "hunter2" not in (tmp_path / "absent" / "evidence" / "image-tiny.log").read_text()


def test_nothing_of_a_secret_stays_in_the_image(image: Image, base: str, index: str, tmp_path: Path) -> None:
    steps = (
        f"RUN {STEP} {SECRETS} sh /run/build-step.sh sh -c 'secret=$(printf hun%s ter2) && "
        'grep -q $secret "$PIP_CONFIG_FILE" && grep -q $secret "$UV_CONFIG_FILE" && grep -q $secret "$SSL_CERT_FILE"\'\n'
        "USER 10001"
    )
    (tmp_path / "pip.conf").write_text(f"[global]\nindex-url = {index}\n")
    (tmp_path / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\nhunter2\n-----END CERTIFICATE-----\n")
    tree = tiny_tree(tmp_path / "secret", steps)
    words = ("--index-config", str(tmp_path / "pip.conf"), "--ca-bundle", str(tmp_path / "ca.pem"))
    done = image(tree, *QUICK, *words)
    assert done.records["tiny"]["image_id"], done.text
    assert "CREDENTIALS" not in done.reasons("tiny")
    with docker_engine.connect() as client:
        before = b""
        for chunk in client.api.get_image("tiny-secret:1.2.3", chunk_size=CHUNK_BYTES):
            assert b"hunter2" not in before[-16:] + chunk
            before = chunk


def test_pins_that_change_during_the_build_are_told_and_the_record_names_the_old_ones(
    base: str, tmp_path: Path
) -> None:
    tree = tiny_tree(tmp_path / "moving", f"RUN echo begun {time.time()} && sleep 15")
    process = subprocess.Popen(command(tree, *QUICK), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    _wait_for(tree / "evidence" / "image-tiny.log", " begun ")
    (tree / "versions.json").write_text((tree / "versions.json").read_text().replace("1.2.3", "1.2.4"))
    text, _ = process.communicate(timeout=120)
    record = load_records(tree)["tiny"]
    assert "the pins changed during the build" in text
    assert record["flashinfer_version"] == "1.2.3"
    assert "PINS_MOVED" in {item["reason"] for item in record["findings"]}


@pytest.fixture
def registry(engine: None, tmp_path: Path) -> Iterator[str]:
    """A registry on loopback, which an engine trusts without certificates."""
    subprocess.run(["bash", str(ROOT / "ci/engine.sh"), "registry"], check=True, capture_output=True)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    config = tmp_path / "registry.yml"
    config.write_text(
        f"version: 0.1\nstorage: {{filesystem: {{rootdirectory: {tmp_path}/registry}}}}\nhttp: {{addr: 127.0.0.1:{port}}}\n"
    )
    process = subprocess.Popen(
        ["docker-registry", "serve", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    wait_for(lambda: listens("127.0.0.1", port))
    yield f"127.0.0.1:{port}"
    process.terminate()
    process.wait(10)


PASSING = (
    "RUN mkdir -p /x/site-packages/flashinfer_python-1.2.3.dist-info && "
    "printf 'Name: flashinfer-python\\nVersion: 1.2.3\\n' > /x/site-packages/flashinfer_python-1.2.3.dist-info/METADATA && "
    "ln -s /bin/true /usr/bin/ninja\n"
    "ENV HOME=/tmp\nUSER 10001"
)


def test_an_image_is_pushed_once_it_is_proved_and_only_then(
    image: Image, base: str, registry: str, tmp_path: Path
) -> None:
    name = f"{registry}/tiny"
    good = tiny_tree(tmp_path / "good", PASSING, repository=name)
    done = image(good, *QUICK, "--push")
    assert (done.status, done.records["tiny"]["status"]) == (0, "pass"), done.text
    assert str(done.records["tiny"]["manifest_digest"]).startswith("sha256:")
    bad = tiny_tree(tmp_path / "bad", "USER root", repository=f"{registry}/other")
    assert image(bad, *QUICK, "--push").status == 4
    listed = json.loads(urllib.request.urlopen(f"http://{registry}/v2/_catalog").read())
    assert listed == {"repositories": ["tiny"]}
    derived = tiny_tree(tmp_path / "derived", "USER 10001", base=f"{name}:1.2.3")
    missing = tiny_tree(tmp_path / "missing", "USER 10001", base=f"{name}:9.9.9")
    subprocess.run(["docker", "rmi", f"{name}:1.2.3"], check=True, capture_output=True)
    found = [image(tree, "--doctor", "--disk-gb", "0.1").text for tree in (derived, missing)]
    assert "its registry has it" in found[0]
    assert f"the base image {name}:9.9.9 is in no engine or registry here" in found[1]


def test_both_ways_of_reading_an_image_see_the_same(base: str, tmp_path: Path) -> None:
    tag = build_image(
        tmp_path,
        f"FROM {base}\nRUN mkdir -p /a/b /c && echo 1 > /a/b/one && echo 2 > /c/two && ln /c/two /c/three && ln -s /c /d\n"
        "RUN rm -r /a/b && mkdir /a/b && echo 3 > /a/b/new && rm /c/two && chown 1000:1000 /c && chmod 750 /c\n"
        "RUN mkdir -p /x/site-packages/p-1.dist-info && printf 'Name: p\\nVersion: 1\\n' > /x/site-packages/p-1.dist-info/METADATA\n",
        "pin-pipeline-layers:test",
    )  # fmt: skip
    with docker_engine.connect() as client:
        folders = overlay_folders(client.images.get(tag).attrs)
        assert folders is not None, "the engine of CI keeps its layers in overlay2, and CI is root"
        direct = merge_layers([read_overlay_folder(folder) for folder in folders])
        archived = merge_layers(read_archive(client.api.get_image(tag, chunk_size=CHUNK_BYTES)))
    assert set(direct.entries) == set(archived.entries)
    different = [
        path for path, entry in direct.entries.items() if entry != archived.entries[path] and entry.kind != "other"
    ]
    assert [path for path in different if direct.entries[path].kind != "folder"] == []
    assert "a/b/new" in direct.entries
    assert {"a/b/one", "c/two"}.isdisjoint(direct.entries)
