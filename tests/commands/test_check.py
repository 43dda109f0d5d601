"""`check` as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trees import RELEASE_TOML, commit_all, make_tree, snapshot, versions_json, write
from tooling import cli

BAKE = 'target "release" {\n  args = {\n    FLASHINFER_VERSION = FLASHINFER_VERSION\n    CUDA_VERSION = CUDA_VERSION\n  }\n}\n'


def check(root: Path, *words: str) -> int:
    return cli.main(["check", "--root", str(root), *words])


def found(capsys: pytest.CaptureFixture[str], root: Path, *words: str) -> list[tuple[str, str | None, int | None]]:
    check(root, "--json", *words)
    report = json.loads(capsys.readouterr().out)
    return [(item["check"], item["path"], item["line"]) for item in report["findings"]]


def test_a_tree_that_agrees_passes_and_records_it(tmp_path: Path) -> None:
    root = make_tree(tmp_path)
    write(root, "docker/docker-bake.hcl", BAKE)
    before = snapshot(root)
    assert check(root) == 0
    assert snapshot(root) == before
    assert json.loads((root / "evidence/check.json").read_text())["status"] == "pass"


def test_the_hook_writes_no_record(tmp_path: Path) -> None:
    root = make_tree(tmp_path)
    assert check(root, "--no-evidence") == 0
    assert not (root / "evidence").exists()


CASES: dict[str, tuple[str, str, tuple[str, str, int | None]]] = {
    "requirements moved alone": (
        "requirements/cuda.txt", "flashinfer-python==0.6.18\nflashinfer-cubin==0.6.12\n", ("drift", "requirements/cuda.txt", 1)),
    "a longer version with the same start": (
        "requirements/cuda.txt", "flashinfer-python==0.6.12\nflashinfer-cubin==0.6.120\n", ("drift", "requirements/cuda.txt", 2)),
    "a range is no pin": (
        "requirements/cuda.txt", "flashinfer-python>=0.6.12\nflashinfer-cubin==0.6.12\n", ("unpinned", "requirements/cuda.txt", 1)),
    "a pin too many": (
        "docker/Dockerfile", "FROM scratch\nARG FLASHINFER_VERSION=0.6.12\nARG FLASHINFER_VERSION=0.6.12\n",
        ("extra-site", "docker/Dockerfile", 3)),
    "a pin outside the list": ("deploy/Dockerfile", "FROM scratch\nARG FLASHINFER_VERSION=0.6.12\n", ("unlisted-site", "deploy/Dockerfile", 2)),
    "another variable's default differs": (
        "docker/Dockerfile", "ARG CUDA_VERSION=12.9.1\nFROM a:${CUDA_VERSION}\nARG FLASHINFER_VERSION=0.6.12\n",
        ("variable-drift", "docker/Dockerfile", 1)),
    "an unknown variable of the library": (
        "docker/Dockerfile", "FROM scratch\nARG FLASHINFER_VERSION=0.6.12\nARG FLASHINFER_KERNELS=0.6.11\n",
        ("unknown-variable", "docker/Dockerfile", 3)),
    "an ARG before FROM is empty in the stage": (
        "docker/Dockerfile", "ARG FLASHINFER_VERSION=0.6.12\nFROM scratch\nRUN pip install flashinfer-python==${FLASHINFER_VERSION}\n",
        ("undeclared-arg", "docker/Dockerfile", 3)),
    "a line that is no instruction": (
        "docker/Dockerfile", 'FROM scratch\nARG FLASHINFER_VERSION=0.6.12\npip install "flashinfer_python>=0.6.2" --no-deps\n',
        ("dockerfile-syntax", "docker/Dockerfile", 3)),
    "an ARG with spaces": (
        "docker/Dockerfile", "FROM scratch\nARG  FLASHINFER_VERSION = 0.6.12\n", ("dockerfile-syntax", "docker/Dockerfile", 2)),
    "a bake file that passes nothing on": (
        "docker/docker-bake.hcl", 'target "release" {\n  tags = ["a:${FLASHINFER_VERSION}"]\n}\n', ("bake-variable", "versions.json", 3)),
    "a bake file that is not HCL": ("docker/docker-bake.hcl", "target {{{", ("bake-file", "docker/docker-bake.hcl", None)),
}  # fmt: skip


@pytest.mark.parametrize(("path", "text", "expected"), CASES.values(), ids=CASES)
def test_each_fault_is_found_with_path_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], path: str, text: str, expected: tuple[str, str, int | None]
) -> None:
    root = make_tree(tmp_path)
    write(root, path, text)
    assert expected in found(capsys, root)
    assert check(root) == 4


SOUND_DOCKERFILES = {
    "a stage builds on one that declares the ARG":
        "FROM scratch AS base\nARG FLASHINFER_VERSION=0.6.12\nFROM base\nRUN echo ${FLASHINFER_VERSION}\n",
    "the shell sets the name itself": "FROM scratch\nARG FLASHINFER_VERSION=0.6.12\nFROM scratch\nRUN FLASHINFER_VERSION=1; echo $FLASHINFER_VERSION\n",
    "a global ARG in FROM": "ARG FLASHINFER_VERSION=0.6.12\nFROM a:${FLASHINFER_VERSION}\n",
    "declared again without a default": "ARG FLASHINFER_VERSION=0.6.12\nFROM scratch\nARG FLASHINFER_VERSION\nRUN echo $FLASHINFER_VERSION\n",
    "in a comment": "FROM scratch\nARG FLASHINFER_VERSION=0.6.12\nFROM scratch\n# uses $FLASHINFER_VERSION\nRUN true\n",
}  # fmt: skip


@pytest.mark.parametrize("text", SOUND_DOCKERFILES.values(), ids=SOUND_DOCKERFILES)
def test_a_sound_dockerfile_is_not_blamed(tmp_path: Path, text: str) -> None:
    root = make_tree(tmp_path)
    write(root, "docker/Dockerfile", text)
    assert check(root) == 0


def test_a_variable_may_be_used_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = make_tree(tmp_path)
    write(root, "versions.json", versions_json(FLASHINFER_VERSION="0.6.12", PYTHON_VERSION="3.12"))
    write(root, "docker/docker-bake.hcl", BAKE.replace("    CUDA_VERSION = CUDA_VERSION\n", ""))
    assert [item[0] for item in found(capsys, root)] == ["bake-variable"]
    write(root, "release.toml", RELEASE_TOML + '[bake.also_used_by]\nPYTHON_VERSION = "the image proof"\n')
    assert found(capsys, root) == []


def test_another_layout_of_the_versions_file_is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = make_tree(tmp_path)
    write(
        root,
        "versions.json",
        '{"variable":{"FLASHINFER_VERSION":{"default":"0.6.12"},"CUDA_VERSION":{"default":"13.0.2"}}}',
    )
    assert [item[0] for item in found(capsys, root)] == ["versions-spelling"]
    assert check(root) == 0


def test_a_lower_pin_than_on_the_base_branch_must_be_announced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_tree(tmp_path, "0.6.16.post3", git=True)
    base = commit_all_after_bump(root, "0.6.6")
    capsys.readouterr()
    assert [item[0] for item in found(capsys, root, "--base", base)] == ["downgrade"]
    assert check(root, "--base", base) == 4
    assert check(root, "--base", base, "--allow-downgrade") == 0
    assert check(root, "--base", "HEAD") == 0


def commit_all_after_bump(root: Path, to: str) -> str:
    base = (root / ".git/refs/heads/main").read_text().strip()
    assert cli.main(["bump", to, "--offline", "--root", str(root)]) == 0
    commit_all(root, "lower the pin")
    return base


def test_a_base_that_git_does_not_know_is_a_bad_argument(tmp_path: Path) -> None:
    assert check(make_tree(tmp_path, git=True), "--base", "origin/nowhere") == 2


def test_findings_are_annotations_on_github(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    root = make_tree(tmp_path)
    write(root, "requirements/cuda.txt", "flashinfer-python==0.6.18\nflashinfer-cubin==0.6.12\n")
    assert check(root) == 4
    assert (
        "::error file=requirements/cuda.txt,line=1,title=drift::flashinfer-python holds 0.6.18"
        in capsys.readouterr().err
    )


def test_a_root_that_is_no_directory_is_a_bad_argument(tmp_path: Path) -> None:
    assert check(tmp_path / "nowhere") == 2
    assert check(write(tmp_path, "file", "")) == 2


def test_findings_win_over_a_record_that_cannot_be_written(tmp_path: Path) -> None:
    root = make_tree(tmp_path)
    write(root, "evidence", "a file in the folder's place")
    assert check(root) == 3
    write(root, "requirements/cuda.txt", "flashinfer-python==0.6.18\nflashinfer-cubin==0.6.12\n")
    assert check(root) == 4


def test_a_closed_or_full_output_is_no_crash(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tooling", "check", "--root", str(make_tree(tmp_path))]
    closed = subprocess.run(["bash", "-c", '"$@" >&-', "-", *command], capture_output=True, text=True, check=False)
    assert (closed.returncode, closed.stderr) == (0, "")
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (3, 2)
    assert done.stderr.startswith("error: the output cannot be written: ")


@pytest.mark.parametrize("text", ["", "main", "3f2a9c"])
def test_what_is_no_commit_is_not_recorded_as_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    root = make_tree(tmp_path, "0.6.13")
    assert cli.main(["check", "--root", str(root), "--commit", text]) == 2
    assert "expected 7 to 64 hexadecimal digits" in capsys.readouterr().err
    assert not (root / "evidence").exists()
