"""What wins over a pin or leaves it without a value: workflows' build arguments, ENV over ARG, an ARG nobody fills."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tooling.findings import Finding, Severity
from tooling.pins.dockerfile_syntax import Assignment, Instruction, assignments, parse_dockerfile
from tooling.pins.patterns import late
from tooling.pins.readers.dockerfile_arg import matches as is_dockerfile
from tooling.pins.scan import Tree
from tooling.pins.sites import PinSite, same_release
from tooling.pins.texts import SourceText

_PIPELINES = late(
    r"\.github/|\.gitlab|\.buildkite/|\.circleci/|azure-pipelines|jenkinsfile|\.woodpecker|\.drone|\.tekton|\.ci/",
    re.IGNORECASE,
)
_ARGUMENT = late(r"--build-arg[= ]+[\"']?\S*$|\bargs\.\S*$|(?:^|\n)\s*build[-_]args?:(?:[^\n]*\n){1,40}[^\n]*$")
_GIVEN = frozenset((
    "TARGETPLATFORM", "TARGETOS", "TARGETARCH", "TARGETVARIANT", "BUILDPLATFORM", "BUILDOS", "BUILDARCH",
    "BUILDVARIANT", "HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "NO_PROXY", "ALL_PROXY",
))  # fmt: skip
"""Arguments that BuildKit fills by itself (Dockerfile reference, predefined and global-scope platform ARGs)."""


def check_overrides(tree: Tree) -> list[Finding]:
    """Every finding about values that come from elsewhere than the pin, or from nowhere."""
    findings = [finding for site in tree.pins for finding in _check_workflow(tree, site)]
    for source in tree.texts:
        if is_dockerfile(source.path):
            instructions = parse_dockerfile(source.text)
            findings += [*_check_shadowed(tree, source, instructions), *_check_filled(tree, source, instructions)]
    return findings


def _check_workflow(tree: Tree, site: PinSite) -> Iterator[Finding]:
    source = tree.text(site.path)
    if source is None or _PIPELINES.search(site.path) is None:
        return
    if _ARGUMENT.search(source.text[max(0, site.start - 1500) : site.start]) is None:
        return
    agrees = tree.truth is not None and same_release(site.version, tree.truth)
    yield Finding(
        check="override",
        severity=Severity.WARNING if agrees else Severity.ERROR,
        path=site.path,
        line=site.line,
        detail=f"this build argument ({site.spelling}) wins over the pin"
        + (", and holds the same version for now." if agrees else f", which is {tree.truth or 'not one version'}."),
        hint="leave it out, so that builds take the pin",
        reason="OVERRIDE",
    )


def _check_shadowed(tree: Tree, source: SourceText, instructions: list[Instruction]) -> Iterator[Finding]:
    """An ENV of an ARG's name wins over every build argument in its stage (Dockerfile reference)."""
    declared = set[tuple[int, str]]()
    for item in instructions:
        for found in assignments(item) if item.keyword in {"ARG", "ENV"} else ():
            if item.keyword == "ARG":
                declared.add((item.stage, found.name))
            elif _is_shadow(tree, found) and (item.stage, found.name) in declared:
                yield Finding(
                    check="shadowed-arg",
                    path=source.path,
                    line=source.line_and_column(found.name_start)[0],
                    detail=f"ENV {found.name} wins over the ARG of that name: a build argument has no effect.",
                    hint=f"write ENV {found.name}=${{{found.name}}}",
                    reason="SHADOWED_ARG",
                )


def _is_shadow(tree: Tree, found: Assignment) -> bool:
    return tree.library.names_version(found.name) and "$" not in (found.value or "")


def _check_filled(tree: Tree, source: SourceText, instructions: list[Instruction]) -> Iterator[Finding]:
    """An ARG that an install of the library expands, with no default here and no value in a bake or versions file."""
    empty: dict[str, Instruction] = {}
    filled = {*_GIVEN, *tree.variables}
    for item in instructions:
        for found in assignments(item) if item.keyword in {"ARG", "ENV"} else ():
            if found.value:
                filled.add(found.name)
            elif item.keyword == "ARG":
                empty.setdefault(found.name, item)
    for item in instructions:
        if item.keyword in {"ARG", "ENV", "FROM"} or not tree.library.is_named_in(item.body):
            continue
        for name in dict.fromkeys(re.findall(r"(?<!\\)\$\{?(\w+)\}?", item.body)):
            if name in empty and name not in filled and not _is_baked(tree, name):
                filled.add(name)
                yield Finding(
                    check="arg-without-value",
                    path=source.path,
                    line=source.line_and_column(empty[name].start)[0],
                    detail=f"ARG {name} has no default and no bake or versions file gives it a value: "
                    "its value comes from a build argument only, and a plain build goes wrong.",
                    hint=f"give it a default, or add {name} to the versions file",
                    reason="NO_VALUE",
                )


def _is_baked(tree: Tree, name: str) -> bool:
    bakes = (source for source in tree.texts if source.path.endswith((".hcl", ".json")))
    return any(re.search(rf"\b{name}\b", source.text) for source in bakes)
