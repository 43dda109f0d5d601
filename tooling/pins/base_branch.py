"""Compares a tree's pin with the base branch's: a pin that falls must be announced."""

from __future__ import annotations

from collections.abc import Sequence

from tooling.errors import InputError
from tooling.findings import Finding, Severity
from tooling.pins.scan import Tree, scan
from tooling.pins.texts import SourceText


def check_downgrade(tree: Tree, before: Sequence[SourceText], *, base: str, announced: bool) -> list[Finding]:
    """One finding if the pin is lower than in those texts of the base commit, or if the base's pin cannot be told.

    An announced downgrade is a note. Order is PEP 440's.
    """
    try:
        old = scan(before, library=tree.library, settings=tree.settings, versions_file=tree.versions_file).truth
    except InputError as cause:
        return [_unknown(base, cause.message)]
    if old is None:
        return [_unknown(base, "it holds no single version of the library")]
    if tree.truth is None or tree.truth >= old:
        return []
    place = next((site for site in tree.pins), None)
    return [
        Finding(
            check="downgrade",
            severity=Severity.NOTE if announced else Severity.ERROR,
            path=tree.versions_file or (place.path if place else None),
            line=place.line if place and place.path == tree.versions_file else None,
            detail=f"the pin falls from {old} on {base} to {tree.truth}.",
            hint="" if announced else "if that is meant, say so with --allow-downgrade; else take the base's pin",
            reason="DOWNGRADE",
        )
    ]


def _unknown(base: str, why: str) -> Finding:
    return Finding(
        check="downgrade",
        severity=Severity.WARNING,
        detail=f"the pin on {base} cannot be told: {why}.",
        reason="BASE_UNKNOWN",
    )
