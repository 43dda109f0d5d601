"""A real engine, a base image that stands for the CUDA base, copies of this checkout, and calls of the command."""

from __future__ import annotations

import ipaddress
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.trees import commit_all

ROOT = Path(__file__).resolve().parents[2]
BASE = "pin-pipeline-base:test"
LABEL = "io.github.flashinfer-pins.test"
CERTIFICATES = Path(os.environ.get("SSL_CERT_FILE") or "/etc/ssl/certs/ca-certificates.crt")
WHOLE_GB = 45
"""Two release images that share their lower layers, a nightly one, and the build's caches took 30 GB; some is spare."""


@dataclass(frozen=True, slots=True)
class Done:
    """One call of `tooling image`: its exit status, what people read, and its records by target."""

    status: int
    text: str
    records: dict[str, dict[str, Any]]

    def reasons(self, target: str) -> set[str]:
        return {item["reason"] for item in self.records[target]["findings"] if item["severity"] == "error"}


Image = Callable[..., Done]


@pytest.fixture(scope="session")
def engine() -> Iterator[None]:
    """An engine that answers. One that cannot be brought up fails the tests that were asked for; they never skip."""
    script = ROOT / "ci" / "engine.sh"
    done = subprocess.run(["bash", str(script), "up"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.fail(f"ci/engine.sh up ended with {done.returncode}: {done.stderr[-2000:]}", pytrace=False)
    yield
    if not os.environ.get("KEEP_TEST_IMAGES"):
        subprocess.run(["bash", str(script), "tidy"], check=True, capture_output=True)


@pytest.fixture(scope="session")
def base(engine: None) -> str:
    """Debian with nvcc 13.0 and somebody with uid 1000, made once and kept for the next run."""
    done = subprocess.run(
        ["bash", str(ROOT / "ci/engine.sh"), "base", BASE], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.fail(f"ci/engine.sh base ended with {done.returncode}: {done.stderr[-2000:]}", pytrace=False)
    return BASE


@pytest.fixture(scope="session")
def bridge(engine: None) -> str:
    """This machine's address on the engine's bridge, which build steps reach."""
    words = ["docker", "network", "inspect", "bridge", "--format", "{{json .IPAM.Config}}"]
    (config, *_) = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    return config.get("Gateway") or str(next(ipaddress.ip_network(config["Subnet"]).hosts()))


@pytest.fixture(scope="session")
def image() -> Image:
    """Calls `tooling image` in a tree, as a person would; `env` is added to the environment."""

    def call(tree: Path, *words: str, env: dict[str, str] | None = None) -> Done:
        done = subprocess.run(
            command(tree, *words), capture_output=True, text=True, check=False, env={**os.environ, **(env or {})}
        )
        return Done(done.returncode, done.stdout + done.stderr, load_records(tree))

    return call


def command(tree: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "tooling", "image", "--root", str(tree), *words]


def load_records(tree: Path) -> dict[str, dict[str, Any]]:
    paths = (tree / "evidence").glob("image-*.json")
    return {path.stem.removeprefix("image-"): json.loads(path.read_text()) for path in paths}


def copy_checkout(target: Path) -> Path:
    """This checkout's files that a build and the command read, committed in a repository of their own."""
    for name in ("versions.json", "requirements", "docker", ".dockerignore", "release.toml"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name)
        elif source.exists():
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)
    commit_all(target, "the checkout")
    return target


def tiny_tree(target: Path, steps: str, *, base: str = BASE, version: str = "1.2.3", repository: str = "") -> Path:
    """A tree whose one target `tiny` is the base with those steps: seconds to build, and a proof that finds much."""
    files = {
        "versions.json": json.dumps({"variable": {"FLASHINFER_VERSION": {"default": version}}}, indent=2) + "\n",
        "docker/docker-bake.hcl": (
            'target "tiny" {\n  dockerfile = "docker/Dockerfile"\n  args = { FLASHINFER_VERSION = FLASHINFER_VERSION }\n'
            f'  tags = ["{repository or f"tiny-{target.name.lower()}"}:${{FLASHINFER_VERSION}}"]\n  labels = {{ "{LABEL}" = "built" }}\n}}\n'
        ),
        "docker/Dockerfile": f"ARG FLASHINFER_VERSION={version}\nFROM {base}\nARG FLASHINFER_VERSION\n{steps}\n",
    }
    for path, text in files.items():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_text(text)
    shutil.copy2(ROOT / "docker" / "build-step.sh", target / "docker" / "build-step.sh")
    commit_all(target, "tiny")
    return target


def build_image(folder: Path, dockerfile: str, tag: str, *words: str) -> str:
    """An image of a Dockerfile's text, by buildx itself; returns the tag."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "Dockerfile").write_text(dockerfile)
    labelled = ["--label", f"{LABEL}=built", "--tag", tag, "--load", *words, str(folder)]
    subprocess.run(["docker", "buildx", "build", *labelled], check=True, capture_output=True)
    return tag
