"""Prose: versions that comments and documents mention. They never move; a bump may leave them stale."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tooling.pins.library import Library
from tooling.pins.readers.phrases import VERSION
from tooling.pins.sites import PinSite, Role, make_site
from tooling.pins.texts import SourceText

SHAPE = "comment"

_DOCUMENTS = (".md", ".rst", ".adoc", ".mdx")
_COMMENT = re.compile(r"(?:^|\s)#")
_SLASHES = re.compile(r"(?:^|\s)(?:#|//)")


def matches(path: str) -> bool:
    return path.endswith(_DOCUMENTS)


def read(source: SourceText, library: Library) -> Iterator[PinSite]:
    """What stands behind the library's name in the same line: anywhere in a document, in a comment elsewhere."""
    mention = re.compile(rf"(?i){re.escape(library.mark)}[^\n]{{0,80}}?(?<![\w.])(?P<version>{VERSION})")
    is_document = matches(source.path)
    comment = _SLASHES if source.path.endswith((".hcl", ".tf", ".groovy")) else _COMMENT
    for match in mention.finditer(source.text):
        line = source.text.rfind("\n", 0, match.start()) + 1
        if match["version"].count(".") > 1 and (
            is_document or comment.search(source.text[line : match.start("version")])
        ):
            first, last = match.span("version")
            yield make_site(source, first, last, shape="document" if is_document else SHAPE, role=Role.PROSE)
