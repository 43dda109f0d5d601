"""Checks on all variables of the versions file, not only the library's: Dockerfile defaults, bake targets, scopes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tooling.errors import InputError
from tooling.findings import Finding, Severity
from tooling.pins.bake_file import BakeFile, parse_bake
from tooling.pins.dockerfile_syntax import Instruction, assignments, parse_dockerfile
from tooling.pins.patterns import late
from tooling.pins.readers.dockerfile_arg import matches as is_dockerfile
from tooling.pins.scan import Tree
from tooling.pins.texts import SourceText
from tooling.pins.versions import dump_versions

_KNOWN = frozenset((
    "ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL", "MAINTAINER", "ONBUILD",
    "RUN", "SHELL", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR",
))  # fmt: skip
_NAME = late(r"[A-Za-z_][A-Za-z0-9_]*")


def check_variables(tree: Tree) -> list[Finding]:
    """Every finding about variables and the files that carry them."""
    findings = [*_check_one_spelling(tree), *_check_bake(tree)]
    for source in tree.texts:
        if is_dockerfile(source.path):
            findings += _check_dockerfile(tree, source)
    return findings


def _check_one_spelling(tree: Tree) -> Iterator[Finding]:
    """A configured tree's versions file has one spelling, so that two bumps of it never differ in layout."""
    source = tree.text(tree.versions_file) if tree.versions_file else None
    if source is None or not tree.settings.is_configured:
        return
    plain = source.text.removeprefix("\ufeff").replace("\r\n", "\n")
    if plain.rstrip("\n") != dump_versions(tree.variables).rstrip("\n"):
        yield Finding(
            check="versions-spelling",
            severity=Severity.WARNING,
            path=source.path,
            detail="is laid out in another way than the one spelling (two spaces, one key a line, only defaults).",
            hint="`python -m json.tool --indent 2` gives the layout",
        )


def _check_bake(tree: Tree) -> Iterator[Finding]:
    """Every variable of the versions file reaches some target's args, or release.toml says who else uses it."""
    if tree.versions_file is None:
        return
    bakes = []
    for source in tree.texts:
        name = source.path.rpartition("/")[2]
        if name.startswith("docker-bake"):
            try:
                bakes.append(parse_bake(source.text, path=source.path))
            except InputError as cause:
                yield Finding(check="bake-file", path=source.path, detail=cause.message, reason="BAD_BAKE_FILE")
    if bakes:
        yield from _unreached(tree, bakes)


def _unreached(tree: Tree, bakes: list[BakeFile]) -> Iterator[Finding]:
    reached = {name for bake in bakes for target in bake.targets for name in bake.variables_in_args(target)}
    for name in tree.variables:
        if name in reached or name in tree.settings.also_used_by:
            continue
        is_error = tree.settings.is_configured or name == tree.library.variable
        yield Finding(
            check="bake-variable",
            severity=Severity.ERROR if is_error else Severity.WARNING,
            path=tree.versions_file,
            line=_line_of(tree, name),
            detail=f"{name} is in no bake target's args ({', '.join(bake.path for bake in bakes)}): builds ignore it.",
            hint="pass it in a target's args, or say in release.toml, [bake.also_used_by], who else uses it",
            reason="INERT_VARIABLE",
        )


def _line_of(tree: Tree, name: str) -> int | None:
    source = tree.text(tree.versions_file or "")
    position = -1 if source is None else source.text.find(f'"{name}"')
    return None if source is None or position < 0 else source.line_and_column(position)[0]


def _check_dockerfile(tree: Tree, source: SourceText) -> Iterator[Finding]:
    instructions = parse_dockerfile(source.text)
    for item in instructions:
        if item.keyword not in _KNOWN:
            yield _at(
                source,
                item.start,
                "dockerfile-syntax",
                f"`{item.keyword.lower()}` is no Dockerfile instruction.",
                hint="a RUN may be missing in front of it",
                reason="BAD_DOCKERFILE",
            )
        elif item.keyword == "ARG":
            yield from _check_arg(tree, source, item)
    yield from _check_scopes(tree, source, instructions)


def _check_arg(tree: Tree, source: SourceText, item: Instruction) -> Iterator[Finding]:
    """The names of an ARG, and its defaults against the versions file."""
    for found in assignments(item):
        if not _NAME.fullmatch(found.name):
            yield _at(
                source,
                found.name_start,
                "dockerfile-syntax",
                f"`{item.body.strip()}` is no valid ARG.",
                hint="write ARG NAME=value, without spaces around = and without a trailing comment",
                reason="BAD_DOCKERFILE",
            )
            return
        declared = tree.variables.get(found.name)
        is_literal = bool(found.value) and "$" not in (found.value or "") and found.name != tree.library.variable
        if declared is not None and is_literal and found.value != declared:
            yield _at(
                source,
                found.start,
                "variable-drift",
                f"ARG {found.name} defaults to {found.value}, and {tree.versions_file} says {declared}.",
                hint="make the two equal",
                reason="DRIFT",
            )


def _check_scopes(tree: Tree, source: SourceText, instructions: list[Instruction]) -> Iterator[Finding]:
    """A global ARG is empty in a stage that neither declares it nor builds on one that does (Dockerfile reference)."""
    watched = {*tree.variables, *tree.library.variable_aliases}
    stages: dict[str, set[str]] = {}
    first, local = set[str](), set[str]()
    reported = set[tuple[int, str]]()
    for item in instructions:
        if item.keyword == "FROM":
            local = _open_stage(item, stages)
        for name, offset in _uses(item):
            scope = first if item.keyword == "FROM" or item.stage == 0 else local
            if name in watched and name not in scope and (item.stage, name) not in reported:
                reported.add((item.stage, name))
                yield _at(
                    source,
                    offset,
                    "undeclared-arg",
                    f"{name} is used in a stage that does not declare it, so it is empty there.",
                    hint=f"add `ARG {name}` to this stage",
                    reason="UNDECLARED_ARG",
                )
        if item.keyword in {"ARG", "ENV"}:
            (first if item.stage == 0 else local).update(found.name for found in assignments(item))


def _open_stage(item: Instruction, stages: dict[str, set[str]]) -> set[str]:
    """The names in scope at the start of a stage: what the stage that it builds on had declared."""
    words = [word.text.lower() for word in item.words() if not word.text.startswith("--")]
    scope = set(stages.get(words[0], ())) if words else set()
    if len(words) == 3 and words[1] == "as":
        stages[words[2]] = scope
    return scope


def _uses(item: Instruction) -> Iterator[tuple[str, int]]:
    """Variables that an instruction expands, without those that a RUN sets itself."""
    own = set(re.findall(r"(?:^|[\s;&|(])(?:export\s+)?(\w+)=", item.body)) if item.keyword == "RUN" else set()
    for match in re.finditer(r"(?<!\\)\$(?:\{(\w+)|(\w+))", item.body):
        name = match[1] or match[2]
        if name not in own:
            yield name, item.body_start + match.start()


def _at(source: SourceText, offset: int, check: str, detail: str, *, hint: str, reason: str) -> Finding:
    line, _ = source.line_and_column(offset)
    return Finding(check=check, path=source.path, line=line, detail=detail, hint=hint, reason=reason)
