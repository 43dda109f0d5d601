"""Every reason word and exit code that a user meets stands in a document, and the documents name no others."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tooling.errors import ExitCode

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
WORD = re.compile(r"[A-Z][A-Z0-9]+(_[A-Z0-9]+)*")
SAYING = {"note", "failure", "finding", "_finding", "_not_run"}
"""Functions of the smoke and the gate that take the word first, or after the check's name."""
RAISED = {"InputError": 2, "BundleError": 2, "SettingsError": 2, "EdgeError": 3, "WarmupError": 3}


def modules() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted((ROOT / "tooling").rglob("*.py")):
        yield path, ast.parse(path.read_text())


def words(node: ast.AST) -> set[str]:
    texts = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    return {text for text in texts if WORD.fullmatch(text)}


def said() -> dict[str, str]:
    """Words that the code gives as a reason, or that the gate says of a record, each with one place."""
    found: dict[str, str] = {}
    for path, module in modules():
        for node in ast.walk(module):
            if isinstance(node, ast.Call) and name_of(node) in SAYING:
                given = {word for argument in node.args[:2] for word in words(argument)}
                found |= {word: f"{path.relative_to(ROOT)}:{node.lineno}" for word in given}
                continue
            if isinstance(node, ast.keyword):
                names = {node.arg}
            elif isinstance(node, ast.Assign):
                names = {target.id for target in node.targets if isinstance(target, ast.Name)}
            else:
                continue
            if names & {"reason", "word"}:
                found |= {word: f"{path.relative_to(ROOT)}:{node.value.lineno}" for word in words(node.value)}
    return found


def name_of(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def raised() -> dict[str, set[int]]:
    """Exit codes of the words that are raised with one of the families by name."""
    found: dict[str, set[int]] = {}
    for _, module in modules():
        for call in (node for node in ast.walk(module) if isinstance(node, ast.Call)):
            if isinstance(call.func, ast.Name) and call.func.id in RAISED:
                for option in (option for option in call.keywords if option.arg == "reason"):
                    for word in words(option.value):
                        found.setdefault(word, set()).add(RAISED[call.func.id])
    return found


def rows() -> Iterator[tuple[str, set[str], str]]:
    """Of each table with a column for reasons: the place, the row's words, and its cell for the exit code."""
    for document in DOCUMENTS:
        header: list[str] = []
        for number, line in enumerate(document.read_text().splitlines(), 1):
            cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
            plain = [cell.strip("`") for cell in cells]
            if "reason" in plain:
                header = plain
            elif header and len(cells) == len(header):
                row = dict(zip(header, cells, strict=True))
                found = {word for word in re.findall(r"`([^`]+)`", row["reason"]) if WORD.fullmatch(word)}
                yield f"{document.name}:{number}", found, row.get("exit", row.get("exit code", ""))
            else:
                header = []


def test_every_reason_of_the_code_stands_in_a_document() -> None:
    documented = {word for path in DOCUMENTS for word in re.findall(r"`([A-Z0-9_]+)`", path.read_text())}
    found = said()
    assert len(found) > 200
    assert {word: place for word, place in found.items() if word not in documented} == {}


def test_every_word_of_the_gate_stands_where_the_gate_is_explained() -> None:
    pages = [(ROOT / f"docs/{name}.md").read_text() for name in ("gate", "attestation")]
    pages.append((ROOT / "docs/reasons.md").read_text().partition("## `gate`")[2])
    explained = set(re.findall(r"`([A-Z0-9_]+)`", "\n".join(pages)))
    elsewhere = {"BAD_ARGUMENTS", "BAD_SETTINGS", "NO_TARGET"}  # of any command, and of `matrix`
    gate = {
        word for word, place in said().items() if place.startswith(("tooling/gate/", "tooling/edges/evidence_files"))
    }
    assert len(gate) > 40
    assert gate - explained - elsewhere == set()


def test_every_reason_of_a_table_is_one_of_the_code() -> None:
    constants = {word for _, module in modules() for word in words(module)}
    composed = tuple(
        str(node.values[0].value)
        for _, module in modules()
        for node in ast.walk(module)
        if isinstance(node, ast.JoinedStr)
        and isinstance(node.values[0], ast.Constant)
        and re.fullmatch(r"[A-Z_]{4,}_", str(node.values[0].value))
    )
    found = [(place, word) for place, row, _ in rows() for word in row]
    assert len(found) > 150
    assert [pair for pair in found if pair[1] not in constants and not pair[1].startswith(composed)] == []


def test_a_reason_s_exit_code_is_that_of_the_error_it_is_raised_with() -> None:
    codes = raised()
    wrong = [
        (place, word, told, codes[word])
        for place, row, told in rows()
        for word in sorted(row & codes.keys())
        if re.search(r"\b\d\b", told) and not codes[word] & {int(digit) for digit in re.findall(r"\b\d\b", told)}
    ]
    assert wrong == []


def test_the_readme_s_exit_codes_are_those_of_the_code() -> None:
    listed = re.findall(r"^\| (\d) \| [a-z]", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert [int(code) for code in listed] == [int(code) for code in ExitCode]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_no_document_names_an_exit_code_that_there_is_not(path: Path) -> None:
    named = re.findall(r"exit code (\d+)|exits? (?:with )?(\d+)", path.read_text())
    assert {int(first or second) for first, second in named} <= {*map(int, ExitCode), 130}
