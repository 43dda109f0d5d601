"""Shell scripts as simple commands with positions, as far as finding words needs it; nothing is expanded.

Quotes, comments and line continuations follow the POSIX shell. Compound commands are only a nesting depth.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tooling.pins.patterns import late

_TOKEN = late(
    r"""(?P<space>(?:[ \t\r]|\\\r?\n)+)|(?P<comment>\#[^\n]*)|(?P<end>\n|&&|\|\||[;&|])|(?P<open>\()|(?P<close>\))"""
    r"""|(?P<word>(?:\$\{[^{}\n]*\}|\\[^\n\r]|\\\r?\n|"(?:\\.|[^"\\])*"|'[^']*'|[^\s"'\\;&|()]|["'\\])+)""",
    re.DOTALL,
)

_COMMENT_LINE = late(r"(?m)^[ \t]*#[^\n]*")


@dataclass(frozen=True, slots=True)
class ShellWord:
    """One word and its span, both with its quotes."""

    text: str
    start: int
    end: int

    @property
    def bare(self) -> str:
        """The word without the quotes around it."""
        return self.text[1:-1] if self.is_quoted else self.text

    @property
    def is_quoted(self) -> bool:
        return len(self.text) >= 2 and self.text[0] == self.text[-1] and self.text[0] in "\"'"

    @property
    def inner_start(self) -> int:
        return self.start + self.is_quoted


@dataclass(slots=True)
class ShellCommand:
    """One simple command; `depth` counts the round brackets that it stands in."""

    depth: int
    words: list[ShellWord] = field(default_factory=list)


def find_commands(text: str) -> Iterator[ShellCommand]:
    """Every simple command that has words, in order. Linear in the text."""
    command = ShellCommand(0)
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind == "word":
            command.words.append(ShellWord(token.group(), token.start(), token.end()))
        elif kind in {"end", "open", "close"}:
            if command.words:
                yield command
            command = ShellCommand(max(0, command.depth + (kind == "open") - (kind == "close")))
    if command.words:
        yield command


def blank_comments(text: str) -> str:
    """The text with every comment as spaces, so that offsets hold.

    A line that begins with `#` is a comment also inside quotes: an apostrophe in running text opens many of those.
    """
    if "#" not in text:
        return text
    text = _COMMENT_LINE.sub(lambda match: " " * len(match[0]), text)
    parts, done = [], 0
    before = ""
    for token in _TOKEN.finditer(text):
        if token.lastgroup == "comment" and before != "word":
            parts += [text[done : token.start()], " " * (token.end() - token.start())]
            done = token.end()
        before = token.lastgroup or ""
    return "".join([*parts, text[done:]])
