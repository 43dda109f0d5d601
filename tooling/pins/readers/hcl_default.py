"""HCL: defaults of bake and Terraform variables, and build arguments of targets."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tooling.pins.library import Library
from tooling.pins.patterns import late
from tooling.pins.readers.phrases import VERSION, Span, find_images, find_phrases
from tooling.pins.readers.shell_text import find_variables
from tooling.pins.sites import PinSite, make_site
from tooling.pins.texts import SourceText

SHAPE = "hcl-default"

_COMMENT = late(r'"(?:\\.|[^"\\\n])*"|(?P<comment>#[^\n]*|//[^\n]*|/\*.*?\*/)', re.DOTALL)
_VARIABLE = late(r'\bvariable\s+"?(?P<name>[\w-]+)"?\s*\{')
_DEFAULT = late(rf'\bdefault\s*=\s*"(?P<version>{VERSION})"')
_QUOTED_KEY = late(rf'"(?P<name>\w+)"\s*[=:]\s*"(?P<version>{VERSION})"')


def matches(path: str) -> bool:
    return path.endswith((".hcl", ".tf", ".tfvars"))


def read(source: SourceText, library: Library) -> Iterator[PinSite]:
    text = blank_hcl_comments(source.text)
    for span in (*_defaults(text, library), *_others(text, library)):
        yield make_site(source, span.start, span.end, shape=span.shape, role=span.role, package=span.package)


def blank_hcl_comments(text: str) -> str:
    """The text with every comment as spaces, so that offsets hold."""
    return _COMMENT.sub(lambda match: " " * len(match[0]) if match["comment"] else match[0], text)


def _defaults(text: str, library: Library) -> Iterator[Span]:
    blocks = list(_VARIABLE.finditer(text))
    for block, end in zip(blocks, [*(block.start() for block in blocks[1:]), len(text)][: len(blocks)], strict=True):
        if library.names_version(block["name"]):
            default = _DEFAULT.search(text, block.end(), min(end, block.end() + 2000))
            if default is not None:
                yield Span(start=default.start("version"), end=default.end("version"), shape=SHAPE)


def _others(text: str, library: Library) -> Iterator[Span]:
    yield from find_variables(text, library)
    for match in _QUOTED_KEY.finditer(text):
        if library.names_version(match["name"]):
            yield Span(start=match.start("version"), end=match.end("version"), shape="variable")
    yield from find_phrases(text, library)
    yield from find_images(text, library)
