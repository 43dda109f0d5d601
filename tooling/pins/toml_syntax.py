"""Positions of the string values in a TOML text; the standard library's and tomlkit's parsers give none.

It follows TOML 1.0's lexical rules. Whether the text is valid TOML is for a parser to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tooling.pins.patterns import late

_TOKEN = late(
    r'''(?P<comment>\#[^\n]*)|(?P<string>"""(?:\\.|[^\\])*?"""(?:"{0,2})|\'\'\'.*?\'\'\'(?:'{0,2})'''
    r"""|"(?:\\.|[^"\\\n])*"|'[^'\n]*')|(?P<header>(?m:^)[ \t]*\[\[?[^\]\n]+\]\]?)"""
    r"""|(?P<mark>[\[\]{}=,\n])|(?P<bare>[A-Za-z0-9_.+:-]+)""",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class TomlString:
    """A string value: the table, the keys inside it (also of inline tables), and the span between its quotes."""

    table: str
    keys: tuple[str, ...]
    value: str
    start: int
    end: int


@dataclass(slots=True)
class _State:
    table: str = ""
    keys: list[str] = field(default_factory=lambda: [""])
    brackets: list[str] = field(default_factory=list)
    expects_key: bool = True
    pending: list[str] = field(default_factory=list)


def find_strings(text: str) -> Iterator[TomlString]:
    """Every string value in order, as it is written (escapes are not resolved). Linear in the text."""
    state = _State()
    for token in _TOKEN.finditer(text):
        kind, word = token.lastgroup, token.group()
        if kind == "header" and not state.brackets:
            state.table, state.keys, state.expects_key, state.pending = word.strip(" \t[]"), [""], True, []
        elif kind in {"mark", "header"}:
            for mark in word if kind == "mark" else word.strip():
                _step(state, mark)
        elif kind == "bare" or (kind == "string" and state.expects_key):
            state.pending.append(word.strip("\"'"))
        elif kind == "string":
            quote = 3 if word[:3] in {'"""', "'''"} else 1
            keys = tuple(key for key in state.keys if key)
            yield TomlString(state.table, keys, word[quote:-quote], token.start() + quote, token.end() - quote)


def _step(state: _State, mark: str) -> None:
    if mark == "=":
        state.keys[-1], state.expects_key, state.pending = ".".join(state.pending), False, []
    elif mark == "{":
        state.brackets.append(mark)
        state.keys.append("")
        state.expects_key, state.pending = True, []
    elif mark == "[":
        state.brackets.append(mark)
        state.expects_key = False
    elif mark in "}]" and state.brackets:
        if state.brackets.pop() == "{":
            state.keys.pop()
        state.expects_key, state.pending = False, []
    elif mark == "," and state.brackets:
        state.expects_key, state.pending = state.brackets[-1] == "{", []
    elif mark == "\n" and not state.brackets:
        state.expects_key, state.pending = True, []
