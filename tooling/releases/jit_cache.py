"""Packages that are built per CUDA (`0.6.13+cu130`): where a tree installs one, and whether its build exists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from packaging.version import Version

from tooling.findings import Finding, Severity
from tooling.pins.dockerfile_syntax import parse_dockerfile
from tooling.pins.readers.dockerfile_arg import matches as is_dockerfile
from tooling.pins.readers.requirement_lines import matches as is_requirements_file
from tooling.pins.requirements import parse_requirements
from tooling.pins.texts import SourceText
from tooling.releases.files import ProjectFiles, ReleaseFile, files_of

_CUDA = re.compile(r"(\d+)\.(\d+)(?:\.\d+)*")
_FOLDER = re.compile(r"cu\d{3}")


def cuda_tag(cuda: str) -> str | None:
    """`cu130` for 13.0.2: major and minor only; None if that is no CUDA version."""
    match = _CUDA.fullmatch(cuda)
    return f"cu{match[1]}{match[2]}" if match else None


def find_install(package: str, texts: Iterable[SourceText]) -> tuple[str, int] | None:
    """Path and line where a Dockerfile's RUN or a requirements file names the package; comments do not count."""
    name = re.compile(r"(?<![\w.-])" + "[-_.]".join(map(re.escape, package.split("-"))) + r"(?![\w-])", re.IGNORECASE)
    for source in texts:
        if is_dockerfile(source.path):
            for item in parse_dockerfile(source.text):
                if item.keyword == "RUN" and (match := name.search(item.body)):
                    return source.path, source.line_and_column(item.body_start + match.start())[0]
        elif is_requirements_file(source.path):
            for line in parse_requirements(source.text):
                if line.name == package:
                    return source.path, source.line_and_column(line.offset)[0]
    return None


def builds_of(version: Version, tag: str, pages: Iterable[ProjectFiles]) -> list[ReleaseFile]:
    """The files of that version for that CUDA: labelled so, or without a label in the CUDA's own folder."""
    return [
        file
        for page in pages
        for file in page.of(version)
        if not file.yanked and (file.version.local == tag or (file.version.local is None and f"/{tag}" in page.index))
    ]


def cuda_folders(names: Iterable[str]) -> list[str]:
    """The folders of a listing that are named after a CUDA version."""
    return sorted({name.strip("/") for name in names if _FOLDER.fullmatch(name.strip("/"))})


def check_cuda_build(
    package: str,
    version: Version,
    cuda: str,
    pages: Sequence[ProjectFiles],
    others: Mapping[str, bool],
    *,
    skipping: bool,
) -> list[Finding]:
    """`no-cuda-build` if no index has the package at that version for that CUDA.

    `others` tells for which CUDA tags the library's own index has it; `skipping` is the explicit choice to go without.
    """
    tag = cuda_tag(cuda)
    if tag is not None and builds_of(version, tag, pages):
        return []
    known = {file.version.local for file in files_of(pages, version) if file.version.local}
    there = sorted(known | {other for other, has in others.items() if has})
    listed = f"there is: {', '.join(there)}" if there else "no index that was asked has any build of that version"
    asked = ", ".join(page.index for page in pages)
    return [
        Finding(
            check="no-cuda-build",
            severity=Severity.WARNING if skipping else Severity.ERROR,
            detail=f"{package} {version} has no build for CUDA {cuda} ({tag or 'no tag'}); {listed}. Asked: {asked}.",
            hint="" if skipping else "take another release or CUDA_VERSION, or --skip-jit-cache to go without a check",
            reason="NO_CUDA_BUILD",
        )
    ]
