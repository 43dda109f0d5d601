"""Findings about derived facts: what could not be told, and where the table says something else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from packaging.version import Version

from tooling.capabilities.derive import Derived
from tooling.capabilities.facts import OPERATION_FACTS, TUNER_FACTS
from tooling.capabilities.table import ROW_FACTS, Row, Table, lookup
from tooling.findings import Finding, Severity

TABLE_PATH = "tooling/data/capabilities.json"


def check_understood(release: Version, derived: Derived) -> Iterator[Finding]:
    """An error for each reason why facts could not be told; a warning for modules that could not be parsed."""
    names = (*TUNER_FACTS, *OPERATION_FACTS) if derived.with_operations else TUNER_FACTS
    reasons: dict[str, list[str]] = {}
    for name in names:
        fact = derived.facts[name]
        if fact.value is None:
            reasons.setdefault(fact.reason, []).append(name)
    for reason, lacking in reasons.items():
        yield Finding(
            check="not-understood",
            detail=f"{release}: could not tell {', '.join(lacking)}: {reason}",
            hint="the prober must learn this form of the source; until then the release has no row",
            reason="NOT_UNDERSTOOD",
        )
    for path, problem in sorted(derived.problems.items()):
        yield Finding(
            check="not-parsed",
            severity=Severity.WARNING,
            detail=f"{release}: {path} cannot be parsed: {problem}",
            reason="NOT_PARSED",
        )


def check_against_row(release: Version, derived: Derived, table: Table) -> Iterator[Finding]:
    """An error for each fact that differs from the release's row; a warning if it has none."""
    row = lookup(table, release)
    if row is None:
        yield not_listed(release)
        return
    for name in differing(derived, row):
        yield Finding(
            check="table",
            path=TABLE_PATH,
            detail=f"{release}: the table's {name} is not what its source shows: {_difference(derived, row, name)}",
            hint=f"derive the row again: nox -s probe -- {release} --add",
            reason="TABLE_DIFFERS",
        )


def differing(derived: Derived, row: Row) -> list[str]:
    """The facts, and `known_faults`, that are not the row's, in the table's order."""
    names = [name for name in ROW_FACTS if derived.with_operations or name not in OPERATION_FACTS]
    found = [name for name in names if derived.facts.get(name) != row.facts.get(name)]
    return found + (["known_faults"] if derived.known_faults != row.known_faults else [])


def not_listed(release: Version) -> Finding:
    """A published release without a row: to be added, but no reason to fail."""
    return Finding(
        check="not-listed",
        severity=Severity.WARNING,
        path=TABLE_PATH,
        detail=f"{release} is published and has no row in the table",
        hint=f"nox -s probe -- {release} --add",
        reason="NOT_LISTED",
    )


def check_unlisted(published: Iterable[Version], table: Table) -> Iterator[Finding]:
    """A warning for each final or post release that is published and not listed."""
    for release in sorted(published):
        if not release.is_prerelease and lookup(table, release) is None:
            yield not_listed(release)


def _difference(derived: Derived, row: Row, name: str) -> str:
    if name == "known_faults":
        return f"found {_ids(derived.known_faults)}, listed {_ids(row.known_faults)}"
    found, listed = derived.facts.get(name), row.facts.get(name)
    if found is None or listed is None:
        return "one of them lacks it"
    if found.value != listed.value:
        return f"found {_short(found.value)}, listed {_short(listed.value)}"
    return "the evidence differs"


def _ids(faults: Iterable[object]) -> str:
    return ", ".join(str(getattr(fault, "id", fault)) for fault in faults) or "none"


def _short(value: object) -> str:
    text = ", ".join(value) if isinstance(value, tuple) else str(value)
    return text if len(text) <= 100 else f"{text[:97]}..."
