"""What changes for a caller between two rows of the table: what becomes possible, and what breaks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from tooling.capabilities.facts import Fact
from tooling.capabilities.gating import Gating, gate_worlds
from tooling.capabilities.table import Row

WORLD_NAMES = {"single": "on one rank", "multi": "on several ranks", "deepep": "with DeepEP"}
POLICY = {
    "none": "companion packages' versions are not compared at import",
    "raise": "a package mismatch stops the import",
    "warn": "a package mismatch no longer stops the import: it only warns",
}


class Effect(StrEnum):
    """What a change means to a caller that was written for the older row."""

    BREAKS = "breaks"
    CHANGES = "changes"
    GAINS = "gains"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One difference: the fact, what it means, and the sentence that says so."""

    fact: str
    effect: Effect
    text: str

    def as_json(self) -> dict[str, object]:
        return {"fact": self.fact, "effect": str(self.effect), "text": self.text}


def compare(old: Row, new: Row) -> tuple[Change, ...]:
    """Every change from one row to another, breaking ones first."""
    changes = [
        *_parameters(old.facts, new.facts),
        *_key(old.facts, new.facts),
        *_operations(old.facts, new.facts),
        *_simple(old.facts, new.facts),
        *_gating(old, new),
        *_faults(old, new),
        *_unknowns(old.facts, new.facts),
    ]
    order = list(Effect)
    return tuple(sorted(changes, key=lambda change: order.index(change.effect)))


def _parameters(old: Mapping[str, Fact], new: Mapping[str, Fact]) -> Iterator[Change]:
    before, after = _texts(old, "autotune_parameters"), _texts(new, "autotune_parameters")
    for name in before:
        if name not in after:
            yield _change(
                "autotune_parameters", Effect.BREAKS, f"`{name}` is gone: autotune({name}=…) raises TypeError"
            )
    for name in after:
        if name not in before:
            yield _change("autotune_parameters", Effect.GAINS, f"`{name}` appears")
    if before == tuple(name for name in after if name in before):
        return
    if set(before) <= set(after):
        yield _change("autotune_parameters", Effect.BREAKS, "the order of autotune's parameters changed")


def _key(old: Mapping[str, Fact], new: Mapping[str, Fact]) -> Iterator[Change]:
    """Files written before are not found, or worse, found wrongly, after."""
    names = {
        "disk_key_has_runner_extras": "the runner's parameters in the key on disk",
        "extras_have_sf_layout": "the scale-factor layout in the runner's parameters",
    }
    both_files = _value(old, "config_files") is True and _value(new, "config_files") is True
    for fact, words in names.items():
        before, after = _value(old, fact), _value(new, fact)
        if before is True and after is False:
            yield _change(fact, Effect.BREAKS, f"the key format changed: it loses {words}; entries collide")
        elif before is False and after is True:
            text = f"the key format changed: it gains {words}"
            yield _change(
                fact, Effect.BREAKS if both_files else Effect.GAINS, text + ("; older files miss" if both_files else "")
            )
    before_fields, after_fields = _texts(old, "metadata_fields"), _texts(new, "metadata_fields")
    more = sorted(set(after_fields) - set(before_fields))
    if before_fields and more:
        yield _change(
            "metadata_fields", Effect.BREAKS, f"cache files need {', '.join(more)}: older files count as foreign"
        )
    less = sorted(set(before_fields) - set(after_fields))
    if less and after_fields:
        yield _change("metadata_fields", Effect.CHANGES, f"{', '.join(less)} no longer makes a cache file foreign")


def _operations(old: Mapping[str, Fact], new: Mapping[str, Fact]) -> Iterator[Change]:
    before, after = _texts(old, "operations"), _texts(new, "operations")
    if _value(old, "operations") is None or _value(new, "operations") is None:
        return
    gone, come = sorted(set(before) - set(after)), sorted(set(after) - set(before))
    for name in gone:
        heirs = [other for other in come if _alike(name, other)]
        text = f"operation `{name}` is gone" + (f"; renamed to `{'`, `'.join(heirs[:3])}`?" if heirs else "")
        yield _change("operations", Effect.BREAKS, f"{text} (a skip list that names it skips nothing)")
    if come:
        shown = ", ".join(f"`{name}`" for name in come[:5]) + (f" and {len(come) - 5} more" if len(come) > 5 else "")
        yield _change("operations", Effect.GAINS, f"can be tuned: {shown}")


def _simple(old: Mapping[str, Fact], new: Mapping[str, Fact]) -> Iterator[Change]:
    before, after = _value(old, "mismatch_policy"), _value(new, "mismatch_policy")
    if before != after and isinstance(after, str):
        effect = Effect.BREAKS if after == "raise" else Effect.CHANGES
        yield _change("mismatch_policy", effect, POLICY[after])
    before, after = _value(old, "autotuner"), _value(new, "autotuner")
    if before != after and after is not None:
        effect = Effect.BREAKS if after == "none" else Effect.GAINS if before == "none" else Effect.CHANGES
        yield _change("autotuner", effect, f"the autotuner is now: {after} (was: {before})")
    before, after = _value(old, "foreign_save"), _value(new, "foreign_save")
    if before != after and after is not None:
        yield _change(
            "foreign_save", Effect.CHANGES, f"saving onto another environment's file: {after} (was: {before})"
        )
    before, after = _value(old, "packaging_layout"), _value(new, "packaging_layout")
    if before != after and after is not None:
        yield _change(
            "packaging_layout", Effect.BREAKS, f"companion packages are laid out anew: {after} (was: {before})"
        )
    if set(_texts(old, "tuner_environment")) - set(_texts(new, "tuner_environment")):
        gone = sorted(set(_texts(old, "tuner_environment")) - set(_texts(new, "tuner_environment")))
        yield _change("tuner_environment", Effect.BREAKS, f"no longer read: {', '.join(gone)}")
    if set(_texts(old, "requires")) != set(_texts(new, "requires")):
        come = sorted(set(_texts(new, "requires")) - set(_texts(old, "requires")))
        gone = sorted(set(_texts(old, "requires")) - set(_texts(new, "requires")))
        parts = [f"now {', '.join(come)}"] * bool(come) + [f"no longer {', '.join(gone)}"] * bool(gone)
        yield _change("requires", Effect.CHANGES, f"requirements: {'; '.join(parts)}")


def _gating(old: Row, new: Row) -> Iterator[Change]:
    before, after = gate_row(old), gate_row(new)
    for world, words in WORLD_NAMES.items():
        one, other = before[world], after[world]
        if one.persistent != other.persistent:
            text = (
                f"persistent cache becomes usable {words}: start-up no longer tunes anew"
                if other.persistent
                else f"persistent cache is no longer usable {words}: every start-up tunes anew"
            )
            yield _change("gating", Effect.GAINS if other.persistent else Effect.BREAKS, text)
        if one.strategy is not other.strategy:
            yield _change("gating", Effect.CHANGES, f"warm-up {words}: {other.strategy} (was {one.strategy})")


def gate_row(row: Row) -> dict[str, Gating]:
    """The gating rule for a row in the three worlds that reports name."""
    return gate_worlds(row.facts, deepep_synchronized=row.deepep_synchronized is not None)


def _faults(old: Row, new: Row) -> Iterator[Change]:
    before = {fault.id: fault for fault in old.known_faults}
    after = {fault.id: fault for fault in new.known_faults}
    for name in sorted(set(after) - set(before)):
        yield _change("known_faults", Effect.BREAKS, f"{name}: {after[name].effect}")
    for name in sorted(set(before) - set(after)):
        yield _change("known_faults", Effect.GAINS, f"{name} is gone: {before[name].effect}")


def _unknowns(old: Mapping[str, Fact], new: Mapping[str, Fact]) -> Iterator[Change]:
    for name, fact in new.items():
        if fact.value is None and _value(old, name) is not None:
            yield _change(name, Effect.BREAKS, f"could not tell {name}: {fact.reason}")


def _alike(one: str, other: str) -> bool:
    """Whether one name is the other with something added or cut off at its ends."""
    return one in other or other in one or other.startswith(f"{one.rsplit('_', 1)[0]}_")


def _change(fact: str, effect: Effect, text: str) -> Change:
    return Change(fact=fact, effect=effect, text=text)


def _value(facts: Mapping[str, Fact], name: str) -> object:
    return facts[name].value if name in facts else None


def _texts(facts: Mapping[str, Fact], name: str) -> tuple[str, ...]:
    value = _value(facts, name)
    return value if isinstance(value, tuple) else ()
