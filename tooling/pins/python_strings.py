"""String literals of a Python source with their positions and what they are part of; the standard library parses it."""

from __future__ import annotations

import ast
import warnings
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from tooling.pins.patterns import late

_PIECE = late(r"(?is)[rbfu]{0,2}(\"\"\"|'''|\"|')((?:\\.|(?!\1).)*?)\1")
_LINE_END = late(r"\r\n|\r|\n")
_SAYS = frozenset((
    "print", "warn", "warning", "warning_once", "info", "info_once", "debug", "error", "critical", "exception", "log",
    "fail", "skip", "skipif", "xfail", "exit",
))  # fmt: skip
_SAYING_KEYWORDS = frozenset(("help", "description", "reason", "message", "msg", "epilog", "doc", "error_message"))


class Purpose(Enum):
    """What the code does with a literal: use it, compare with it, or tell it to a person."""

    VALUE = "value"
    COMPARED = "compared"
    TOLD = "told"


@dataclass(frozen=True, slots=True)
class Literal:
    """One piece of a string literal: what stands between its quotes, unresolved, and where that begins."""

    raw: str
    start: int
    purpose: Purpose


@dataclass(frozen=True, slots=True)
class Named:
    """A literal that a name stands for: `NAME = "…"`, `name="…"`, `{"name": "…"}`, `get("NAME", "…")`.

    `by` is the function for an argument behind a first one that is the name, else empty.
    """

    name: str
    literal: Literal
    by: str = ""


def parse_strings(text: str, regions: Iterable[tuple[int, int]]) -> tuple[list[Literal], list[Named]] | None:
    """The literals and the named ones on lines of those regions, in no fixed order; None if the text does not parse.

    A region is a span in characters. Statements without a line in one are not looked into.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    finder = _Finder(text, regions)
    finder.walk(tree)
    return finder.literals, finder.named


class _Finder:
    def __init__(self, text: str, regions: Iterable[tuple[int, int]]) -> None:
        self._text = text
        self._lines = [0, *(match.end() for match in _LINE_END.finditer(text))]
        spans = ((bisect_right(self._lines, start), bisect_right(self._lines, end)) for start, end in regions)
        self._wanted = sorted({line for first, last in spans for line in range(first, last + 1)})
        self.literals: list[Literal] = []
        self.named: list[Named] = []

    def walk(self, tree: ast.AST) -> None:
        waiting: list[tuple[ast.AST, Purpose]] = [(tree, Purpose.VALUE)]
        while waiting:
            node, purpose = waiting.pop()
            if _is_string(node):
                self.literals += self._pieces(node, purpose)
                continue
            self.named += self._named(node, purpose)
            waiting += [
                (child, _purpose(node, child, purpose))
                for child in ast.iter_child_nodes(node)
                if self._is_wanted(child)
            ]

    def _is_wanted(self, node: ast.AST) -> bool:
        first, last = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
        if first is None or last is None:
            return True
        position = bisect_left(self._wanted, first)
        return position < len(self._wanted) and self._wanted[position] <= last

    def _named(self, node: ast.AST, purpose: Purpose) -> Iterator[Named]:
        for name, by, value in _pairs(node):
            if value is not None and _is_string(value):
                yield from (Named(name, piece, by) for piece in self._pieces(value, purpose))

    def _pieces(self, node: ast.AST, purpose: Purpose) -> Iterator[Literal]:
        """The literal's pieces; several where literals stand side by side."""
        if not isinstance(node, ast.expr) or node.end_lineno is None or node.end_col_offset is None:
            return
        start, end = self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)
        for match in _PIECE.finditer(self._text, start, end):
            yield Literal(match[2], match.start(2), purpose)

    def _offset(self, line: int, column: int) -> int:
        """`column` counts bytes of UTF-8, as `ast` does."""
        start = self._lines[line - 1]
        ahead = self._text[start : start + column]
        return start + (column if ahead.isascii() else len(ahead.encode()[:column].decode("utf-8", "ignore")))


def _is_string(node: ast.AST | None) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _pairs(node: ast.AST) -> Iterator[tuple[str, str, ast.AST | None]]:
    match node:
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.AnnAssign(target=ast.Name(id=name), value=value)
        ):
            yield name, "", value
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value, "", value
        case ast.Call(args=arguments, keywords=keywords):
            yield from ((item.arg, "", item.value) for item in keywords if item.arg is not None)
            if arguments and isinstance(arguments[0], ast.Constant) and isinstance(arguments[0].value, str):
                rest = [*arguments[1:2], *(item.value for item in keywords if item.arg in {"default", "value"})]
                yield from ((arguments[0].value, called(node), value) for value in rest)
        case ast.arguments(args=names, defaults=defaults) if defaults:
            yield from ((item.arg, "", value) for item, value in zip(names[-len(defaults) :], defaults, strict=True))


def called(node: ast.Call) -> str:
    """The last part of the called function's name."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _purpose(node: ast.AST, child: ast.AST, purpose: Purpose) -> Purpose:
    if isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and _is_string(child)):
        return Purpose.TOLD
    if isinstance(node, ast.Assert) and child is node.msg:
        return Purpose.TOLD
    if isinstance(node, ast.Call):
        name = called(node)
        return Purpose.TOLD if name in _SAYS or name.endswith(("Error", "Exception", "Warning")) else purpose
    if isinstance(node, ast.keyword) and node.arg in _SAYING_KEYWORDS:
        return Purpose.TOLD
    return Purpose.COMPARED if isinstance(node, ast.Compare) and purpose is Purpose.VALUE else purpose
