"""Both Dockerfiles are built for real, against the real index, and what is inside is proved; a bump leaves torch cached."""

from __future__ import annotations

import io
import json
import shutil
import socket
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.images.conftest import CERTIFICATES, LABEL, WHOLE_GB, Done, Image, build_image, copy_checkout
from tests.trees import commit_all
from tests.waiting import listens, wait_for
from tooling.edges import docker_engine
from tooling.edges.index import IndexClient
from tooling.edges.pip_config import load_index_settings
from tooling.pins.versions import parse_versions

pytestmark = [pytest.mark.docker, pytest.mark.timeout(1500)]
ANOTHER = {"0.6.13": "0.6.12"}
"""What a bump moves to: a neighbour whose cubin wheel is on the public index as well."""


@pytest.fixture(scope="session")
def options(base: str) -> list[str]:
    return [
        "--base-image",
        base,
        "--ca-bundle",
        str(CERTIFICATES),
        "--set",
        f"*.labels.{LABEL}=built",
        "--disk-gb",
        "8",
    ]


@pytest.fixture(scope="session")
def room(engine: None) -> list[str]:
    """Nothing where the disk has room for CUDA torch; else the one override that leaves it out and changes nothing else."""
    with docker_engine.connect() as client:
        _, free = docker_engine.free_disk(client)
    free_gb = (free or 0) / 1e9
    return [] if free_gb >= WHOLE_GB else ["--set", "release.args.WITHOUT_PACKAGES=torch"]


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_checkout(tmp_path_factory.mktemp("release") / "tree")


@pytest.fixture(scope="session")
def version(tree: Path) -> str:
    return parse_versions((tree / "versions.json").read_text())["FLASHINFER_VERSION"]


@pytest.fixture(scope="session")
def release(image: Image, tree: Path, options: list[str], room: list[str]) -> Done:
    return image(tree, "release", *options, *room)


@pytest.fixture(scope="session")
def tag(release: Done) -> str:
    assert release.status == 0, release.text[-3000:]
    return str(release.records["release"]["measurements"]["tags"][0])


def test_the_release_target_is_built_and_proved(
    release: Done, room: list[str], version: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with capsys.disabled():
        print(f"\nrelease target: {'without CUDA torch, the disk is short' if room else 'whole'}")
    assert release.status == 0, release.text[-3000:]
    record = release.records["release"]
    assert (record["status"], record["reason"], record["flashinfer_version"]) == ("pass", None, version)
    assert record["image_id"].startswith("sha256:")
    measured = record["measurements"]
    assert measured["nvcc"] == "13.0"
    assert measured["versions"]["flashinfer-python"] == measured["versions"]["flashinfer-cubin"] == version
    assert ("torch" in measured["versions"]) is not bool(room)
    assert measured["size_bytes"] > 2e9
    assert len(measured["layers"]) > 5
    assert f"*.labels.{LABEL}=built" in measured["overrides"]


def test_its_labels_tell_where_it_came_from(tag: str, tree: Path, version: str, release: Done) -> None:
    commit = subprocess.run(["git", "-C", str(tree), "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    with docker_engine.connect() as client:
        labels = docker_engine.load_config(client, tag).labels
    assert labels["org.opencontainers.image.version"] == f"{version}-cu13.0.2"
    assert labels["org.opencontainers.image.revision"] == commit.stdout.strip()
    assert labels["org.opencontainers.image.created"].endswith("Z")
    assert labels["io.flashinfer-pin-pipeline.pins-sha256"] == release.records["release"]["pins_sha256"]


BROKEN = {
    "a stale cubin of the base image": (
        ("USER root\nRUN mkdir -p /usr/lib/python3/dist-packages/flashinfer_cubin-0.6.8.post1.dist-info && "
        "printf 'Name: flashinfer-cubin\\nVersion: 0.6.8.post1\\n' "
        "> /usr/lib/python3/dist-packages/flashinfer_cubin-0.6.8.post1.dist-info/METADATA\nUSER 10001\n"),
        "IMAGE_SKEW",
    ),
    "an ENV over the ARG": ("ENV FLASHINFER_VERSION=0.6.1\n", "ENV_OVER_ARG"),
    "a bypass variable": ("ENV FLASHINFER_DISABLE_VERSION_CHECK=1\n", "BYPASS"),
    "root": ("USER root\n", "ROOT_USER"),
    "credentials in a layer that a later one hides": (
        ("RUN printf 'machine index.invalid login me password hunter2\\n' > /home/engine/.netrc\n"
        "RUN rm /home/engine/.netrc\n"),
        "CREDENTIALS",
    ),
    "credentials in the history": ("RUN echo https://me:hunter2@index.invalid/simple > /dev/null\n", "CREDENTIALS"),
    "no nvcc": ("USER root\nRUN rm /usr/local/cuda/bin/nvcc\nUSER 10001\n", "NO_NVCC"),
    "a cache folder of root's": ("USER root\nRUN chown -R 0:0 /home/engine && chmod -R go-w /home/engine\nUSER 10001\n",
                                 "CACHE_NOT_WRITABLE"),
}  # fmt: skip


@pytest.mark.parametrize(("steps", "reason"), BROKEN.values(), ids=BROKEN.keys())
def test_an_image_broken_on_purpose_is_found(
    image: Image, tree: Path, tag: str, tmp_path: Path, steps: str, reason: str
) -> None:
    broken = build_image(tmp_path, f"FROM {tag}\n{steps}", f"pin-pipeline-broken:{reason.lower().replace('_', '-')}")
    done = image(tree, "--verify", broken, "--evidence", str(tmp_path / "evidence"))
    record = json.loads((tmp_path / "evidence" / "image-release.json").read_text())
    assert done.status == 4, done.text
    assert {item["reason"] for item in record["findings"] if item["severity"] == "error"} == {reason}
    assert "hunter2" not in done.text + json.dumps(record)


@pytest.fixture(scope="session")
def bumped(
    image: Image, release: Done, tree: Path, version: str, options: list[str], room: list[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Done:  # fmt: skip
    moved = tmp_path_factory.mktemp("bumped") / "tree"
    shutil.copytree(tree, moved, ignore=shutil.ignore_patterns("evidence"))
    for name in ("versions.json", "requirements/cuda.txt", "docker/Dockerfile", "docker/Dockerfile.nightly_torch"):
        path = moved / name
        path.write_text(path.read_text().replace(version, ANOTHER.get(version, "0.6.13")))
    commit_all(moved, "bump")
    return image(moved, "release", *options, *room)


def test_a_bump_rebuilds_flashinfers_layers_only(
    release: Done, bumped: Done, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bumped.status == 0, bumped.text[-3000:]
    before, after = (done.records["release"]["measurements"] for done in (release, bumped))
    cold, again = float(before["build_seconds"]), float(after["build_seconds"])
    with capsys.disabled():
        print(
            f"\nfirst build {cold:.0f} s ({before['steps_cached']} steps cached), after a bump {again:.0f} s: {again / cold:.2f}"
        )
    layers = list(zip(before["layers"], after["layers"], strict=True))
    changed = [number - len(layers) for number, (one, other) in enumerate(layers) if one != other]
    rebuilt = [name for name in after["step_seconds"] if not name.startswith("[pins")]
    assert changed == [-3, -2], "FlashInfer's lines and FlashInfer, below the empty layer of the folder to work in"
    assert all(name.startswith("[release") for name in rebuilt), rebuilt


def test_an_image_of_another_pin_is_found(image: Image, tree: Path, bumped: Done, tmp_path: Path, version: str) -> None:
    other = bumped.records["release"]["measurements"]["tags"][0]
    done = image(tree, "--verify", other, "--evidence", str(tmp_path))
    assert done.status == 4
    assert f"the pin is {version}" in done.text
    assert "is of other pins than this tree's" in done.text


@pytest.fixture(scope="session")
def repository(version: str, bridge: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """FlashInfer's published source as a tagged git repository, served to builds over the engine's own bridge."""
    folder = tmp_path_factory.mktemp("git")
    with IndexClient(load_index_settings()) as index:
        files = [file for page in index.fetch_project("flashinfer-python") for file in page.files]
        (source,) = [file for file in files if file.filename == f"flashinfer_python-{version}.tar.gz"]
        archive = index.http.fetch(source.url).body
    with tarfile.open(fileobj=io.BytesIO(archive)) as sources:
        sources.extractall(folder / "unpacked", filter="data")
    (tree,) = (folder / "unpacked").iterdir()
    # The git tree has this file; the archive has what was made from it.
    (tree / "version.txt").write_text(f"{version}\n")
    for words in (["init", "-q", "-b", "main"], ["add", "-A", "-f"]):
        subprocess.run(["git", "-C", str(tree), *words], check=True)
    commit_all(tree, "the published source")
    subprocess.run(["git", "-C", str(tree), "tag", f"v{version}"], check=True)
    with socket.create_server((bridge, 0)) as probe:
        port = probe.getsockname()[1]
    daemon = subprocess.Popen(
        [
            "git",
            "daemon",
            "--export-all",
            f"--base-path={tree.parent}",
            f"--listen={bridge}",
            f"--port={port}",
            "--reuseaddr",
        ],
        stderr=subprocess.DEVNULL,
    )
    wait_for(lambda: listens(bridge, port))
    yield f"git://{bridge}:{port}/{tree.name}"
    daemon.terminate()
    daemon.wait(10)


def test_the_nightly_target_builds_flashinfer_from_its_tag(
    image: Image, tree: Path, options: list[str], repository: str, version: str, release: Done
) -> None:
    torch = release.records["release"]["measurements"]["versions"].get("torch", "2.11.0")
    overrides = {"TORCH_NIGHTLY_INDEX": "", "TORCH_NIGHTLY": f"torch=={torch}", "FLASHINFER_GIT_URL": repository}
    words = [word for name, value in overrides.items() for word in ("--set", f"nightly.args.{name}={value}")]
    done = image(tree, "nightly", *options, *words)
    assert done.status == 0, done.text[-3000:]
    measured = done.records["nightly"]["measurements"]
    assert measured["versions"]["flashinfer-python"] == measured["versions"]["flashinfer-cubin"] == version
    assert "is recorded, not compared" in done.text


def test_the_next_build_is_proved_from_the_cache_whatever_the_environment_says(
    image: Image, tree: Path, options: list[str], room: list[str], release: Done
) -> None:
    done = image(tree, "release", *options, *room, env={"FLASHINFER_VERSION": "9.9.9"})
    assert done.status == 0, done.text[-3000:]
    assert "the environment's FLASHINFER_VERSION=9.9.9 is taken out" in done.text
    assert done.records["release"]["measurements"]["steps_run"] == 0
    assert done.records["release"]["image_id"] == release.records["release"]["image_id"]
