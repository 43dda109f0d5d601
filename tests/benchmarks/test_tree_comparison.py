"""Verdicts of the comparison with a project's next release."""

from __future__ import annotations

import pytest
from packaging.version import Version

from benchmarks.tree_comparison import compare, release_of
from tests.pins.readers.tables import library
from tooling.pins.scan import Tree, scan
from tooling.pins.settings import Settings
from tooling.pins.texts import SourceText


def tree(files: dict[str, str]) -> Tree:
    texts = [SourceText(path, text) for path, text in files.items()]
    return scan(texts, library=library(), settings=Settings(), versions_file=None)


R = "flashinfer-python==0.6.1\n"
CASES = {
    "exact": ({"r.txt": R}, {"r.txt": "flashinfer-python==0.6.2\n"}, ["exact"]),
    "left stale": ({"r.txt": R}, {"r.txt": R}, ["stale"]),
    "file gone": ({"r.txt": R}, {}, ["changed"]),
    "went elsewhere": ({"r.txt": R}, {"r.txt": "flashinfer-python==0.5.9\n"}, ["wrong"]),
    "a spelling that no reader knows": (
        {"r.txt": R, "a.sh": "echo flashinfer ist 0.6.1\n"},
        {"r.txt": "flashinfer-python==0.6.2\n", "a.sh": "echo flashinfer ist 0.6.2\n"}, ["exact", "missed"]),
    "a comment": (
        {"r.txt": R, "a.sh": "# flashinfer v0.6.1\n"}, {"r.txt": "flashinfer-python==0.6.2\n", "a.sh": "# flashinfer v0.6.2\n"},
        ["exact", "mention"]),
    "a docstring": (
        {"r.txt": R, "a.py": 'def f():\n    """x\n    (flashinfer, "0.6.1")\n    """\n'},
        {"r.txt": "flashinfer-python==0.6.2\n", "a.py": 'def f():\n    """x\n    (flashinfer, "0.6.2")\n    """\n'},
        ["exact", "mention"]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_verdict(case: tuple[dict[str, str], dict[str, str], list[str]]) -> None:
    older, newer, verdicts = case
    assert [place.verdict for place in compare(tree(older), tree(newer), Version("0.6.2"))] == verdicts


def test_a_tree_is_on_what_most_pins_of_the_main_package_hold() -> None:
    made = tree(
        {
            "r.txt": "flashinfer-python==0.6.2\n",
            "Dockerfile": "ARG FLASHINFER_VERSION=0.6.1\nARG FLASHINFER_REF=v0.6.1\n",
        }
    )
    assert release_of(made) == Version("0.6.2")
