"""The part of the page that tells what moving the pin changes: row against row, known faults, companions."""

from __future__ import annotations

from collections.abc import Iterator

from tooling.capabilities.facts import Fact, KnownFault, Value
from tooling.capabilities.table import Row
from tooling.gate.html_elements import Html, badge, code, details, element, link, prose, section, table
from tooling.gate.html_evidence import Section
from tooling.gate.values import BumpChange, Verdict

HEADING = "What this bump changes"
_EFFECTS = ("breaks", "changes", "gains")


def bump_section(verdict: Verdict) -> Section:
    if verdict.bump is None:
        return "bump", HEADING, None
    bump = verdict.bump
    part = section(
        "bump",
        HEADING,
        element(
            "p", "FlashInfer ", code(bump.before or "not told"), " to ", code(bump.after or "not told"), _rows(bump)
        ),
        _changes(bump),
        _facts(bump),
        _faults(bump),
        _companions(bump),
    )
    return "bump", HEADING, part


def _rows(bump: BumpChange) -> str:
    missing = [name for name, row in ((bump.before, bump.row_before), (bump.after, bump.row_after)) if row is None]
    return (
        f"; the capabilities table has no row for {' and '.join(name or 'it' for name in missing)}." if missing else "."
    )


def _changes(bump: BumpChange) -> list[Html]:
    """The table's comparison in its own words."""
    if not bump.changes:
        alike = bump.row_before is not None and bump.row_after is not None
        return [element("p", "Nothing changes for a caller." if alike else "The two releases were not compared.")]
    items = [
        element(
            "li", badge(str(change.get("effect")), _kind(change.get("effect"))), " ", prose(str(change.get("text")))
        )
        for change in bump.changes
    ]
    return [element("ul", items, class_="changes")]


def _kind(effect: object) -> str:
    return str(effect) if effect in _EFFECTS else "changes"


def _facts(bump: BumpChange) -> Html | None:
    """Facts that differ; what lists lost and gained instead of the whole of both."""
    if bump.row_before is None or bump.row_after is None:
        return None
    rows = list(_differing(bump.row_before, bump.row_after))
    if not rows:
        return None
    heads = ("Fact", f"{bump.before}", f"{bump.after}", "Seen in")
    return details(f"Row against row: {len(rows)} facts differ", table("Facts that differ", heads, rows))


def _differing(before: Row, after: Row) -> Iterator[tuple[Html | str, ...]]:
    for name in sorted({*before.facts, *after.facts}):
        old, new = before.facts.get(name), after.facts.get(name)
        if (old and old.value) == (new and new.value):
            continue
        was, now = (old.value if old else None), (new.value if new else None)
        evidence = str(new.evidence[0]) if new and new.evidence else (new.reason if new else "")
        if isinstance(was, tuple) and isinstance(now, tuple):
            gone, come = sorted(set(was) - set(now)), sorted(set(now) - set(was))
            yield code(name), _items("without", gone, len(was)), _items("with", come, len(now)), evidence
        else:
            yield code(name), _value(old, was), _value(new, now), evidence


def _items(word: str, names: list[str], total: int) -> str:
    told = f"{total} in all"
    return f"{told}; {'lost later' if word == 'without' else 'new'}: {', '.join(names)}" if names else told


def _value(fact: Fact | None, value: Value) -> str:
    if value is None:
        return f"could not tell: {fact.reason}" if fact and fact.reason else "could not tell"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, tuple) else value


def _faults(bump: BumpChange) -> list[Html]:
    if bump.row_after is None:
        return []
    before = {fault.id for fault in bump.row_before.known_faults} if bump.row_before else set()
    heading = element("h3", f"Known faults of {bump.after}")
    if not bump.row_after.known_faults:
        return [heading, element("p", "None is known.")]
    return [heading, element("ul", [_fault(fault, new=fault.id not in before) for fault in bump.row_after.known_faults],
                             class_="faults")]  # fmt: skip


def _fault(fault: KnownFault, *, new: bool) -> Html:
    return element(
        "li",
        element("p", badge("new", "breaks") if new else badge("as before", "note"), " ", link(fault.id, fault.link)),
        element("p", prose(fault.effect)),
        element("p", f"Operations: {', '.join(fault.operations)}", class_="quiet") if fault.operations else None,
        element("p", f"How to see it: {fault.how_to_see}", class_="quiet"),
    )


def _companions(bump: BumpChange) -> list[Html]:
    if not bump.companions:
        return []
    rows = [
        (code(name), code(before) if before else "not there", code(after) if after else "gone")
        for name, (before, after) in sorted(bump.companions.items())
    ]
    return [element("h3", "Companions"), table("Requirements that move along", ("Package", "Before", "After"), rows)]
