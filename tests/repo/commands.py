"""Commands as they stand in documents and workflows: found in texts, and read by the parsers that would read them."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tooling import cli

ROOT = Path(__file__).resolve().parents[2]

STANDS_FOR = {
    "sha256:…": "sha256:" + "a" * 64,
    "VERSION": "0.6.13",
    "TIME": "2026-06-01T12:00:00Z",
    "SHA": "b" * 40,
    "TAG": "name:tag",
    "NAME": "name",
    "N": "5",
    "URL": "http://127.0.0.1:8000",
}
"""What a placeholder is read as, where its own word is no value that the option takes."""


@dataclass(frozen=True, slots=True)
class Found:
    """A command, and the document and line that it stands at."""

    where: str
    words: tuple[str, ...]

    @property
    def text(self) -> str:
        return " ".join(self.words)


@cache
def sessions() -> Mapping[str, str | None]:
    """Sessions of nox by name, each with the tooling command that it passes its words to, or None."""
    found: dict[str, str | None] = {}
    for node in ast.parse((ROOT / "noxfile.py").read_text()).body:
        if isinstance(node, ast.FunctionDef) and node.decorator_list:
            found[_session_name(node)] = next(_passed_to(node), None)
    return found


def tooling_words(words: tuple[str, ...]) -> tuple[str, tuple[str, ...]] | None:
    """The tooling command and its own words, however it is called; None for another program or session."""
    if words[:2] == ("nox", "-s"):
        command = sessions().get(words[2]) if len(words) > 2 else None
        rest = words[3:]
        if command is None:
            return None
        assert rest[:1] in {(), ("--",)}, f"{' '.join(words)}: words for the command stand behind --"
        return command, rest[1:]
    for start in (("python", "-m", "tooling"), ("tooling",)):
        if words[: len(start)] == start:
            before, rest = _split_root(words[len(start) :])
            return rest[0], (*before, *rest[1:])
    return None


def read_with_its_parser(command: str, words: tuple[str, ...]) -> None:
    """Raises InputError if the command's own parser does not take these words; placeholders stand for samples."""
    cli.make_parser(command).parse_args([_sample(word) for word in words])


def split(line: str) -> tuple[str, ...]:
    """The words of one command; a comment or an aligned remark behind it is no part of it."""
    return tuple(shlex.split(re.split(r"\s{3,}|\s+#\s", line.strip())[0]))


def _sample(word: str) -> str:
    option, sign, value = word.partition("=")
    if sign and option.startswith("--"):
        return f"{option}={STANDS_FOR.get(value, value)}"
    return STANDS_FOR.get(word, word)


def _split_root(words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    count = 0
    while words[count] in {"--root", "--json"}:
        count += 2 if words[count] == "--root" else 1
    return words[:count], words[count:]


def _session_name(node: ast.FunctionDef) -> str:
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call):
            for keyword in decorator.keywords:
                if keyword.arg == "name":
                    return str(ast.literal_eval(keyword.value))
    return node.name


def _passed_to(node: ast.FunctionDef) -> Iterator[str]:
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "tooling":
            yield str(ast.literal_eval(call.args[1]))
