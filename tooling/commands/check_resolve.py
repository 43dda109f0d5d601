"""`check --resolve`: asks uv about the requirements file on each of the images' machines."""

from __future__ import annotations

from pathlib import Path

from tooling.commands.bump_index import requirement_lines
from tooling.commands.progress import waiting
from tooling.commands.terminal import Terminal
from tooling.edges.pip_config import load_index_settings
from tooling.edges.uv import needs_best_match, resolve
from tooling.errors import InputError
from tooling.findings import Finding
from tooling.pins.scan import Tree
from tooling.releases.index_options import read_index_options
from tooling.releases.resolution import Resolution, check_resolution
from tooling.releases.targets import make_targets

REQUIREMENTS = "requirements/cuda.txt"


def check_resolves(root: Path, tree: Tree, terminal: Terminal) -> tuple[list[Finding], list[Resolution]]:
    """Findings and answers, one machine after the other: one that fails leaves the others as they are.

    Raises:
        InputError: the tree has no requirements file that pins the library.
        EdgeError: uv or an index does not answer.
    """
    path = _requirements_file(tree)
    options = read_index_options(
        line for source, lines in requirement_lines(tree) if source.path == path for line in lines
    )
    settings = load_index_settings(options=options)
    if needs_best_match(settings):
        labels = ", ".join(address.label for address in settings.extra)
        terminal.say(f"uv is told unsafe-best-match, since pip has extra indexes and weighs them all: {labels}")
    findings: list[Finding] = []
    answers: list[Resolution] = []
    for target in make_targets(tree.settings.releases.platforms, tree.variables):
        with waiting(f"uv resolves {path} for {target}"):
            answer = resolve(root, path, target, settings)
        answers.append(answer)
        findings += check_resolution(path, answer)
        terminal.say(_line(tree, answer))
    return findings, answers


def _requirements_file(tree: Tree) -> str:
    paths = [
        source.path for source, lines in requirement_lines(tree) if any(_is_ours(tree, line.name) for line in lines)
    ]
    if not paths:
        raise InputError("--resolve: no requirements file here pins the library", reason="NO_REQUIREMENTS")
    return REQUIREMENTS if REQUIREMENTS in paths else paths[0]


def _is_ours(tree: Tree, name: str | None) -> bool:
    return name in tree.library.packages


def _line(tree: Tree, answer: Resolution) -> str:
    if answer.conflict is not None:
        return f"{answer.target}: no solution"
    served = [f"{name} {found[0]} from {found[1]}" for name, found in answer.packages.items() if _is_ours(tree, name)]
    return f"{answer.target}: {len(answer.packages)} packages; " + ", ".join(served)
