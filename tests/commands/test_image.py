"""`image` on machines without docker: the plan, the lint, and input that is refused before anything happens."""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from tests.gate.samples import LAYERS, make_record
from tests.http_servers import serving
from tests.images.conftest import copy_checkout
from tests.trees import snapshot
from tooling.cli import main
from tooling.commands import image as image_command
from tooling.commands.image_inputs import is_derived
from tooling.commands.terminal import Terminal
from tooling.edges import buildx
from tooling.edges.evidence_files import write_record
from tooling.evidence import Record
from tooling.images.bake_command import BuildOptions
from tooling.images.facts import ImageConfig
from tooling.images.labels import TARGET_LABEL, labelled_target
from tooling.images.plan import BuildTarget

if TYPE_CHECKING:
    from tooling.commands.image_build import Job


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of this checkout, where no docker is to be found."""
    found = copy_checkout(tmp_path / "tree")
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    return found


def _add_client(folder: Path, script: str) -> None:
    (folder / "docker").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "docker").chmod(0o755)


@pytest.fixture
def engine_without_images() -> Iterator[str]:
    """The address of what answers as a Docker engine does that has no image."""

    class Engine(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = {"version": {"Version": "28.0.0", "ApiVersion": "1.44"}, "info": {"DockerRootDir": "/nowhere"}}
            name = self.path.partition("?")[0].rpartition("/")[2]
            body = b"OK" if name == "_ping" else json.dumps(known.get(name, {"message": "No such image"})).encode()
            self.send_response(200 if name == "_ping" or name in known else 404)
            self.send_header("Content-Type", "text/plain" if name == "_ping" else "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Engine)
    with serving(server):
        yield f"tcp://127.0.0.1:{server.server_port}"


def _call(capsys: pytest.CaptureFixture[str], tree: Path, *words: str) -> tuple[int, dict[str, Any], str]:
    status = main(["image", "--root", str(tree), "--json", *words])
    captured = capsys.readouterr()
    return status, json.loads(captured.out), captured.err


def test_the_plan_takes_the_environments_pins_out_and_says_so(
    tree: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLASHINFER_VERSION", "9.9.9")
    status, report, text = _call(capsys, tree, "--plan")
    assert status == 0
    assert "the environment's FLASHINFER_VERSION=9.9.9 is taken out" in text
    assert {target["name"] for target in report["plan"]} == {"release", "nightly"}
    assert "9.9.9" not in json.dumps(report)


def test_the_plan_of_a_client_that_hangs_is_our_own_reading_and_that_is_said(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sleep = shutil.which("sleep", path=os.defpath)
    _add_client(tmp_path / "empty", f"{sleep} 1000; exit 1")
    monkeypatch.setattr(buildx, "LOCAL_TIMEOUT_S", 0.5)
    status, report, text = _call(capsys, tree, "--plan", "release")
    assert (status, report["plan_source"]) == (0, "static")
    assert "`docker buildx bake` did not answer within 0.5 s" in text
    assert "our own reading of the bake file (static)" in text


def test_a_doctor_without_buildx_blames_no_registry(
    tree: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    engine_without_images: str,
) -> None:
    _add_client(tmp_path / "empty", "echo \"docker: 'buildx' is not a docker command.\" >&2; exit 1")
    monkeypatch.setenv("DOCKER_HOST", engine_without_images)
    (tmp_path / "pip.conf").write_text("[global]\nindex-url = http://127.0.0.1:1/simple\n")
    status, report, text = _call(capsys, tree, "release", "--doctor", "--index-config", str(tmp_path / "pip.conf"))
    assert status == 3
    outcomes = {check["name"].partition(" ")[0]: check["outcome"] for check in report["checks"]}
    assert outcomes == {
        "buildx": "problem", "engine": "ok", "disk": "not checked", "base": "not checked", "index": "problem",
    }  # fmt: skip
    assert "only buildx could ask its registry" in text
    assert "--index-config FILE names another index, --offline asks none" in text
    assert "bump" not in text


def test_a_bake_file_that_ignores_a_pin_is_refused_before_the_build(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tree / "docker" / "docker-bake.hcl"
    path.write_text(path.read_text().replace("    FLASHINFER_VERSION = FLASHINFER_VERSION\n", ""))
    status, report, _ = _call(capsys, tree, "release")
    assert status == 4
    assert [item["reason"] for item in report["findings"]] == ["INERT_VARIABLE"]
    assert _call(capsys, tree, "--lint")[0] == 4


def test_this_checkout_passes_its_own_lint(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, report, _ = _call(capsys, tree, "--lint")
    assert (status, report["findings"]) == (0, [])


BAD = {
    "no such target": (["nosuch"], "no target nosuch"),
    "no index file": (["--index-config", "missing.conf"], "--index-config missing.conf: cannot be read"),
    "no certificates": (["--ca-bundle", "tree/versions.json"], "holds no PEM certificate"),
    "no bake file": (["--bake-file", "other.hcl"], "expected other.hcl"),
    "two modes": (["--plan", "--doctor"], "not allowed with argument"),
    "override": (["--set", "nonsense"], "expected TARGET.KEY=VALUE"),
    "build context": (["--build-context", "x"], "expected NAME=PATH"),
    "verify an unknown target": (["--verify", "x:y", "frob"], "no target frob; there are release, nightly"),
    "lint an unknown target": (["--lint", "frob"], "no target frob; there are release, nightly"),
    "verify two": (["--verify", "x:y", "release", "nightly"], "takes one TARGET at most"),
    "verify no name": (["--verify", "bad name!"], "argument --verify: found 'bad name!', expected an image"),
    "base of no name": (["--base-image", "bad name!"], "argument --base-image: found 'bad name!', expected an image"),
    "no number": (["--disk-gb", "nan"], "argument --disk-gb: found 'nan', expected a number of gigabytes"),
    "endless": (["--disk-gb", "inf"], "argument --disk-gb: found 'inf'"),
    "less than nothing": (["--disk-gb", "-4"], "argument --disk-gb: found '-4'"),
    "no unit": (["--disk-gb", "20GB"], "argument --disk-gb: found '20GB'"),
    "a platform too few": (["--platform", "linux/amd64,"], "argument --platform: found an empty text"),
    "mirror with a password": (["--apt-mirror", "http://me:hunter2@mirror/ubuntu"], "holds credentials"),
}


@pytest.mark.parametrize(("words", "message"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused_in_one_sentence_and_nothing_is_written(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    words: list[str], message: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    before = snapshot(tree)
    status, report, text = _call(capsys, tree, *words)
    assert status == 2
    assert message in report["error"]["message"]
    assert (report["status"], report["records"]) == ("error", [])
    assert "hunter2" not in text + json.dumps(report)
    assert snapshot(tree) == before
    assert not (tree / "evidence").exists()


def test_a_build_that_cannot_start_lists_a_record_of_every_target(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, report, text = _call(capsys, tree)
    assert (status, report["status"], report["error"]["reason"]) == (3, "not-run", "TOOL_MISSING")
    assert [(record["subject"], record["status"]) for record in report["records"]] == [
        ("release", "not-run"), ("nightly", "not-run"),
    ]  # fmt: skip
    assert "release: not-run" in text


OPTIONS = ("--verify", "--bake-file", "--disk-gb", "--base-image", "--build-context", "--index-config", "--ca-bundle",
           "--apt-mirror", "--set", "--platform", "--builder", "--cache-to", "--cache-from", "--provenance", "--sbom")  # fmt: skip


@pytest.mark.parametrize("words", [[name, text] for name in OPTIONS for text in ("", " ")] + [[""]], ids=repr)
def test_a_text_that_is_empty_starts_no_build(tree: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    status, report, _ = _call(capsys, tree, *words)
    assert (status, report["error"]["reason"]) == (2, "BAD_ARGUMENTS")
    assert not (tree / "evidence").exists()


@pytest.mark.parametrize(("name", "text"), [("versions.json", "{"), ("docker/docker-bake.hcl", "target {")])
def test_a_broken_file_is_named(tree: Path, capsys: pytest.CaptureFixture[str], name: str, text: str) -> None:
    (tree / name).write_text(text)
    status, report, _ = _call(capsys, tree, "--plan")
    assert status == 2
    assert name in report["error"]["message"]


def test_addresses_on_this_machines_disk_are_left_out_of_a_build_and_that_is_said(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pip.conf").write_text(
        "[global]\nindex-url = https://me:hunter2@host.invalid/simple\nextra-index-url = https://b.invalid/ file:///opt/x\n"
    )
    status, _, text = _call(capsys, tree, "--plan", "--index-config", str(tmp_path / "pip.conf"))
    assert status == 0
    assert "file:///opt/x lies on this machine's disk" in text
    assert "the best version of all of them is taken" in text
    assert "hunter2" not in text


def test_a_record_of_several_platforms_names_the_image_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    images = {"": "sha256:" + "1" * 64, "linux/arm64": "sha256:" + "2" * 64}

    def build_one(_: image_command._Run, target: BuildTarget, platform: str) -> Record:
        return make_record("image", target.name, image_id=images[platform])

    monkeypatch.setattr(image_command._Run, "_build_one", build_one)
    target = BuildTarget(name="release", context=".", dockerfile="Dockerfile", stage=None, args={}, tags=("a:b",))
    for platforms, expected in (
        ((), None),
        (("linux/amd64",), None),
        (("linux/amd64", "linux/arm64"), {"linux/amd64": images[""], "linux/arm64": images["linux/arm64"]}),
    ):
        job = SimpleNamespace(options=BuildOptions(platforms=platforms), terminal=Terminal(io.StringIO(), colour=False))
        record = image_command._Run(args=argparse.Namespace(push=False), job=cast("Job", job))._build(target)
        assert record.measurements.get("platform_images") == expected


def test_an_image_built_from_the_recorded_one_does_not_take_its_record(tmp_path: Path) -> None:
    def image(*layers: str) -> ImageConfig:
        return ImageConfig(
            image_id="x", tags=(), user="", env={}, labels={}, history=(), layer_digests=layers, size_bytes=1
        )

    above = image(*LAYERS, "sha256:" + "e" * 64)
    assert not is_derived(tmp_path, "release", above)
    write_record(tmp_path, make_record("image", "release"))
    assert is_derived(tmp_path, "release", above)
    assert not any(
        is_derived(tmp_path, *told) for told in [("release", image(*LAYERS)), ("nightly", above), (None, above)]
    )


def test_what_replaces_the_dockerfile_s_words_is_told_as_it_was_typed() -> None:
    options = BuildOptions(base_image="r/cuda:13", build_contexts=("a=b", "c=d"))
    assert options.replaced == ("--base-image r/cuda:13", "--build-context a=b", "--build-context c=d")
    assert BuildOptions().replaced == ()


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("release", "release"),
        ("cuda-12.8", "cuda-12.8"),
        ("", None),
        ("../../check", None),
        ("a/b", None),
        (".x", None),
    ],
)
def test_a_label_of_an_image_names_no_file_elsewhere(label: str, expected: str | None) -> None:
    assert labelled_target({TARGET_LABEL: label}) == expected
    assert labelled_target({}) is None
