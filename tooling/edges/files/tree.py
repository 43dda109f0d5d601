"""Loads a tree's pins: its settings, and every text in it that some reader knows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from tooling.edges import git
from tooling.edges.files.reading import load_text, may_hold, resolve_inside
from tooling.errors import InputError
from tooling.findings import Finding, Severity
from tooling.pins.library import Library
from tooling.pins.scan import Tree, is_of_interest, leaves_out, scan
from tooling.pins.settings import FILE, VERSIONS_FILES, Settings, parse_settings
from tooling.pins.texts import SourceText


def load_tree(root: Path, library: Library) -> Tree:
    """The tree below root, as `check` and `bump` see it.

    Files that release.toml requires, and the versions file, must be readable; another file that cannot be read is
    listed in `unread`. Links are followed inside the root only, and a file with two names is read once.

    Raises:
        InputError: release.toml, the versions file or a required file is missing, broken or leads out of the root.
    """
    settings = load_settings(root)
    versions_file = find_versions_file(root, settings)
    required = dict.fromkeys([*([versions_file] if versions_file else []), *(item.path for item in settings.required)])
    texts = [load_text(root, path) for path in required]
    taken = {resolve_inside(root, path) for path in required}
    unread: list[Finding] = []
    marks = _marks(library, settings)
    for path in _candidates(root, leaves_out(settings.leave_out)):
        if path not in required:
            texts += _load_optional(root, path, marks, taken, unread)
    texts.sort(key=lambda text: text.path)
    return scan(texts, library=library, settings=settings, versions_file=versions_file, unread=unread)


def load_settings(root: Path) -> Settings:
    """release.toml's settings, or the defaults where there is none."""
    text = load_optional_text(root, FILE)
    return Settings() if text is None else parse_settings(text.text)


def find_versions_file(root: Path, settings: Settings) -> str | None:
    """The path of the versions file: what release.toml names, else the first of the usual places; None without one."""
    if settings.versions_file is not None:
        return settings.versions_file
    return next((path for path in VERSIONS_FILES if os.path.lexists(root / path)), None)


def load_optional_text(root: Path, path: str) -> SourceText | None:
    """The file's text, or None if there is no such file. Raises InputError if it cannot be read."""
    try:
        return load_text(root, path)
    except InputError as cause:
        if cause.reason == "MISSING":
            return None
        raise


def _marks(library: Library, settings: Settings) -> list[bytes]:
    """What a file must hold to be worth reading, in lower case, also as UTF-16: such a file is reported, not missed."""
    names = [name.lower() for name in (library.mark, *settings.variable_aliases)]
    return [name.encode(encoding) for name in names for encoding in ("utf-8", "utf-16-le", "utf-16-be")]


def _candidates(root: Path, is_left_out: Callable[[str], bool]) -> Iterator[str]:
    """Paths whose format some reader knows: what git tracks or does not ignore, or without git every file."""
    listed = git.list_files(root)
    for path in listed or _walk(root, is_left_out):
        if is_of_interest(path) and not is_left_out(path):
            yield path


def _walk(root: Path, is_left_out: Callable[[str], bool]) -> Iterator[str]:
    """Every file below root, folders that are left out or unreadable passed over, links to folders not followed."""
    for folder, subfolders, names in os.walk(root):
        base = os.path.relpath(folder, root).replace(os.sep, "/")
        prefix = "" if base == "." else f"{base}/"
        subfolders[:] = sorted(name for name in subfolders if not is_left_out(prefix + name))
        yield from (prefix + name for name in sorted(names))


def _load_optional(
    root: Path, path: str, marks: Sequence[bytes], taken: set[Path], unread: list[Finding]
) -> Iterable[SourceText]:
    try:
        if not is_of_interest(path, always=True) and not may_hold(root, path, marks):
            return []
        real = resolve_inside(root, path)
        if real in taken or not os.path.isfile(real):
            return []
        taken.add(real)
        return [load_text(root, path)]
    except InputError as cause:
        detail = cause.message.removeprefix(f"{path}: ")
        unread.append(
            Finding(check="unread", severity=Severity.WARNING, path=path, detail=f"not searched for pins: {detail}.")
        )
        return []
