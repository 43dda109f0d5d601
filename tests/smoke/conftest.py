"""An engine that gives GPUs, images, and calls of `tooling smoke --image` in a copy of the package."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import docker
from tests.images.conftest import engine as engine  # noqa: PLC0414  # installs the engine's program
from tests.smoke.gpu_engine import (
    GpuEngine,
    add_files,
    make_python_image,
    packaging_files,
    running_engine,
    stand_ins,
)
from tests.trees import commit_all
from tooling.edges.smoke_container import LABEL

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Images:
    """Tags: a whole one, and those that lack something."""

    whole: str
    no_python: str
    closed_python: str
    other_machine: str
    no_packaging: str
    no_torch: str
    no_flashinfer: str
    old_python: str


@pytest.fixture(scope="session")
def gpu_engine(engine: None) -> Iterator[GpuEngine]:
    with running_engine() as running:
        yield running


@pytest.fixture(scope="session")
def client(gpu_engine: GpuEngine) -> Iterator[Any]:
    made = docker.DockerClient(base_url=gpu_engine.address)
    yield made
    made.close()


@pytest.fixture(scope="session")
def images(client: Any) -> Images:
    python = make_python_image(client, "smoke-python")
    packaged = add_files(client, python, "smoke-packaged", packaging_files())
    all_of, empty = stand_ins(), _import_empty(client)
    foreign = b"\x7fELF" + b"\0" * 100
    old = b"import sys\nsys.version_info = (3, 8, 10, 'final', 0)\n"
    return Images(
        whole=add_files(client, packaged, "smoke-whole", all_of),
        no_python=empty,
        closed_python=add_files(client, empty, "smoke-closed", {"usr/bin/python3": b"\x7fELF"}, mode=0o644),
        other_machine=add_files(client, empty, "smoke-other", {"usr/bin/python3": foreign, "bin/sh": foreign}),
        no_packaging=python,
        no_torch=packaged,
        no_flashinfer=add_files(client, packaged, "smoke-torch", {k: v for k, v in all_of.items() if "/torch" in k}),
        old_python=add_files(client, packaged, "smoke-old", {f"{_site()}/sitecustomize.py": old}),
    )


def _site() -> str:
    return f"usr/local/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"


def _import_empty(client: Any) -> str:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("empty"))
    client.api.import_image_from_data(packed.getvalue(), repository="smoke-empty", tag="1")
    return "smoke-empty:1"


@dataclass(frozen=True, slots=True)
class Done:
    """One call: its exit status, both streams, the JSON object, and the records by file name."""

    status: int
    text: str
    body: dict[str, Any]
    records: dict[str, dict[str, Any]]


@dataclass(slots=True)
class Smoke:
    """Calls the copy's `tooling smoke` in a tree, as a person would."""

    tree: Path
    package_home: Path
    engine: GpuEngine
    client: Any

    def start(self, *words: str, address: str | None = None) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "tooling", "smoke", "--json", "--root", str(self.tree), *words],
            cwd=self.package_home, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "DOCKER_HOST": address or self.engine.address, "PYTHONPATH": str(self.package_home)},
        )  # fmt: skip

    def finish(self, process: subprocess.Popen[str]) -> Done:
        out, err = process.communicate(timeout=240)
        return Done(process.returncode, err, json.loads(out) if out else {}, self.records())

    def __call__(self, *words: str, address: str | None = None) -> Done:
        return self.finish(self.start(*words, address=address))

    def records(self) -> dict[str, dict[str, Any]]:
        return {path.name: json.loads(path.read_text()) for path in (self.tree / "evidence").glob("*.json")}

    def containers(self) -> list[Any]:
        found: list[Any] = self.client.containers.list(all=True, filters={"label": LABEL})
        return found


@pytest.fixture(scope="session")
def package_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of this package in which the smoke does what a test says; what goes into containers is the copy."""
    home = tmp_path_factory.mktemp("package")
    shutil.copytree(ROOT / "tooling", home / "tooling", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "tests" / "smoke" / "inner_smoke.py", home / "tooling" / "commands" / "smoke.py")
    cli = home / "tooling" / "cli.py"
    text = cli.read_text()
    if '"smoke":' not in text:
        cli.write_text(text.replace("COMMANDS = {\n", 'COMMANDS = {\n    "smoke": "run on a GPU",\n'))
    return home


@pytest.fixture
def pinned_tree(tmp_path: Path) -> Path:
    return make_pinned_tree(tmp_path)


def make_pinned_tree(folder: Path) -> Path:
    """A committed tree with pins, and with a file that is no container's business."""
    tree = folder / "tree"
    (tree / "requirements").mkdir(parents=True)
    (tree / "versions.json").write_text('{"variable": {"FLASHINFER_VERSION": {"default": "0.6.13"}}}\n')
    (tree / "requirements" / "cuda.txt").write_text("flashinfer-python==0.6.13\n")
    (tree / "secret.txt").write_text("not for the container\n")
    commit_all(tree, "pins")
    return tree


@pytest.fixture
def smoke(pinned_tree: Path, package_home: Path, gpu_engine: GpuEngine, client: Any) -> Iterator[Smoke]:
    made = Smoke(pinned_tree, package_home, gpu_engine, client)
    yield made
    gpu_engine.forget()
    assert made.containers() == []
