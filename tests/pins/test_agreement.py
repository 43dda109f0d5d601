"""torch, CUDA and Ubuntu agree with the versions file wherever they are spelled out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trees import make_tree, versions_json, write
from tooling.edges.files.tree import load_tree
from tooling.edges.packaged_data import load_library
from tooling.pins.agreement import check_agreement

VARIABLES = {
    "FLASHINFER_VERSION": "0.6.13",
    "CUDA_VERSION": "13.0.2",
    "UBUNTU_VERSION": "24.04",
    "TORCH_VERSION": "2.11.0",
}
HEAD = "flashinfer-python==0.6.13\nflashinfer-cubin==0.6.13\n"

REQUIREMENTS = {
    "equal": ("torch==2.11.0", 0),
    "with a local part": ("torch==2.11.0+cu130", 0),
    "another torch": ("torch==2.10.0", 1),
    "a range": ("torch>=2.10", 0),
    "another package": ("torchvision==0.1", 0),
    "the right major in an extra": ("nvidia-cutlass-dsl[cu13]==4.5.2", 0),
    "another major in an extra": ("nvidia-cutlass-dsl[cu12]==4.5.2", 1),
    "another major in a name": ("nvidia-cudnn-cu12==9.0", 1),
    "the right index": ("--extra-index-url https://x.invalid/whl/cu130", 0),
    "another index": ("--extra-index-url https://x.invalid/whl/cu129", 1),
    "a comment": ("# cu129 was here, torch==1", 0),
    "another local part": ("torch==2.11.0+cu128", 1),
}  # fmt: skip

DOCKERFILES = {
    "variables": ("ARG CUDA_VERSION=13.0.2\nFROM nvidia/cuda:${CUDA_VERSION}-devel-ubuntu24.04", 0),
    "spelled out and equal": ("FROM nvidia/cuda:13.0.2-devel-ubuntu24.04", 0),
    "another CUDA": ("FROM --platform=linux/amd64 nvidia/cuda:12.9.1-devel-ubuntu24.04 AS base", 1),
    "another Ubuntu": ("FROM nvidia/cuda:13.0.2-cudnn-runtime-ubuntu22.04", 1),
    "in an ARG": ('ARG BASE_IMAGE="registry.invalid:5000/nvidia/cuda:12.8.0-base"\nFROM ${BASE_IMAGE}', 1),
    "an index for another CUDA": ("FROM scratch\nRUN pip install torch --index-url https://x.invalid/whl/cu128", 1),
    "an index for this CUDA": ("FROM scratch\nRUN pip install torch --index-url https://x.invalid/whl/nightly/cu130", 0),
    "a branch for another major": ("FROM scratch\nRUN if [ $MAJOR = 12 ]; then pip install x-cu12; fi", 0),
    "another image": ("FROM python:3.12", 0),
    "a comment": ("FROM scratch\n# cu128\nRUN true", 0),
}  # fmt: skip


def count(root: Path) -> list[str]:
    return [f"{item.path}:{item.line}" for item in check_agreement(load_tree(root, load_library()))]


@pytest.mark.parametrize(("line", "expected"), REQUIREMENTS.values(), ids=REQUIREMENTS)
def test_requirements_against_the_versions_file(line: str, expected: int, tmp_path: Path) -> None:
    root = make_tree(tmp_path, "0.6.13")
    write(root, "versions.json", versions_json(**VARIABLES))
    write(root, "requirements/cuda.txt", f"{HEAD}{line}\n")
    assert count(root) == ["requirements/cuda.txt:3"] * expected


@pytest.mark.parametrize(("text", "expected"), DOCKERFILES.values(), ids=DOCKERFILES)
def test_dockerfiles_against_the_versions_file(text: str, expected: int, tmp_path: Path) -> None:
    root = make_tree(tmp_path, "0.6.13")
    write(root, "versions.json", versions_json(**VARIABLES))
    write(root, "docker/Dockerfile", f"{text}\nARG FLASHINFER_VERSION=0.6.13\n")
    assert len(count(root)) == expected


def test_a_tree_without_these_variables_is_not_judged(tmp_path: Path) -> None:
    root = make_tree(tmp_path, "0.6.13")
    write(root, "versions.json", versions_json(FLASHINFER_VERSION="0.6.13"))
    write(root, "requirements/cuda.txt", f"{HEAD}torch==1\nnvidia-cudnn-cu12==9\n")
    assert count(root) == []
