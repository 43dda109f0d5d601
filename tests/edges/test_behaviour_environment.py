"""pip's settings in uv's words, and which torch is at hand; the real thing is run online."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.tags import sys_tags

from tooling.edges.behaviour.environment import torch_at_hand, uv_options
from tooling.edges.pip_config import load_index_settings


def test_pip_s_settings_become_uv_s(bare_machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "extra").mkdir()
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.invalid/simple/")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", f"file://{tmp_path}/extra file://{tmp_path}/not-there")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_CONSTRAINT", "c.txt")
    assert uv_options(load_index_settings()) == [
        "--index-url",
        "https://index.invalid/simple/",
        "--extra-index-url",
        f"file://{tmp_path}/extra",
        "--find-links",
        str(tmp_path),
        "--constraint",
        "c.txt",
        "--index-strategy",
        "unsafe-best-match",
    ]


def test_a_machine_without_settings_needs_no_option(bare_machine: Path) -> None:
    assert uv_options(load_index_settings()) == []


def test_the_newest_fitting_torch_of_a_find_links_folder_is_taken_cpu_first(
    bare_machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tag = next(iter(sys_tags()))
    names = [f"torch-2.13.0+cpu-{tag}.whl", f"torch-2.9.0+cpu-{tag}.whl", f"torch-2.14.0-{tag}.whl"]
    for name in [*names, "torch-2.15.0-cp27-cp27m-win32.whl", "torchvision-1.0-py3-none-any.whl", "torch-x.whl"]:
        (tmp_path / name).touch()
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    assert torch_at_hand(load_index_settings()) == str(tmp_path / names[0])


def test_without_one_the_index_s_is_taken(bare_machine: Path) -> None:
    assert torch_at_hand(load_index_settings()) == "torch"
