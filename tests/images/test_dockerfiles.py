"""The scripts that Dockerfiles run, and our own rules for Dockerfiles and the bake file, on this checkout and on bad ones."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.images.conftest import ROOT
from tooling.images.build_rules import check_bake, check_dockerfile
from tooling.images.plan import BuildTarget
from tooling.pins.texts import SourceText

VARIABLES = {"FLASHINFER_VERSION": "0.6.13", "CUDA_VERSION": "13.0.2"}


def split(folder: Path, text: str, without: str = "", settings: str | None = None) -> dict[str, str]:
    (folder / "in.txt").write_text(text)
    words = ["sh", str(ROOT / "docker/split-requirements.sh"), str(folder / "in.txt"), str(folder), without]
    if settings is not None:
        (folder / "release.toml").write_text(settings)
        words.append(str(folder / "release.toml"))
    subprocess.run(words, check=True)
    names = ("flashinfer", "flashinfer-rest", "companions", "overrides")
    return {name: (folder / f"{name}.txt").read_text() for name in names}


def test_requirements_are_split_by_whom_a_bump_touches(tmp_path: Path) -> None:
    parts = split(tmp_path, (ROOT / "requirements" / "cuda.txt").read_text(), "torch")
    assert [line.partition("=")[0] for line in parts["flashinfer"].splitlines()] == [
        "flashinfer-python",
        "flashinfer-cubin",
    ]
    assert [line.partition("=")[0] for line in parts["flashinfer-rest"].splitlines()] == ["flashinfer-cubin"]
    assert "flashinfer" not in parts["companions"]
    assert "torch" not in parts["companions"]
    assert parts["overrides"] == 'torch ; python_version < "0"\n'


def test_a_bump_leaves_the_companions_byte_identical(tmp_path: Path) -> None:
    text = "# pins of 0.6.12\nflashinfer-python==0.6.12\ntorch==2.11.0\n"
    assert split(tmp_path, text)["companions"] == split(tmp_path, text.replace("0.6.12", "0.6.13"))["companions"]


def test_odd_spellings_are_split_too(tmp_path: Path) -> None:
    text = "FlashInfer_Python == 0.6.13 # x\r\n--extra-index-url https://x/\n  torch[a]>=2 ; python_version > '3' \nlong==1 \\\n  --hash=sha256:aa\n"
    parts = split(tmp_path, text, "Torch")
    assert parts["flashinfer"] == "FlashInfer_Python == 0.6.13\n--extra-index-url https://x/\n"
    assert parts["companions"] == "--extra-index-url https://x/\nlong==1    --hash=sha256:aa\n"


def test_recorded_hashes_go_with_their_release_only(tmp_path: Path) -> None:
    settings = (
        '[scan]\n"flashinfer_python-0.6.13-x.whl" = "00"\n[flashinfer.sha256]\n"flashinfer_python-0.6.13-py3-none-any.whl" = "aa"\n'
        "'flashinfer_cubin-0.6.13-py3-none-any.whl' = 'bb'\n"
        '"flashinfer_python-0.6.13.post1-py3-none-any.whl" = "cc"\n[other]\n"flashinfer_python-0.6.13-y.whl" = "dd"\n'
    )
    parts = split(tmp_path, "flashinfer-python==0.6.13\nflashinfer-cubin==0.6.13\n", settings=settings)
    assert parts["flashinfer"] == (
        "flashinfer-python==0.6.13 --hash=sha256:aa\nflashinfer-cubin==0.6.13 --hash=sha256:bb\n"
    )


def test_the_mirror_replaces_the_distributions_own_sources_and_no_other(tmp_path: Path) -> None:
    folder = tmp_path / "apt" / "sources.list.d"
    folder.mkdir(parents=True)
    (tmp_path / "apt" / "sources.list").write_text(
        "# deb http://old/ubuntu x\ndeb [arch=amd64] http://archive.invalid/ubuntu/ noble main universe\n"
        "deb-src http://archive.invalid/ubuntu noble main\n"
    )
    (folder / "cuda.list").write_text("deb https://vendor.invalid/compute/cuda/repos/ubuntu2404/x86_64 /\n")
    (folder / "ubuntu.sources").write_text(
        "Types: deb\nURIs: http://archive.invalid/ubuntu/\nSuites: noble noble-updates\nComponents: main\n"
        "Signed-By: /k.gpg\n\nTypes: deb\nURIs: http://vendor.invalid/x/\nSuites: y\nComponents: z\n"
    )
    done = subprocess.run(
        ["sh", str(ROOT / "docker/build-step.sh"), "mirrored-sources"], capture_output=True, text=True, check=True,
        env={"APT_MIRROR": "http://mirror.invalid/u", "ETC_APT": str(tmp_path / "apt"), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.stdout.splitlines() == [
        "deb [arch=amd64] http://mirror.invalid/u noble main universe",
        "deb [signed-by=/k.gpg] http://mirror.invalid/u noble main",
        "deb [signed-by=/k.gpg] http://mirror.invalid/u noble-updates main",
    ]


def test_secrets_reach_a_step_by_their_variables(tmp_path: Path) -> None:
    for name in ("ca_bundle", "pip_config"):
        (tmp_path / name).write_text("x")
    done = subprocess.run(
        ["sh", str(ROOT / "docker/build-step.sh"), "sh", "-c", "echo $SSL_CERT_FILE $PIP_CONFIG_FILE ${UV_CONFIG_FILE-none}"],
        capture_output=True, text=True, check=True, env={"SECRETS_FOLDER": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.stdout.split() == [f"{tmp_path}/ca_bundle", f"{tmp_path}/pip_config", "none"]


@pytest.mark.parametrize("name", ["docker/Dockerfile", "docker/Dockerfile.nightly_torch"])
def test_this_checkouts_dockerfiles_keep_the_rules(name: str) -> None:
    source = SourceText(name, (ROOT / name).read_text())
    assert check_dockerfile(source, variables=VARIABLES, version_variable="FLASHINFER_VERSION") == []


GOOD = """FROM x AS torch
RUN --mount=type=secret,id=ca_bundle uv pip install -r companions.txt
FROM torch
ARG FLASHINFER_VERSION
USER 10001:10001
"""
BAD = {
    "syntax line": ("# syntax=docker/dockerfile:1\n" + GOOD, "NEEDS_PULL"),
    "heredoc": (GOOD.replace("ARG", "RUN cat <<EOF\nx\nEOF\nARG"), "NEEDS_NEW_BUILDER"),
    "copy --link": (GOOD.replace("ARG", "COPY --link a b\nARG"), "NEEDS_NEW_BUILDER"),
    "no certificates": (GOOD.replace("--mount=type=secret,id=ca_bundle ", ""), "NO_CERTIFICATES"),
    "secret as argument": (GOOD.replace("ARG", "ARG INDEX_TOKEN\nARG"), "CREDENTIALS"),
    "env over arg": (GOOD.replace("USER", "ENV FLASHINFER_VERSION=1\nUSER"), "ENV_OVER_ARG"),
    "no user": (GOOD.replace("USER 10001:10001\n", ""), "ROOT_USER"),
    "root": (GOOD.replace("10001:10001", "0:10001"), "ROOT_USER"),
    "user by name": (GOOD.replace("10001:10001", "engine"), "ROOT_USER"),
    "argument too early": (GOOD.replace("RUN", "ARG FLASHINFER_VERSION\nRUN"), "BUMP_REBUILDS_ALL"),
}


@pytest.mark.parametrize(("text", "reason"), BAD.values(), ids=BAD.keys())
def test_a_rule_that_is_broken_is_found_with_its_line(text: str, reason: str) -> None:
    found = check_dockerfile(SourceText("D", text), variables=VARIABLES, version_variable="FLASHINFER_VERSION")
    assert {item.reason for item in found} == {reason}
    assert all(item.path == "D" and item.line for item in found)


def _bake(**changes: object) -> BuildTarget:
    values = {"args": VARIABLES, "tags": ("x:0.6.13-cu13.0.2",), "dockerfile": "D", **changes}
    return BuildTarget(name="one", context=".", stage=None, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (_bake(args={"CUDA_VERSION": "13.0.2"}), "INERT_VARIABLE"),
        (_bake(dockerfile="E"), "MISSING"),
        (_bake(tags=("x:latest", "x:0.6.13-cu13.0.2")), "SAME_TAG"),
    ],
)
def test_a_bake_file_that_loses_a_pin_is_found(target: BuildTarget, reason: str) -> None:
    assert {item.reason for item in check_bake([target], path="b", dockerfiles=["D"], variables=VARIABLES)} == {reason}
    assert check_bake([_bake()], path="b", dockerfiles=["D"], variables=VARIABLES) == []


def test_evidence_and_an_interrupted_bump_stay_out_of_the_build_context() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert lines[1] == "*"
    assert {"**/.bump", "**/evidence"} <= set(lines[lines.index("*") + 1 :])


def test_the_base_that_stands_for_the_cuda_base_has_the_pinned_cuda() -> None:
    text = (ROOT / "ci" / "engine.sh").read_text()
    pins = (ROOT / "versions.json").read_text()
    version = text.partition("\nCUDA_VERSION=")[2].partition(" ")[0]
    assert f'"{version}"' in pins
