"""Index options in requirements files (`--extra-index-url …`) as values, and the edits that add one. Pure text."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tooling.pins.requirements import RequirementLine

_NAMES = {
    "-i": "index-url",
    "--index-url": "index-url",
    "--pypi-url": "index-url",
    "--extra-index-url": "extra-index-url",
    "-f": "find-links",
    "--find-links": "find-links",
    "--trusted-host": "trusted-host",
    "--no-index": "no-index",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexOptions:
    """What a requirements file says about indexes. The URLs may hold credentials: never print them."""

    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    trusted_hosts: tuple[str, ...] = ()
    no_index: bool = False


def read_index_options(lines: Iterable[RequirementLine]) -> IndexOptions:
    """The index options of the file's option lines; `--option value` and `--option=value` are the same."""
    found = [option for line in lines if line.is_option for option in _options(line.text)]
    main = [value for name, value in found if name == "index-url"]
    return IndexOptions(
        index_url=main[-1] if main else None,
        extra_index_urls=tuple(value for name, value in found if name == "extra-index-url"),
        find_links=tuple(value for name, value in found if name == "find-links"),
        trusted_hosts=tuple(value for name, value in found if name == "trusted-host"),
        no_index=any(name == "no-index" for name, _ in found),
    )


def _options(line: str) -> Iterator[tuple[str, str]]:
    words = iter(_split(line))
    for word in words:
        option, equals, value = word.partition("=")
        name = _NAMES.get(option)
        if name == "no-index":
            yield name, ""
        elif name is not None:
            yield name, value if equals else next(words, "")


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()
