"""Texts of a tree and the edits planned on them. Reading and applying them is `tooling.edges.files`."""

from __future__ import annotations

import difflib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SourceText:
    """One file's text, decoded without loss: `text.encode() == raw`, with its BOM and line ends.

    `path` is relative to the root, with forward slashes.
    """

    path: str
    text: str
    _line_starts: list[int] = field(init=False, repr=False, compare=False, default_factory=list)

    @property
    def raw(self) -> bytes:
        return self.text.encode()

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """Both counted from 1; `offset` counts characters."""
        if not self._line_starts:
            self._line_starts.extend(_line_starts(self.text))
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEdit:
    """One file's whole content before and after; `before` None means that the file is made anew."""

    path: str
    before: bytes | None
    after: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """A span of a text, in characters, and what takes its place."""

    start: int
    end: int
    new: str


def replace_spans(text: str, replacements: Iterable[Replacement]) -> str:
    """The text with every span replaced. Raises ValueError if two spans overlap."""
    parts, done = [], 0
    for item in sorted(replacements, key=lambda item: item.start):
        if item.start < done:
            raise ValueError(f"two edits overlap at character {item.start}")
        parts += [text[done : item.start], item.new]
        done = item.end
    return "".join([*parts, text[done:]])


def render_diff(edits: Iterable[FileEdit]) -> list[str]:
    """A unified diff without line ends, in the order of the edits."""
    lines: list[str] = []
    for edit in edits:
        old = "/dev/null" if edit.before is None else f"a/{edit.path}"
        before, after = (_shown_lines(data) for data in (edit.before or b"", edit.after))
        lines += difflib.unified_diff(before, after, old, f"b/{edit.path}", n=2, lineterm="")
    return lines


def _shown_lines(data: bytes) -> list[str]:
    return (
        [line.rstrip("\r") for line in data.decode("utf-8", "replace").removesuffix("\n").split("\n")] if data else []
    )


def _line_starts(text: str) -> Iterator[int]:
    yield 0
    position = text.find("\n")
    while position >= 0:
        yield position + 1
        position = text.find("\n", position + 1)
