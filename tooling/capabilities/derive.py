"""All facts of one release out of its archive, and which members they need. The caller gives `read(name)`."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from tooling.capabilities.distribution import (
    ENVIRONMENT_MODULE,
    derive_mismatch_policy,
    derive_packaging_layout,
    derive_requires,
    metadata_member,
)
from tooling.capabilities.facts import OPERATION_FACTS, TUNER_FACTS, Fact, KnownFault, unknown
from tooling.capabilities.faults import derive_faults
from tooling.capabilities.operations import derive_operations, operation_members
from tooling.capabilities.runners import GEMM_MODULES, derive_sf_layout
from tooling.capabilities.source import PACKAGE, Source
from tooling.capabilities.tuner import derive_tuner

NOT_READ = "operations were not read"
TUNER_MEMBERS = re.compile(r"flashinfer/(__init__\.py|autotun[^/]*\.py|autotuner/[^/]+\.py)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """What one archive tells. `with_operations`: all modules were read; `calendar` facts are not among these."""

    facts: Mapping[str, Fact]
    known_faults: tuple[KnownFault, ...] = ()
    problems: Mapping[str, str] = field(default_factory=dict)
    with_operations: bool = False


def tuner_members(names: Collection[str]) -> list[str]:
    """The members for all facts but those of operations."""
    metadata = metadata_member(names)
    chosen = {name for name in names if TUNER_MEMBERS.fullmatch(name) or GEMM_MODULES.fullmatch(name)}
    return sorted(chosen | ({metadata} if metadata else set()) | ({ENVIRONMENT_MODULE} & set(names)))


def all_members(names: Collection[str]) -> list[str]:
    """The members for all facts."""
    return sorted({*tuner_members(names), *operation_members(names)})


def derive(names: Collection[str], read: Callable[[str], bytes], *, with_operations: bool = True) -> Derived:
    """The facts and known faults of the release in the archive. Never raises for what the source looks like.

    A fact that could not be told has the value None and a reason.
    """
    try:
        return _derive(names, read, with_operations=with_operations)
    except (RecursionError, MemoryError) as cause:
        why = f"the source is nested too deep to be followed: {type(cause).__name__}"
        facts = {name: unknown(why) for name in (*TUNER_FACTS, *OPERATION_FACTS)}
        return Derived(facts=facts, with_operations=with_operations)


def _derive(names: Collection[str], read: Callable[[str], bytes], *, with_operations: bool) -> Derived:
    wanted = all_members(names) if with_operations else tuner_members(names)
    source = Source(names=frozenset(wanted), read=read)
    strangers = Source(names=frozenset(name for name in names if name.startswith(f"{PACKAGE}/")), read=read)
    facts = derive_tuner(source if f"{PACKAGE}/autotuner" in _stems(wanted) else strangers)
    facts["extras_have_sf_layout"] = derive_sf_layout(source)
    facts["requires"] = derive_requires(source)
    facts["packaging_layout"] = derive_packaging_layout(source)
    facts["mismatch_policy"] = derive_mismatch_policy(source)
    tuner = facts["autotuner"].value
    if tuner is None:
        facts |= {name: unknown(facts["autotuner"].reason) for name in OPERATION_FACTS}
    elif with_operations:
        facts |= derive_operations(source, has_tuner=tuner != "none")
    else:
        facts |= {name: unknown(NOT_READ) for name in OPERATION_FACTS}
    faults = derive_faults(source) if tuner not in {None, "none"} else ()
    return Derived(facts=facts, known_faults=faults, problems=source.problems, with_operations=with_operations)


def _stems(names: Collection[str]) -> set[str]:
    return {name.removesuffix(".py").removesuffix("/__init__") for name in names}
