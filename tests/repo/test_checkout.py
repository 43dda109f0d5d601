"""Checks on this checkout: its pins agree, its schemas hold, its README lists every command."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections import Counter
from pathlib import Path

import jsonschema
import pytest

from tooling import cli
from tooling.edges.files.tree import load_tree
from tooling.edges.packaged_data import load_library
from tooling.pins.drift import check_pins
from tooling.pins.variable_checks import check_variables
from tooling.pins.versions import dump_versions

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = ROOT / "tooling/data/schemas"


def test_every_place_agrees() -> None:
    tree = load_tree(ROOT, load_library())
    assert [*check_pins(tree), *check_variables(tree)] == []
    assert Counter(site.path for site in tree.pins) == {
        "versions.json": 1, "requirements/cuda.txt": 2, "docker/Dockerfile": 1, "docker/Dockerfile.nightly_torch": 1,
    }  # fmt: skip


def test_the_versions_file_has_the_one_spelling() -> None:
    text = (ROOT / "versions.json").read_text()
    assert text == dump_versions(load_tree(ROOT, load_library()).variables)


@pytest.mark.parametrize("path", sorted(SCHEMAS.glob("*.json")), ids=lambda path: path.name)
def test_every_schema_is_one(path: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(path.read_text()))


def test_the_settings_and_the_pins_follow_their_schemas() -> None:
    for data, name in [
        (json.loads((ROOT / "versions.json").read_text()), "versions"),
        (json.loads(json.dumps(tomllib.loads((ROOT / "release.toml").read_text()), default=str)), "release"),
    ]:
        jsonschema.validate(data, json.loads((SCHEMAS / f"{name}.schema.json").read_text()))


def test_the_readme_lists_every_command() -> None:
    readme = (ROOT / "README.md").read_text()
    rows = set(re.findall(r"^\| `(?:nox -s|python -m tooling) ([a-z0-9-]+)", readme, re.MULTILINE))
    assert set(cli.COMMANDS) <= rows


def test_every_nox_session_says_what_it_does_and_is_short() -> None:
    for node in ast.parse((ROOT / "noxfile.py").read_text()).body:
        if isinstance(node, ast.FunctionDef):
            assert ast.get_docstring(node), node.name
            assert len(node.body) <= 10, node.name


@pytest.mark.parametrize("name", ["tooling", "tests"])
def test_nox_leaves_what_it_runs_the_time_to_end_what_that_started(name: str) -> None:
    """After Ctrl-C; by itself nox kills after half a second, and a server or a container would be left."""
    body = {
        node.name: node
        for node in ast.parse((ROOT / "noxfile.py").read_text()).body
        if isinstance(node, ast.FunctionDef)
    }
    calls = [
        node for node in ast.walk(body[name]) if isinstance(node, ast.Call) and ast.unparse(node.func) == "session.run"
    ]
    assert calls
    for call in calls:
        given = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        assert (given["interrupt_timeout"], given["terminate_timeout"]) == ("ENDING_S", "ENDING_S")


def test_every_link_in_the_documents_leads_somewhere() -> None:
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name}: {target}"
