"""A bump as one value: every edit that moves the pins, planned before anything is written, and proved on the result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from packaging.version import Version

from tooling.findings import Finding
from tooling.pins.drift import check_pins
from tooling.pins.readers import read_sites
from tooling.pins.scan import Tree
from tooling.pins.sites import PinSite, Role, respell, same_release
from tooling.pins.texts import FileEdit, Replacement, SourceText, replace_spans

Direction = Literal["upgrade", "downgrade", "same"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One pin's spelling before and after."""

    site: PinSite
    before: str
    after: str

    def as_json(self) -> dict[str, object]:
        return {**self.site.as_json(), "before": self.before, "after": self.after}


@dataclass(frozen=True, slots=True, kw_only=True)
class BumpPlan:
    """Where the pins stand, where they go, and the edits that take them there; `edits` is empty if nothing moves.

    `refusals` are findings that forbid the bump; a plan with some must not be applied.
    """

    from_version: Version | None
    to: Version
    moves: tuple[Move, ...]
    edits: tuple[FileEdit, ...]
    refusals: tuple[Finding, ...]

    @property
    def moves_anything(self) -> bool:
        """True if a pin's spelling changes."""
        return any(move.before != move.after for move in self.moves)

    @property
    def direction(self) -> Direction:
        if self.from_version is None or self.from_version == self.to:
            return "same"
        return "upgrade" if self.from_version < self.to else "downgrade"


def plan_bump(tree: Tree, to: Version, *, from_any: bool = False) -> BumpPlan:
    """Every pin of the tree moved to `to`.

    Drift refuses, unless `from_any`: then pins move from whatever they hold. Pins that are missing or not listed
    refuse always.
    """
    refusals = [item for item in check_pins(tree) if not (from_any and item.check == "drift") and item.reason]
    moves = tuple(_move(site, to) for site in tree.pins)
    by_path = _by_path(moves)
    edits = tuple(edit for source in tree.texts if (edit := _edit(source, by_path.get(source.path, ()))) is not None)
    return BumpPlan(
        from_version=tree.truth,
        to=to,
        moves=moves,
        edits=edits,
        refusals=(*refusals, *_check_hashed(tree, edits, to), *_check_result(tree, moves, edits, to)),
    )


def check_written(edits: Iterable[FileEdit], found: Mapping[str, bytes]) -> list[Finding]:
    """What is not as planned on the disk; empty when every file is, byte for byte, the text that was proved."""
    return [
        Finding(
            check="not-moved",
            path=edit.path,
            detail="this file is not what the bump wrote.",
            hint="another program changed it meanwhile; run `check`",
            reason="NOT_MOVED",
        )
        for edit in edits
        if found.get(edit.path) != edit.after
    ]


def _move(site: PinSite, to: Version) -> Move:
    token = site.spelling.strip("'\"`")
    return Move(site=site, before=site.spelling, after=site.spelling.replace(token, respell(token, to)))


def _edit(source: SourceText, moves: Iterable[Move]) -> FileEdit | None:
    replacements = [
        Replacement(start=move.site.start, end=move.site.end, new=move.after.strip("'\"`")) for move in moves
    ]
    after = replace_spans(source.text, replacements).encode()
    return None if after == source.raw else FileEdit(path=source.path, before=source.raw, after=after)


def _check_result(tree: Tree, moves: Iterable[Move], edits: Iterable[FileEdit], to: Version) -> Iterable[Finding]:
    """Reads the edited texts again: each pin that moved stands where it was to stand, and is a pin at `to`."""
    by_path = _by_path(moves)
    for edit in edits:
        after = read_sites(SourceText(edit.path, edit.after.decode()), tree.library)
        moved = {site.start for site in after if site.role is Role.PIN and same_release(site.version, to)}
        expected = _starts_after(by_path[edit.path])
        if not moved.issuperset(expected):
            yield Finding(
                check="no-effect",
                path=edit.path,
                detail=f"{len(expected)} pins were to become {to}, and {len(moved & set(expected))} would.",
                hint="nothing was written; this file has a spelling that the tool cannot edit",
                reason="NO_EFFECT",
            )


def _check_hashed(tree: Tree, edits: Iterable[FileEdit], to: Version) -> Iterable[Finding]:
    """A requirement with hashes beside one that moves: it cannot move with its hash, nor stay where it is."""
    edited = {edit.path for edit in edits}
    hashed = (site for site in tree.sites if site.role is Role.LOCK and site.shape == "requirement")
    for site in hashed:
        if site.path in edited and not same_release(site.version, to):
            yield Finding(
                check="hashed-pin",
                path=site.path,
                line=site.line,
                detail=f"{site.package} carries hashes of {site.version}, and other pins of this file would move.",
                hint="take the hashes off that line, or compile the whole file",
                reason="HASHED_PIN",
            )


def _by_path(moves: Iterable[Move]) -> dict[str, list[Move]]:
    grouped: dict[str, list[Move]] = {}
    for move in moves:
        grouped.setdefault(move.site.path, []).append(move)
    return grouped


def _starts_after(moves: Iterable[Move]) -> list[int]:
    """Where each pin of one file begins once all of them are respelled."""
    starts, shift = list[int](), 0
    for move in sorted(moves, key=lambda move: move.site.start):
        starts.append(move.site.start + shift)
        shift += len(move.after) - len(move.before)
    return starts
