"""Readers on texts that nobody would write: no crash, no change outside a pin, and a bump that its own scan confirms."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from packaging.version import Version

from tests.pins.readers.tables import TARGET, library, without_spans
from tooling.pins.plan import plan_bump
from tooling.pins.readers import READERS, read_sites
from tooling.pins.scan import scan
from tooling.pins.settings import Settings
from tooling.pins.sites import PinSite, Role
from tooling.pins.texts import SourceText

PATHS = (
    "Dockerfile", "versions.json", "x.json", "requirements/cuda.txt", "pyproject.toml", "a.yaml", ".github/workflows/a.yml",
    "docker-bake.hcl", "setup.py", "engine.py", "install.sh", "Makefile", "uv.lock", "Pipfile.lock", "README.md", "CMakeLists.txt",
)  # fmt: skip
WORDS = (
    "flashinfer-python", "flashinfer_cubin", "flashinfer", "flashinfer-jit-cache", "FLASHINFER_VERSION", "FLASHINF_REF", "FI_VER",
    "0.6.13", "v0.6.16.post3", "0.6.13+cu130", "0.6.13%2Bcu128torch2.7", "0.6", "0.6.*", "1.2.3rc4", "==", ">=", "=", ":", ": ", ",", ";",
    "[cu13]", "[", "]", "{", "}", "(", ")", '"', "'", '"""', "\\", "\\\n", "\n", "\n    ", "\r\n", " ", "\t", "#", "# ", "//", "/*", "*/",
    "ARG ", "ENV ", "RUN ", "FROM ", "WORKDIR ", "LABEL ", "COPY ", "<<EOF\n", "EOF\n", "pip install ", "git clone ", "git checkout ",
    "cd flashinfer", " && ", "--branch ", "-b ", "https://github.com/flashinfer-ai/flashinfer.git", "git+", "@", "/releases/download/",
    "-cp39-abi3-linux_x86_64.whl", ".tar.gz", ".patch", "-", "${FLASHINFER_VERSION:-", "${FI_VER}", "$", "${{ ", " || ", "variable", "default",
    "name", "version", "- ", "|\n  ", "export ", "nixl==0.6.13", "torch", "assert_pkg_version(", "\ufeff", "é", "\u2028", "\x0c", "\x85", "\0",
    "@sha256:" + "ab" * 32, "dependencies = ", "[project]\n", "default: ", "args", "def f():\n", "f", "İ",
)  # fmt: skip

TEXTS = st.lists(st.sampled_from(WORDS) | st.text(max_size=4), max_size=40).map("".join)
FUZZ = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)


def _cut(text: str, sites: list[PinSite]) -> str:
    return without_spans(text, sites)


@pytest.mark.parametrize("path", PATHS)
@FUZZ
@given(text=TEXTS)
@example(text="flashinfer-python==" * 3 + "0.6.13")
@example(text='"' * 50 + "flashinfer-python==0.6.13")
def test_no_text_breaks_a_reader_or_a_bump(path: str, text: str) -> None:
    source = SourceText(path, text)
    sites = read_sites(source, library())
    for first, second in pairwise(sites):
        assert first.end <= second.start
    pins = [site for site in sites if site.role is Role.PIN]
    assert all(site.version is not None and text[site.start : site.end] in site.spelling for site in pins)
    tree = scan([source], library=library(), settings=Settings(versions_file=None), versions_file=None)
    plan = plan_bump(tree, TARGET, from_any=True)
    assert [item for item in plan.refusals if item.check == "no-effect"] == []
    for edit in plan.edits:
        after = edit.after.decode()
        again = read_sites(SourceText(path, after), library())
        moved = [site for site in again if site.role is Role.PIN and site.version is not None]
        assert {Version(site.version.public) for site in moved if site.version} == {TARGET}
        assert _cut(after, again) == _cut(text, sites)


def test_every_reader_is_fuzzed() -> None:
    for reader in READERS:
        assert any(reader.matches(path) for path in PATHS), reader.shape
