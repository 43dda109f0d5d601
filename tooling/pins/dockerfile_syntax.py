"""Dockerfiles as instructions with positions, after the Dockerfile reference; nothing is expanded or judged here.

An instruction's text has the length of its source: line continuations, and comment lines between continued lines, are
blanked out, so an offset into it is an offset into the file. Heredoc bodies belong to their instruction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tooling.pins.patterns import late

_HEREDOC = late(r"<<-?\s*([\"']?)([A-Za-z_][A-Za-z0-9_]*)\1")
_ESCAPE = late(r"#\s*escape\s*=\s*([\\`])\s*", re.IGNORECASE)
_DIRECTIVE = late(r"#\s*[A-Za-z]+\s*=.*")
_WORD = late(r"""(?:\\.|"(?:\\.|[^"\\])*"|'[^']*'|[^\s"'\\]|["'\\])+""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word of an instruction, quotes included, and its span in the file."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One instruction: its keyword in capitals, what follows it, and where that begins in the file.

    `stage` counts FROMs so far: 0 is before the first one. `start` is the keyword's own offset.
    """

    keyword: str
    body: str
    start: int
    body_start: int
    stage: int

    def words(self) -> list[Word]:
        """The words that follow the keyword, split at spaces outside quotes."""
        return [
            Word(text=match.group(), start=self.body_start + match.start(), end=self.body_start + match.end())
            for match in _WORD.finditer(self.body)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """`NAME=value` in an ARG or ENV; `value` is without quotes, and `start` and `end` span it; None without `=`."""

    name: str
    value: str | None
    start: int
    end: int
    name_start: int


def parse_dockerfile(text: str) -> list[Instruction]:
    """Every instruction, known or not, in order."""
    escape, stage, result = _escape_character(text), 0, []
    for start, body in _logical(text, escape):
        lead = len(body) - len(body.lstrip())
        keyword = re.match(r"\S*", body[lead:])
        length = keyword.end() if keyword else 0
        name = body[lead : lead + length].upper()
        stage += name == "FROM"
        offset = lead + length
        result.append(
            Instruction(keyword=name, body=body[offset:], start=start + lead, body_start=start + offset, stage=stage)
        )
    return result


def assignments(instruction: Instruction) -> list[Assignment]:
    """The names that an ARG or ENV sets, in order; ENV's old form `ENV NAME value` is one name."""
    words = instruction.words()
    if instruction.keyword == "ENV" and words and "=" not in words[0].text:
        return _old_env(instruction, words)
    return [_assignment(word) for word in words]


def _assignment(word: Word) -> Assignment:
    name, equals, value = word.text.partition("=")
    if not equals:
        return Assignment(name=name, value=None, start=word.end, end=word.end, name_start=word.start)
    start = word.start + len(name) + 1
    quoted = len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'"
    inset = 1 if quoted else 0
    return Assignment(
        name=name,
        value=value[inset : len(value) - inset],
        start=start + inset,
        end=word.end - inset,
        name_start=word.start,
    )


def _old_env(instruction: Instruction, words: list[Word]) -> list[Assignment]:
    if len(words) < 2:
        return []
    first, last = words[1], words[-1]
    value = instruction.body[first.start - instruction.body_start : last.end - instruction.body_start]
    return [Assignment(name=words[0].text, value=value, start=first.start, end=last.end, name_start=words[0].start)]


def _escape_character(text: str) -> str:
    """The line continuation: a backslash, unless a directive at the very top says otherwise."""
    for line in text.removeprefix("\ufeff").splitlines():
        if not _DIRECTIVE.fullmatch(line.strip()):
            return "\\"
        if found := _ESCAPE.fullmatch(line.strip()):
            return found[1]
    return "\\"


def _logical(text: str, escape: str) -> Iterator[tuple[int, str]]:
    """Offset and text of each logical line, blanked as the module says."""
    continued = re.compile(rf"{re.escape(escape)}[ \t]*$")
    lines = _physical(text)
    for offset, line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        parts, body = [], line
        while continued.search(body.rstrip("\r\n")):
            parts.append(_without_continuation(body, continued))
            body = _next_part(lines, parts)
        parts.append(body)
        joined = "".join(parts)
        yield offset, joined + "".join(_heredoc_bodies(joined, lines))


def _physical(text: str) -> Iterator[tuple[int, str]]:
    position = 1 if text.startswith("\ufeff") else 0
    for line in text[position:].splitlines(keepends=True):
        yield position, line
        position += len(line)


def _next_part(lines: Iterator[tuple[int, str]], parts: list[str]) -> str:
    """The next line that is no comment and not empty; those are blanked into `parts`. Empty at the file's end."""
    for _, line in lines:
        if line.strip() and not line.lstrip().startswith("#"):
            return line
        parts.append(" " * len(line))
    return ""


def _without_continuation(line: str, continued: re.Pattern[str]) -> str:
    body = line.rstrip("\r\n")
    match = continued.search(body)
    kept = body[: match.start()] if match else body
    return kept + " " * (len(line) - len(kept))


def _heredoc_bodies(joined: str, lines: Iterator[tuple[int, str]]) -> Iterator[str]:
    if joined.lstrip()[:4].upper() not in {"RUN ", "COPY", "ADD "}:
        return
    for match in _HEREDOC.finditer(joined):
        for _, line in lines:
            yield line
            if line.strip() == match[2]:
                break
