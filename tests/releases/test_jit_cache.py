"""Packages that are built per CUDA: the tag, the place that installs one, and whether the build exists."""

from __future__ import annotations

import pytest

from tests.releases.pages import EXTRA, page, v
from tooling.findings import Severity
from tooling.pins.texts import SourceText
from tooling.releases.jit_cache import builds_of, check_cuda_build, cuda_folders, cuda_tag, find_install

JIT = "flashinfer-jit-cache"


@pytest.mark.parametrize(
    ("cuda", "tag"),
    [("13.0.2", "cu130"), ("12.9.1", "cu129"), ("12.6", "cu126"), ("13", None), ("", None), ("13.0-devel", None)],
)
def test_a_tag_is_made_of_major_and_minor(cuda: str, tag: str | None) -> None:
    assert cuda_tag(cuda) == tag


PLACES = {
    "a RUN": ("docker/Dockerfile", "FROM scratch\nRUN uv pip install \\\n  flashinfer-jit-cache==1\n", 3),
    "another spelling": ("docker/Dockerfile", "FROM scratch\nRUN pip install FlashInfer_JIT.Cache\n", 2),
    "a comment": ("docker/Dockerfile", "FROM scratch\n# RUN pip install flashinfer-jit-cache\n", None),
    "part of another name": ("docker/Dockerfile", "FROM scratch\nRUN pip install my-flashinfer-jit-cache\n", None),
    "a requirement": ("requirements/cuda.txt", "a==1\nflashinfer-jit-cache==1\n", 2),
    "another file": ("docs/notes.md", "flashinfer-jit-cache==1\n", None),
}


@pytest.mark.parametrize(("path", "text", "line"), PLACES.values(), ids=PLACES)
def test_where_a_tree_installs_it(path: str, text: str, line: int | None) -> None:
    assert find_install(JIT, [SourceText(path, text)]) == (None if line is None else (path, line))


def test_builds_are_told_by_label_or_by_folder() -> None:
    labelled = page(
        JIT, "flashinfer_jit_cache-1+cu130-py3-none-any.whl", "flashinfer_jit_cache-1+cu129-py3-none-any.whl"
    )
    plain = page(JIT, "flashinfer_jit_cache-1-py3-none-any.whl", index=EXTRA + "cu130/")
    elsewhere = page(JIT, "flashinfer_jit_cache-1-py3-none-any.whl", index=EXTRA)
    assert len(builds_of(v("1"), "cu130", [labelled, plain, elsewhere])) == 2
    assert check_cuda_build(JIT, v("1"), "13.0.2", [labelled], {}, skipping=False) == []


def test_a_missing_build_lists_those_that_exist() -> None:
    pages = [page(JIT, "flashinfer_jit_cache-1+cu129-py3-none-any.whl")]
    (finding,) = check_cuda_build(JIT, v("1"), "12.6.3", pages, {"cu128": True, "cu131": False}, skipping=False)
    assert (finding.severity, finding.reason) == (Severity.ERROR, "NO_CUDA_BUILD")
    assert "(cu126); there is: cu128, cu129." in finding.detail
    (finding,) = check_cuda_build(JIT, v("1"), "12.6.3", [page(JIT)], {}, skipping=True)
    assert finding.severity is Severity.WARNING
    assert "no index that was asked has any build" in finding.detail


def test_folders_of_a_listing() -> None:
    assert cuda_folders(["cu130", "cu128/", "nightly", "cu13", "..", "cu1300"]) == ["cu128", "cu130"]
