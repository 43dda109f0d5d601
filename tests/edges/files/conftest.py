"""A folder where thousands of small trees can be made and flushed quickly."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .trees import make_tree


@pytest.fixture
def quick_folder(tmp_path: Path) -> Iterator[Path]:
    """In memory where the system offers that: flushing a disk for each of thousands of trees takes minutes."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def fresh_tree(quick_folder: Path) -> Callable[[], Path]:
    """Makes one tree after the other, each in the place of the last."""

    def make() -> Path:
        root = quick_folder / "tree"
        shutil.rmtree(root, ignore_errors=True)
        return make_tree(root)

    return make


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "tree")
