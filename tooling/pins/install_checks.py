"""Installs of the library as they stand in Dockerfiles, scripts and workflows: without `==`, under two names, or with
its version check silenced. Whether pins agree is `drift`'s.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.utils import canonicalize_name

from tooling.findings import Finding, Severity
from tooling.pins.dockerfile_syntax import parse_dockerfile
from tooling.pins.patterns import late
from tooling.pins.readers.dockerfile_arg import matches as is_dockerfile
from tooling.pins.readers.phrases import has_bare_repository, library_names
from tooling.pins.readers.python_source import matches as is_python
from tooling.pins.readers.shell_text import matches as is_shell
from tooling.pins.readers.yaml_values import matches as is_yaml
from tooling.pins.scan import Tree
from tooling.pins.shell_syntax import ShellWord, blank_comments, find_commands
from tooling.pins.sites import Role
from tooling.pins.texts import SourceText

_INSTALLERS = frozenset(("pip", "pip3", "uv", "pipx", "conda", "mamba", "micromamba"))
_VERBS = frozenset(("install", "add", "download", "wheel"))
_WILDCARD = late(r"={2,3}\s*\\?[\"']?[vV]?\d[\d.]*\.\*")
_BRACES = late(r"\{([\w-]+),[\w,-]+\}")
"""A shell's `flashinfer-{cubin,jit-cache}`: what is said of the first of them holds for all."""
_OFF = frozenset(("", "0", "false", "no", "off"))


def check_installs(tree: Tree) -> list[Finding]:
    """Every finding about installs, file by file."""
    findings = list(_check_names(tree))
    for source in tree.texts:
        if tree.library.is_named_in(source.text):
            findings += [*_check_unpinned(tree, source), *_check_bypass(tree, source)]
    return findings


def _check_unpinned(tree: Tree, source: SourceText) -> Iterator[Finding]:
    if is_dockerfile(source.path):
        pieces = [
            (item.start, source.text[item.start : item.body_start] + item.body)
            for item in parse_dockerfile(source.text)
        ]
    elif is_shell(source.path) or is_yaml(source.path):
        pieces = [(0, blank_comments(source.text))]
    elif is_python(source.path):
        yield from _check_python(tree, source)
        return
    else:
        return
    for start, text in pieces:
        for word, offset in _installed_words(text):
            yield from _check_word(tree, source, word, start + offset)


def _installed_words(text: str) -> Iterator[tuple[str, int]]:
    """Every word behind an install verb, without its quotes, and where it begins."""
    for command in find_commands(text):
        words = command.words
        names = [re.split(r"[/]", word.text)[-1].strip("\"'") for word in words]
        verb = next((index for index, name in enumerate(names) if name in _VERBS), None)
        if verb is not None and _INSTALLERS & set(names[:verb]):
            for word in _targets(words[verb + 1 :]):
                yield _BRACES.sub(r"\1", word.bare), word.inner_start
        for word in words:
            if word.is_quoted and " install " in word.text:
                yield from ((inner, word.inner_start + offset) for inner, offset in _installed_words(word.bare))


def _targets(words: list[ShellWord]) -> Iterator[ShellWord]:
    """The words without what options such as `-e PATH` take."""
    is_value = False
    for word in words:
        if not is_value and not word.text.startswith("-"):
            yield word
        is_value = word.text in {"-e", "-r", "-c", "-t", "-i", "-f", "--editable", "--requirement", "--constraint"}


def _check_word(tree: Tree, source: SourceText, word: str, offset: int) -> Iterator[Finding]:
    if has_bare_repository(word, tree.library):
        yield _unpinned(source, word, offset, "without a ref: any commit may come.", hint="add @ and a release tag")
        return
    match = re.match(rf"(?P<name>{library_names(tree.library)})(?![\w.-])(?:\[[^\]]*\])?\s*(?P<rest>.*)", word)
    if match is None or tree.library.package_of(match["name"]) is None:
        return
    rest = match["rest"].strip()
    is_exact = "==" in rest or rest.startswith("@") or (rest.startswith("=") and not rest.startswith("=<"))
    if is_exact and not _WILDCARD.match(rest):
        return
    why = "without an exact version: " + ("any release may come." if not rest else "a range is no pin.")
    yield _unpinned(source, word, offset, why, hint="write it with ==")


def _unpinned(source: SourceText, word: str, offset: int, why: str, *, hint: str) -> Finding:
    return Finding(
        check="unpinned",
        path=source.path,
        line=source.line_and_column(offset)[0],
        detail=f"`{word}` is installed {why}",
        hint=hint,
        reason="UNPINNED",
    )


def _check_python(tree: Tree, source: SourceText) -> Iterator[Finding]:
    """`.pip_install("flashinfer-python")` of image definitions."""
    pattern = re.compile(rf"install\([^()#]*?[\"'](?P<name>{library_names(tree.library)})(?:\[[^\]]*\])?[\"']")
    for match in pattern.finditer(source.text):
        yield from _check_word(tree, source, match["name"], match.start("name"))


def _check_bypass(tree: Tree, source: SourceText) -> Iterator[Finding]:
    """A variable that silences the library's own version check: an error where an image or a workflow sets it."""
    in_image = is_dockerfile(source.path)
    in_python = is_python(source.path)
    if not (in_image or in_python or is_shell(source.path) or is_yaml(source.path)):
        return
    plain = blank_comments(source.text)
    for name in tree.library.bypass_variables:
        pattern = (
            rf"(?<![\w${{]){name}[ \t]*[=:][ \t]*[\"']?(?P<value>[\w.]*)|\bENV[ \t]+{name}[ \t]+[\"']?(?P<old>[\w.]*)"
        )
        if in_python:
            pattern = rf"(?<!get\()(?<!getenv\()[\"']{name}[\"']\s*(?:\]\s*=(?!=)|[,:])\s*[\"']?(?P<value>\w*)(?P<old>)"
        for match in re.finditer(pattern, plain):
            if (match["value"] or match["old"] or "").lower() in _OFF:
                continue
            in_workflow = is_yaml(source.path)
            yield Finding(
                check="bypass",
                severity=Severity.ERROR if in_image or in_workflow else Severity.WARNING,
                path=source.path,
                line=source.line_and_column(match.start())[0],
                detail=f"{name} is set: packages of different versions load without a word, and fail later.",
                hint="remove it",
                reason="VERSION_CHECK_OFF",
            )


def _check_names(tree: Tree) -> Iterator[Finding]:
    """One package under its former and its present name: pip takes them for two and installs both."""
    written = re.compile(rf"({library_names(tree.library)})(?:\s*\[[^\]]*\])?[\s(=\"':]*$")
    named: dict[str, list[tuple[str, int]]] = {}
    for site in tree.sites:
        source = tree.text(site.path)
        if site.role in {Role.PIN, Role.MINIMUM, Role.USE} and site.package and source and site.shape == "requirement":
            match = written.search(source.text, max(0, site.start - 80), site.start)
            if match is not None:
                named.setdefault(canonicalize_name(match[1]), []).append((site.path, site.line))
    for former in tree.library.former_names:
        for path, line in named.get(former, ()) if tree.library.main_package in named else ():
            yield Finding(
                check="two-names",
                path=path,
                line=line,
                detail=f"`{former}` is the former name of {tree.library.main_package}, which is pinned too.",
                hint=f"write {tree.library.main_package} everywhere",
                reason="TWO_NAMES",
            )
