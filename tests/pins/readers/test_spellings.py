"""Every spelling that PEP 440 takes for a version is one span: a bump replaces it whole and glues nothing."""

from __future__ import annotations

import pytest
from packaging.version import Version

from tests.pins.readers.tables import library, read
from tooling.pins.plan import plan_bump
from tooling.pins.scan import scan
from tooling.pins.settings import Settings
from tooling.pins.texts import SourceText

SPELLINGS = (
    "0.6.16.POST3", "0.6.16-3", "0.6.16.rev3", "0.6.16RC1", "0.6.16r3", "1!0.6.13", "0.6.16-r3", "0.6.16_post_3",
    "0.6.16.alpha.1", "0.6.16-preview2", "0.6.16c1", "0.6.16.Dev3", "0.6.16.a1", "0.6.16post", "0.6.16-rev.3",
)  # fmt: skip
PLACES = {
    "requirement": ("requirements/cuda.txt", "flashinfer-python=={} ; python_version > '3'  # note\n"),
    "ARG": ("Dockerfile", "ARG FLASHINFER_VERSION={}\n"),
    "RUN": ("Dockerfile", "RUN pip install flashinfer-python=={} nixl\n"),
    "TOML": ("pyproject.toml", '[project]\ndependencies = ["flashinfer-python=={}"]\n'),
    "YAML": ("w.yml", "env:\n  FLASHINFER_VERSION: '{}'\n"),
    "shell": ("a.sh", "FLASHINFER_VERSION={}\n"),
    "HCL": ("a.hcl", 'variable "FLASHINFER_VERSION" {{\n  default = "{}"\n}}\n'),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(("path", "text"), PLACES.values(), ids=PLACES)
def test_a_version_is_replaced_whole(path: str, text: str, spelling: str) -> None:
    source = SourceText(path, text.format(spelling))
    tree = scan([source], library=library(), settings=Settings(), versions_file=None)
    plan = plan_bump(tree, Version("0.6.18"))
    assert [site.version for site in tree.pins] == [Version(spelling)]
    assert plan.refusals == ()
    assert [edit.after.decode() for edit in plan.edits] == [text.format("0.6.18")]


OTHERS = {
    "a wheel's build number": ("a.sh", "pip install ./flashinfer_python-0.6.13-1-py3-none-any.whl\n", "0.6.13"),
    "a GPU in an image's tag": ("Dockerfile", "FROM flashinfer/flashinfer:v0.6.13-b200\n", "v0.6.13"),
    "a build in an image's tag": ("Dockerfile", "FROM flashinfer/flashinfer:v0.6.13-3\n", "v0.6.13"),
    "a folder for a GPU": ("a.sh", "cd flashinfer-0.6.13-b200/\n", "0.6.13"),
    "an sdist": ("a.sh", "tar xf flashinfer-0.6.13.tar.gz\n", "0.6.13"),
}


@pytest.mark.parametrize(("path", "text", "spelling"), OTHERS.values(), ids=OTHERS)
def test_what_stands_behind_a_version_is_not_taken_for_a_part_of_it(path: str, text: str, spelling: str) -> None:
    assert [site.spelling for site in read(path, text)] == [spelling]
