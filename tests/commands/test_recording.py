"""What every stage's record says of the tree: its pins wherever the versions file lies, its commit however it is told."""

from __future__ import annotations

import argparse
import io
import json
import subprocess
from pathlib import Path

import pytest

from tests.trees import make_tree, write
from tooling import cli
from tooling.commands.recording import load_pinned_tree
from tooling.commands.smoke_image import InnerRun, _Stage
from tooling.commands.terminal import Terminal

SILENT, INNER = Terminal(io.StringIO(), False), InnerRun(options=(), limit_s=1)
PLACES = {
    "beside the Dockerfiles": ("docker/versions.json", ""),
    "where release.toml says": ("build/pins.json", '[pins]\nversions_file = "build/pins.json"\n'),
}


def moved(root: Path, place: str, settings: str) -> Path:
    """A tree whose versions file lies there."""
    make_tree(root, release_toml=settings or None)
    write(root, place, (root / "versions.json").read_text())
    (root / "versions.json").unlink()
    return root


def checked(root: Path, *words: str) -> dict[str, object]:
    cli.main(["check", "--root", str(root), *words])
    body: dict[str, object] = json.loads((root / "evidence/check.json").read_text())
    return body


@pytest.mark.parametrize(("place", "settings"), PLACES.values(), ids=PLACES)
def test_every_stage_names_the_pins_of_the_tree_s_own_versions_file(tmp_path: Path, place: str, settings: str) -> None:
    root = moved(tmp_path, place, settings)
    found = load_pinned_tree(root)  # as smoke, gsm8k and cache read it
    assert found.flashinfer_version == "0.6.12"
    assert found.pins_sha256 == checked(root)["pins_sha256"]


@pytest.mark.parametrize(("place", "settings"), PLACES.values(), ids=PLACES)
def test_a_smoke_in_an_image_is_given_that_file(tmp_path: Path, place: str, settings: str) -> None:
    root = moved(tmp_path, place, settings)
    args = argparse.Namespace(root=root, jit_cache=None)
    stage = _Stage(args=args, terminal=SILENT, tree=load_pinned_tree(root), inner=INNER)
    inside = tmp_path / "inside"
    for name, raw in stage._load_pins().items():
        write(inside, name, raw.decode())
    found = load_pinned_tree(inside)
    assert (found.flashinfer_version, found.pins_sha256) == ("0.6.12", load_pinned_tree(root).pins_sha256)


def test_a_commit_that_is_told_cut_short_is_the_tree_s_own(tmp_path: Path) -> None:
    root = make_tree(tmp_path, git=True)
    head = subprocess.check_output(["git", "-C", str(root), "rev-parse", "HEAD"], text=True).strip()
    told = {words: checked(root, "--commit", words) for words in (head, head[:7], "0" * 40)}
    assert [(body["commit"], body["dirty"]) for body in told.values()] == [
        (head, False), (head, False), ("0" * 40, True),
    ]  # fmt: skip
