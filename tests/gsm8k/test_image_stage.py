"""The stage against a server in a container of a real Docker engine."""

from __future__ import annotations

import gc
import io
import json
import sys
import tarfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import docker
from tests.gsm8k.test_stage import SERVER, Stage
from tooling.edges.serving.container import LABEL

PYTHON = str(Path(sys.executable).resolve())
PLACES = ("/usr", "/lib", "/lib64", sys.base_prefix, str(Path(SERVER).parent))
"""What Python needs from this machine, mounted: the image itself is empty, so that nothing has to be pulled."""


@pytest.fixture(scope="module")
def engine() -> Iterator[Any]:
    client = docker.from_env()
    yield client
    client.close()


@pytest.fixture(scope="module")
def image(engine: Any) -> Iterator[str]:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        note = tarfile.TarInfo("empty")
        tar.addfile(note)
    name = f"gsm8k-test-{uuid.uuid4().hex[:8]}"
    engine.api.import_image_from_data(packed.getvalue(), repository=name, tag="1")
    yield f"{name}:1"
    engine.images.remove(f"{name}:1", force=True)


@pytest.fixture
def stage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Stage:
    return Stage(tmp_path, capsys)


def run(stage: Stage, image: str, *options: str, words: tuple[str, ...] = (), **values: object) -> int:
    mounts = [f"{place}:{place}:ro" for place in dict.fromkeys(PLACES) if Path(place).exists()]
    mounts.append(f"{stage.root}:{stage.root}")
    return stage.run(
        "--image", image, *words,
        server_command=[PYTHON, SERVER, "--port", "{port}", "--answers", str(stage.answers), *options],
        mounts=mounts,
        **values,
    )  # fmt: skip


def containers(engine: Any) -> list[str]:
    return [container.id for container in engine.containers.list(all=True, filters={"label": LABEL})]


@pytest.mark.docker
def test_an_images_server_is_evaluated_twice_and_the_image_is_named(stage: Stage, image: str, engine: Any) -> None:
    package = stage.root / "site/flashinfer_python-0.6.13.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: flashinfer-python\nVersion: 0.6.13\n")
    env = {"PATH": f"{sys.base_prefix}/bin:/usr/bin", "PYTHONPATH": str(package.parent)}
    assert run(stage, image, "--say", "hello from inside", words=("--restarts", "1"), env=env) == 0, stage.text
    record = stage.record
    assert record["image_id"] == engine.images.get(image).id
    server = record["measurements"]["server"]
    assert (server["kind"], server["image"], server["image_id"]) == ("image", image, record["image_id"])
    assert server["flashinfer_version"] == "0.6.13"
    assert server["flashinfer_known_by"] == "package metadata in the container"
    assert [each["accuracy"] for each in record["measurements"]["runs"]] == [1.0, 1.0]
    log = (stage.root / "evidence/gsm8k-c.server.log").read_text()
    assert log.count("hello from inside") == 2
    assert containers(engine) == []


@pytest.mark.docker
def test_a_restart_is_over_the_containers_own_files(stage: Stage, image: str, engine: Any) -> None:
    """The cache lies in the container: a second container would be cold again."""
    second = stage.root / "second.json"
    second.write_text(json.dumps(dict.fromkeys(json.loads(stage.answers.read_text()), "#### 0")))
    serve = f"exec {PYTHON} {SERVER} --port {{port}} --answers"
    script = f"test -e /tuned && {serve} {second}; echo > /tuned; {serve} {stage.answers}"
    mounts = [f"{place}:{place}:ro" for place in (*dict.fromkeys(PLACES), "/bin") if Path(place).exists()]
    mounts.append(f"{stage.root}:{stage.root}:ro")
    command = ["/bin/sh", "-c", script]
    assert stage.run("--image", image, "--restarts", "1", server_command=command, mounts=mounts) == 4
    assert [each["accuracy"] for each in stage.record["measurements"]["runs"]] == [1.0, 0.0]
    assert containers(engine) == []


@pytest.mark.docker
def test_a_crash_in_a_container_is_told_like_any_other(stage: Stage, image: str, engine: Any) -> None:
    assert run(stage, image, "--fault", "kill", "--after", "10") == 4
    assert stage.record["reason"] == "SERVER_DIED"
    assert "SIGKILL" in stage.first_run["detail"]
    assert run(stage, image, "--no-such-option") == 4
    assert stage.record["reason"] == "SERVER_CRASHED"
    assert "exited with code 2" in stage.first_run["detail"]
    assert "unrecognized arguments: --no-such-option" in stage.first_run["cause"]
    assert containers(engine) == []


@pytest.mark.docker
def test_a_program_that_the_image_lacks_is_said(stage: Stage, image: str, engine: Any) -> None:
    assert stage.run("--image", image, server_command=["no-such-engine", "{port}"]) == 4
    assert stage.record["reason"] == "SERVER_CRASHED"
    assert "no-such-engine" in stage.first_run["cause"]
    assert containers(engine) == []


@pytest.mark.docker
def test_an_image_that_the_engine_lacks_is_bad_input(stage: Stage, engine: Any) -> None:
    assert stage.run("--image", "no-such-image:1") == 2
    assert not (stage.root / "evidence/gsm8k-c.json").exists()


# docker's own client forgets the socket of a connection that is refused.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_without_an_engine_nothing_can_be_said(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{stage.root}/nowhere.sock")
    assert stage.run("--image", "some:1") == 3
    assert stage.record["reason"] == "NO_ENGINE"
    gc.collect()
