"""What Dockerfile instructions do: RUN with its shell and heredocs, FROM's image, ADD and COPY of archives."""

from __future__ import annotations

from collections.abc import Iterator

from tooling.pins.dockerfile_syntax import Instruction, parse_dockerfile
from tooling.pins.library import Library
from tooling.pins.readers.dockerfile_arg import matches
from tooling.pins.readers.phrases import Span, find_images, find_phrases
from tooling.pins.readers.shell_text import find_shell
from tooling.pins.shell_syntax import blank_comments
from tooling.pins.sites import PinSite, make_site
from tooling.pins.texts import SourceText

SHAPE = "dockerfile-run"

__all__ = ["SHAPE", "matches", "read"]

_ASSIGNING = frozenset(("ARG", "ENV", "LABEL"))
_PLACING = frozenset(("FROM", "COPY", "ADD"))


def read(source: SourceText, library: Library) -> Iterator[PinSite]:
    folder = ""
    for instruction in parse_dockerfile(source.text):
        if instruction.keyword == "WORKDIR":
            folder = instruction.body.strip().strip("\"'")
        elif instruction.keyword == "FROM":
            folder = ""
        for span in _spans(source, instruction, library, folder):
            moved = span.moved(instruction.body_start)
            yield make_site(source, moved.start, moved.end, shape=moved.shape, role=moved.role, package=moved.package)


def _spans(source: SourceText, instruction: Instruction, library: Library, folder: str) -> Iterator[Span]:
    if instruction.keyword in _ASSIGNING or not (library.is_named_in(instruction.body) or library.is_named_in(folder)):
        return
    if instruction.keyword in _PLACING:
        yield from find_images(instruction.body, library)
        yield from find_phrases(instruction.body, library)
        return
    yield from find_shell(_with_lines(source, instruction), library, folder=folder)


def _with_lines(source: SourceText, instruction: Instruction) -> str:
    """The body with comments blanked. A `#` ends at the line's end, as it does for whoever wrote it."""
    start, body = instruction.body_start, instruction.body
    if "#" not in body:
        return body
    lines = "".join("\n" if source.text[start + index] == "\n" else char for index, char in enumerate(body))
    return "".join(
        old if new != " " or old == "\n" else " " for old, new in zip(body, blank_comments(lines), strict=True)
    )
