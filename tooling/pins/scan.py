"""A tree's pins as one value: its settings, its texts, every site in them, and the version that they should hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import translate

from packaging.version import InvalidVersion, Version

from tooling.errors import InputError
from tooling.findings import Finding
from tooling.pins.library import Library
from tooling.pins.readers import is_read, read_sites
from tooling.pins.readers.dockerfile_arg import matches as is_dockerfile
from tooling.pins.settings import Settings
from tooling.pins.sites import PinSite, Role, parse_spelling
from tooling.pins.texts import SourceText
from tooling.pins.versions import parse_versions

NEVER_READ = (
    ".git",
    ".hg",
    ".svn",
    ".bump",
    ".nox",
    ".tox",
    ".venv",
    "venv",
    "node_modules",
    "__pycache__",
    "evidence",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """What was read of a tree.

    `variables` are the versions file's; `truth` is the version that every pin must hold, None where the pins disagree
    and no file decides; `unread` tells of files that could not be read as text.
    """

    library: Library
    settings: Settings
    texts: tuple[SourceText, ...]
    sites: tuple[PinSite, ...]
    versions_file: str | None
    variables: dict[str, str]
    truth: Version | None
    unread: tuple[Finding, ...] = ()
    _by_path: dict[str, SourceText] = field(init=False, repr=False, compare=False, default_factory=dict)

    @property
    def pins(self) -> list[PinSite]:
        return [site for site in self.sites if site.role is Role.PIN]

    def text(self, path: str) -> SourceText | None:
        if not self._by_path:
            self._by_path.update((text.path, text) for text in self.texts)
        return self._by_path.get(path)


def scan(
    texts: Iterable[SourceText],
    *,
    library: Library,
    settings: Settings,
    versions_file: str | None,
    unread: Iterable[Finding] = (),
) -> Tree:
    """The tree in those texts.

    Raises:
        InputError: the versions file is not one, or has no such variable or no version in it.
    """
    library = library.with_aliases(settings.variable_aliases)
    texts = tuple(texts)
    sites = tuple(site for text in texts for site in read_sites(text, library))
    source = next((text for text in texts if text.path == versions_file), None)
    variables = {} if source is None else parse_versions(source.text, path=source.path)
    if settings.versions_file is None and library.variable not in variables:
        source = None  # found by its name only: it pins other things, as vLLM's does from 0.27 on
    return Tree(
        library=library,
        settings=settings,
        texts=texts,
        sites=sites,
        versions_file=None if source is None else source.path,
        variables=variables,
        truth=shared_version(sites) if source is None else _declared(variables, library.variable, source.path),
        unread=tuple(unread),
    )


def is_of_interest(path: str, *, always: bool = False) -> bool:
    """True if a check reads files of that name; with `always`, if it does so even where the library is not named."""
    name = path.rpartition("/")[2]
    is_bake = name.startswith("docker-bake") and name.endswith((".hcl", ".json"))
    return is_bake or is_dockerfile(path) or (not always and is_read(path))


def leaves_out(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Tells whether a path is left out: a pattern without `/` matches any part of it, one with `/` from the root."""
    anywhere = [translate(item) for item in (*patterns, *NEVER_READ) if "/" not in item]
    from_root = [translate(item.strip("/")) for item in patterns if "/" in item]
    part = re.compile("|".join(anywhere))
    whole = re.compile("|".join(from_root)) if from_root else None

    def is_left_out(path: str) -> bool:
        parts = path.split("/")
        if any(part.match(item) for item in parts):
            return True
        starts = ("/".join(parts[: index + 1]) for index in range(len(parts)))
        return whole is not None and any(whole.match(start) for start in starts)

    return is_left_out


def _declared(variables: dict[str, str], name: str, path: str) -> Version:
    if name not in variables:
        raise InputError(
            f"{path}: no {name} in it",
            hint=f'expected {{"variable": {{"{name}": {{"default": "0.6.13"}}}}}}',
            reason="BAD_VERSIONS",
        )
    version = parse_spelling(variables[name])
    try:
        return version if version is not None else Version(variables[name])
    except InvalidVersion as cause:
        raise InputError(
            f"{path}: {name}: found {variables[name]!r}, expected a version by PEP 440", reason="BAD_VERSIONS"
        ) from cause


def shared_version(sites: Iterable[PinSite]) -> Version | None:
    """The one public version that all pins among the sites hold, or None."""
    shared = {Version(site.version.public) for site in sites if site.role is Role.PIN and site.version is not None}
    return shared.pop() if len(shared) == 1 else None
