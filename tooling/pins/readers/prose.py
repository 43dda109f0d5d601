"""Prose: versions that comments and documents mention. They never move; a bump may leave them stale."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tooling.pins.library import Library
from tooling.pins.patterns import late
from tooling.pins.readers.phrases import VERSION, find_marks
from tooling.pins.sites import PinSite, Role, make_site
from tooling.pins.texts import SourceText

SHAPE = "comment"

_DOCUMENTS = (".md", ".rst", ".adoc", ".mdx")
_MENTION = late(rf"[^\n]{{0,80}}?(?<![\w.])(?P<version>{VERSION})")


def matches(path: str) -> bool:
    return path.endswith(_DOCUMENTS)


def read(source: SourceText, library: Library) -> Iterator[PinSite]:
    """What stands behind the library's name in the same line: anywhere in a document, in a comment elsewhere."""
    is_document = matches(source.path)
    begins = ("#", "//") if source.path.endswith((".hcl", ".tf", ".groovy")) else ("#",)
    for position in find_marks(source.text, library.mark):
        line = source.text.rfind("\n", 0, position) + 1
        match = _MENTION.match(source.text, position)
        if match is None or match["version"].count(".") < 2:
            continue
        before = source.text[line : match.start("version")]
        if is_document or any(re.search(rf"(?:^|\s){begin}", before) for begin in begins if begin in before):
            first, last = match.span("version")
            shape = "document" if is_document else SHAPE
            yield make_site(source, first, last, shape=shape, role=Role.PROSE)
