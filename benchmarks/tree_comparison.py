"""What a bump of an older source tree makes of its pins, compared with what the project's next release made of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from packaging.version import Version

from tooling.pins.plan import Move, plan_bump
from tooling.pins.python_strings import Purpose, parse_strings
from tooling.pins.readers.phrases import VERSION
from tooling.pins.scan import Tree
from tooling.pins.sites import Role, parse_spelling


class Verdict(StrEnum):
    """`exact`: the newer tree reads the same. `stale`: the project left its old line there. `changed`: the line or
    file is gone or rewritten. `mention`: a comment or minimum that the project moved and a bump does not. `missed`: a
    line that the project moved and the bump did not. `wrong`: moved, while the project went elsewhere with it.
    """

    EXACT = "exact"
    STALE = "stale"
    CHANGED = "changed"
    MENTION = "mention"
    MISSED = "missed"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One line of the older tree and how it compares."""

    verdict: Verdict
    path: str
    line: int
    text: str


def release_of(tree: Tree) -> Version | None:
    """The version that the tree is on: its truth, else what most pins of the main package hold, else most pins."""
    if tree.truth is not None:
        return Version(tree.truth.public)
    main = [site for site in tree.pins if site.package == tree.library.main_package] or tree.pins
    counted = Counter(site.version.public for site in main if site.version is not None)
    return Version(counted.most_common(1)[0][0]) if counted else None


def compare(older: Tree, newer: Tree, to: Version) -> list[Place]:
    """A verdict for every pin that a bump of `older` to `to` moves, and for every line that it should have moved."""
    plan = plan_bump(older, to, from_any=True)
    after = {edit.path: edit.after.decode() for edit in plan.edits}
    places = [_judge(move, older, newer, after) for move in plan.moves if move.before != move.after]
    return [*places, *_unmoved(older, newer, after, to)]


def _judge(move: Move, older: Tree, newer: Tree, after: dict[str, str]) -> Place:
    site = move.site
    before_line = _line(older, site.path, site.line)
    after_line = after.get(site.path, "").split("\n")[site.line - 1].strip()
    lines = set(_lines(newer, site.path))
    pins = [pin for pin in newer.pins if (pin.path, pin.shape, pin.package) == (site.path, site.shape, site.package)]
    if after_line in lines:
        verdict = Verdict.EXACT
    elif before_line in lines:
        verdict = Verdict.STALE
    elif _template(before_line) in {_template(line) for line in lines}:
        verdict = Verdict.WRONG
    elif any(pin.version is not None and site.version is not None and pin.version == site.version for pin in pins):
        verdict = Verdict.STALE
    else:
        verdict = Verdict.CHANGED
    return Place(verdict=verdict, path=site.path, line=site.line, text=before_line)


def _unmoved(older: Tree, newer: Tree, after: dict[str, str], to: Version) -> Iterator[Place]:
    """Lines of the newer tree that differ from the older one's by the version alone, and that no bump would make."""
    target = re.compile(rf"(?<![\d.]){re.escape(str(to))}(?![\w.]*\d)")
    versions = {site.version.public for site in older.pins if site.version is not None} - {str(to)}
    for source in older.texts:
        old_lines = [line.strip() for line in source.text.split("\n")]
        made = {line.strip() for line in after.get(source.path, source.text).split("\n")}
        for line in _lines(newer, source.path):
            if line in made or target.search(line) is None:
                continue
            origins = {target.sub(version, line) for version in versions}
            for number, old in enumerate(old_lines, start=1):
                if old in origins and old != line:
                    verdict = Verdict.MENTION if _is_mention(older, source.path, number) else Verdict.MISSED
                    yield Place(verdict=verdict, path=source.path, line=number, text=old)


def _is_mention(tree: Tree, path: str, line: int) -> bool:
    """True for a comment, a docstring, and a place that the scan lists as no pin."""
    sites = [site for site in tree.sites if (site.path, site.line) == (path, line)]
    if _line(tree, path, line).startswith("#") or any(site.role is not Role.PIN for site in sites):
        return True
    source = tree.text(path)
    if source is None or not path.endswith(".py"):
        return False
    start = sum(len(text) + 1 for text in source.text.split("\n")[: line - 1])
    region = (start, start + len(source.text[start:].partition("\n")[0]))
    literals, _ = parse_strings(source.text, [region]) or ([], [])
    return any(
        item.purpose is Purpose.TOLD and item.start <= region[1] and region[0] <= item.start + len(item.raw)
        for item in literals
    )


def _line(tree: Tree, path: str, line: int) -> str:
    source = tree.text(path)
    return source.text.split("\n")[line - 1].strip() if source else ""


def _lines(tree: Tree, path: str) -> list[str]:
    source = tree.text(path)
    return [line.strip() for line in source.text.split("\n")] if source else []


def _template(line: str) -> str:
    return re.sub(VERSION, lambda match: "X" if parse_spelling(match[0]) else match[0], line)
