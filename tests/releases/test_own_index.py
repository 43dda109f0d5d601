"""A pin that was copied without its index line is seen without asking anybody."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trees import RELEASE_TOML, make_tree, write
from tooling.edges.files.tree import load_tree
from tooling.edges.packaged_data import load_library
from tooling.releases.own_index import check_own_index

PINS = "flashinfer-python=={0}\nflashinfer-cubin=={0}\n"
OWN = load_library().own_index

CASES = {
    "before it left": ("0.6.13", "", "", 0),
    "copied without the line": ("0.6.14", "", "", 1),
    "with the line": ("0.6.14", f"--extra-index-url {OWN}\n", "", 0),
    "with the line in a comment": ("0.6.14", f"# --extra-index-url {OWN}\n", "", 1),
    "the Dockerfile names it": ("0.6.14", "", f"RUN pip install -r cuda.txt --extra-index-url {OWN}\n", 0),
}


@pytest.mark.parametrize(("version", "head", "run", "count"), CASES.values(), ids=CASES)
def test_where_the_own_index_is_missing(version: str, head: str, run: str, count: int, tmp_path: Path) -> None:
    root = make_tree(tmp_path, version)
    write(root, "requirements/cuda.txt", head + PINS.format(version))
    write(root, "docker/Dockerfile", f"FROM scratch\nARG FLASHINFER_VERSION={version}\n{run}")
    findings = list(check_own_index(load_tree(root, load_library())))
    assert [(item.path, item.reason) for item in findings] == [("requirements/cuda.txt", "INDEX_MISSING")] * count


def test_a_mirror_in_the_settings_takes_its_place(tmp_path: Path) -> None:
    mirror = "https://mirror.invalid/whl"
    root = make_tree(tmp_path, "0.6.14", release_toml=f'{RELEASE_TOML}\n[flashinfer]\nindex = "{mirror}/"\n')
    write(root, "requirements/cuda.txt", f"--extra-index-url {OWN}\n" + PINS.format("0.6.14"))
    (finding,) = check_own_index(load_tree(root, load_library()))
    assert "mirror.invalid" in finding.detail
    write(root, "requirements/cuda.txt", f"--extra-index-url {mirror}\n" + PINS.format("0.6.14"))
    assert list(check_own_index(load_tree(root, load_library()))) == []
