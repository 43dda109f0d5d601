"""Pins that are not the library's but must agree all the same: torch's variable, CUDA in tags and base images."""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from tooling.findings import Finding, Severity
from tooling.pins.dockerfile_syntax import parse_dockerfile
from tooling.pins.patterns import late
from tooling.pins.readers.dockerfile_arg import matches as is_dockerfile
from tooling.pins.readers.requirement_lines import matches as is_requirements_file
from tooling.pins.requirements import parse_requirements
from tooling.pins.scan import Tree
from tooling.pins.texts import SourceText

_BUILD = late(r"(?<=[/+])cu(?P<digits>\d{3})(?![A-Za-z0-9.])")
"""A CUDA build in an address or a local version; a Dockerfile may name other tags in branches that are not taken."""
_TAG = late(r"(?<![A-Za-z0-9.])cu(?P<digits>\d{2,3})(?![A-Za-z0-9.])")
_BASE = late(r"(?:^|/)cuda:(?P<cuda>\d+\.\d+(?:\.\d+)?)(?:-[a-z0-9-]*?)?(?:ubuntu(?P<ubuntu>\d\d\.\d\d))?$")
_NOT_PACKAGES = {"cuda", "ubuntu", "python"}


def check_agreement(tree: Tree) -> list[Finding]:
    """`pin-agreement` for every place that names another torch (or other pinned package), CUDA or Ubuntu.

    A warning in trees without a release.toml, whose requirements may serve more than one CUDA.
    """
    findings: list[Finding] = []
    for source in tree.texts:
        if is_requirements_file(source.path):
            findings += _check_requirements(tree, source)
        elif is_dockerfile(source.path):
            findings += _check_dockerfile(tree, source)
    return findings


def _check_requirements(tree: Tree, source: SourceText) -> Iterator[Finding]:
    """Packages that have a variable of their own (`TORCH_VERSION`), and CUDA tags in extras, names and addresses."""
    tied = _tied_packages(tree)
    for line in parse_requirements(source.text):
        found = line.exact_version
        if line.name in tied and found is not None and not _same_public(found, tree.variables[tied[line.name]]):
            yield _finding(tree, source, line.offset, f"{line.name}=={found}", tied[line.name])
        yield from _check_tags(tree, source, line.text, line.offset, _TAG)


def _check_dockerfile(tree: Tree, source: SourceText) -> Iterator[Finding]:
    for item in parse_dockerfile(source.text):
        yield from _check_tags(tree, source, item.body, item.body_start, _BUILD)
        for word in item.words() if item.keyword in {"FROM", "ARG"} else ():
            value, offset = word.text.rpartition("=")[2].strip("\"'"), word.start
            yield from _check_base(tree, source, value, offset)


def _check_base(tree: Tree, source: SourceText, image: str, offset: int) -> Iterator[Finding]:
    """A base image that is spelled out: variables in it agree by themselves."""
    match = _BASE.search(image)
    if match is None:
        return
    for name, found in (("CUDA_VERSION", match["cuda"]), ("UBUNTU_VERSION", match["ubuntu"])):
        if found and name in tree.variables and found != tree.variables[name]:
            yield _finding(tree, source, offset, f"the base image {image}", name)


def _check_tags(tree: Tree, source: SourceText, text: str, offset: int, tags: re.Pattern[str]) -> Iterator[Finding]:
    """`cu130` must be CUDA 13.0, `cu13` CUDA 13."""
    major, _, rest = tree.variables.get("CUDA_VERSION", "").partition(".")
    minor = rest.partition(".")[0]
    if not (major.isdigit() and minor.isdigit()):
        return
    for match in tags.finditer(text):
        expected = major if len(match["digits"]) == 2 else major + minor
        if match["digits"] != expected:
            yield _finding(tree, source, offset + match.start(), match.group(), "CUDA_VERSION")


def _tied_packages(tree: Tree) -> dict[str, str]:
    """Normalised package name to the variable that pins it too."""
    names = {canonicalize_name(name.removesuffix("_VERSION")): name for name in tree.variables if "_VERSION" in name}
    return {
        package: name
        for package, name in names.items()
        if package not in _NOT_PACKAGES and not tree.library.names_version(name)
    }


def _same_public(found: str, declared: str) -> bool:
    try:
        return Version(Version(found).public) == Version(Version(declared).public)
    except InvalidVersion:
        return found == declared


def _finding(tree: Tree, source: SourceText, offset: int, found: str, variable: str) -> Finding:
    return Finding(
        check="pin-agreement",
        severity=Severity.ERROR if tree.settings.is_configured else Severity.WARNING,
        path=source.path,
        line=source.line_and_column(offset)[0],
        detail=f"{found} stands here, and {tree.versions_file} says {variable} {tree.variables[variable]}.",
        hint="make the two equal",
        reason="DRIFT",
    )
