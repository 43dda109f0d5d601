"""Imports point down: cli > commands > edges > gate > evidence > stages > pins > findings > errors."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEIGHTS = {
    "errors": 0, "redaction": 0, "strict_json": 0, "findings": 1, "pins": 2,
    "releases": 3, "capabilities": 3, "images": 3, "smoke": 3, "gsm8k": 3, "warmup": 3,
    "evidence": 4, "gate": 5, "edges": 6, "commands": 7, "cli": 8, "__main__": 9,
}  # fmt: skip
STAGES = {name for name, height in HEIGHTS.items() if height == 3}
MAY_USE_CAPABILITIES = {"smoke", "gate", "warmup"}


def _room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def _imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names if node.module == "tooling")}
    return {name for name in found if name.startswith("tooling.") and _room(name) != "__version__"}


def broken_rules(importer: str, imported: set[str]) -> list[str]:
    """Every import of that module which points up or across."""
    room, problems = _room(importer), []
    for name in sorted(imported):
        other = _room(name)
        if other == room:
            continue
        across = room in STAGES and other in STAGES and not (other == "capabilities" and room in MAY_USE_CAPABILITIES)
        if across or (HEIGHTS[other] > HEIGHTS[room]):
            problems.append(f"{importer} imports {name}")
    return problems


def _modules() -> list[Path]:
    return sorted((ROOT / "tooling").rglob("*.py"))


@pytest.mark.parametrize("path", _modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_down(path: Path) -> None:
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    if module != "tooling":
        assert broken_rules(module, _imports(path)) == []


def test_an_import_that_points_up_is_seen() -> None:
    assert broken_rules("tooling.pins.plan", {"tooling.edges.files"}) == [
        "tooling.pins.plan imports tooling.edges.files"
    ]
    assert broken_rules("tooling.smoke.checks", {"tooling.gsm8k.score"}) != []
    assert broken_rules("tooling.smoke.checks", {"tooling.capabilities.gating"}) == []


def test_warmup_needs_only_what_engines_have() -> None:
    for path in (ROOT / "tooling" / "warmup").rglob("*.py"):
        assert {_room(name) for name in _imports(path)} <= {"warmup", "capabilities", "errors", "findings", "pins"}, (
            path
        )
