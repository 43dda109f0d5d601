"""The machine and what is installed on it, against the pins and the row: what holds for all scenarios alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from packaging.version import InvalidVersion, Version

from tooling.capabilities.table import Row
from tooling.findings import Finding, Severity
from tooling.smoke.case import text
from tooling.smoke.consistency import machine_contradictions
from tooling.smoke.observations import BROKEN, Seen
from tooling.smoke.one_line import one_line

MAIN = "flashinfer-python"
OPTIONAL = ("flashinfer-cubin", "flashinfer-jit-cache")
"""Packages of compiled kernels: without them kernels are compiled or fetched, and their contents are not covered."""

REQUIRED = (MAIN, "torch")
"""Without these nothing runs. A companion that a run says it does not cover may be absent: not every GPU needs each."""

API_FACTS = ("autotuner", "autotune_parameters", "config_files", "process_group_timing", "managed_store")
"""Facts of the row that the installed tuner itself can be asked for; all must have an answer."""


def check_machine(seen: Seen, row: Row | None) -> tuple[Finding, ...]:
    """Every finding about GPU, packages, table row, interface and environment."""
    if corrupt := machine_contradictions(seen):
        return tuple(_finding("smoke-record", "CORRUPT", one, hint="run the smoke stage again") for one in corrupt)
    return (
        *_check_gpu(seen),
        *_check_row(seen, row),
        *_check_interface(seen.machine.api, row),
        *_check_pins(seen),
        *_check_kernels(seen),
        *_check_covered(seen),
        *_check_environment(seen),
    )


def _check_gpu(seen: Seen) -> Iterator[Finding]:
    if not seen.machine.gpus:
        yield _finding("smoke-gpu", "NO_GPU", "there is no GPU here", hint="run it where torch sees a CUDA device")


def installed_release(seen: Seen) -> str:
    """The version of flashinfer-python that is installed, "" without one."""
    return seen.machine.packages.get(MAIN) or ""


def is_covered(seen: Seen, package: str) -> bool:
    return seen.machine.packages.get(package) is not None


def _check_row(seen: Seen, row: Row | None) -> Iterator[Finding]:
    release = installed_release(seen)
    version = _version(release)
    if not release:
        yield _finding("smoke-pins", "NO_FLASHINFER", f"{MAIN} is not installed", hint="install requirements/cuda.txt")
    elif version is None:
        yield _finding("smoke-row", "NO_ROW", f"{MAIN} {release} is no version, so the table cannot list it")
    elif row is None:
        yield _finding(
            "smoke-row",
            "NO_ROW",
            f"the capabilities table has no row for {version.public}, which is installed",
            hint=f"nox -s probe -- {version.public} --add",
        )
    elif Version(version.public) not in row.releases:
        yield _finding(
            "smoke-row", "WRONG_ROW", f"the row is for {row.label}, and {MAIN} {version.public} is installed"
        )


def _check_interface(api: Mapping[str, Any], row: Row | None) -> Iterator[Finding]:
    """The installed tuner offers what the row says; what it could not be asked for is a difference as well."""
    if broken := api.get(BROKEN):
        yield _finding(
            "smoke-interface", "FLASHINFER_BROKEN", f"FlashInfer cannot be imported: {one_line(str(broken))}"
        )
        return
    if row is None:
        return
    for name in API_FACTS:
        wanted = row.facts[name].value if name in row.facts else None
        found = api.get(name)
        if text(found) != text(wanted) or found is None:
            detail = f"{name}: the installed tuner has {text(found)}, the row says {text(wanted)}"
            yield _finding("smoke-interface", "API_DIFFERS", detail, hint="nox -s probe derives the row anew")
    yield from _check_metadata(api, row)


def _check_metadata(api: Mapping[str, Any], row: Row) -> Iterator[Finding]:
    """Which of the row's fields are recorded depends on the machine; one that it does not know is a difference."""
    fact = row.facts.get("metadata_fields")
    found, known = api.get("metadata_fields"), set(_items(fact.value if fact else None))
    recorded = set(map(str, found)) if isinstance(found, list | tuple) else set()
    if recorded - known or bool(recorded) != bool(known):
        detail = f"metadata_fields: the installed tuner records {text(recorded)}, the row says {text(known)}"
        yield _finding("smoke-interface", "API_DIFFERS", detail, hint="nox -s probe derives the row anew")


def _check_pins(seen: Seen) -> Iterator[Finding]:
    if MAIN not in seen.pinned:
        yield _finding("smoke-pins", "UNPINNED", f"nothing pins {MAIN}, so there is nothing to compare it with")
    for name, pin in sorted(seen.pinned.items()):
        found = seen.machine.packages.get(name)
        if found is None:
            if name in REQUIRED or name not in (*OPTIONAL, *seen.not_covered):
                yield _finding("smoke-pins", "PIN_SKEW", f"{name} is not installed; the pin is {pin}")
        elif not _same(found, pin):
            hint = f"install {name}=={pin}"
            yield _finding("smoke-pins", "PIN_SKEW", f"{name} {found} is installed; the pin is {pin}", hint=hint)
    release = installed_release(seen)
    for name in OPTIONAL:
        found = seen.machine.packages.get(name)
        if found is not None and name not in seen.pinned and release and not _same(found, release.split("+")[0]):
            yield _finding("smoke-pins", "PIN_SKEW", f"{name} {found} is installed beside {MAIN} {release}")


def _check_kernels(seen: Seen) -> Iterator[Finding]:
    """Kernels of an earlier run were compiled for what is here; a fresh folder of this run's own says nothing."""
    here = {"cuda": seen.machine.cuda, "flashinfer": installed_release(seen), "arch": seen.machine.arch}
    for name, value in here.items() if seen.jit != {"fresh": True} else ():
        if (found := seen.jit.get(name)) != value:
            detail = f"the compiled kernels are for {name} {text(found)}, and this machine has {text(value)}"
            yield _finding("smoke-kernels", "JIT_CACHE_FOREIGN", detail, hint="empty the folder of --jit-cache")


def _check_covered(seen: Seen) -> Iterator[Finding]:
    absent = [f"{name} is not installed" for name in OPTIONAL if not is_covered(seen, name)]
    named = [item for item in seen.not_covered if not any(item.startswith(name) for name in OPTIONAL)]
    for item in (*absent, *named):
        yield _finding("smoke-covered", "NOT_COVERED", f"not covered: {item}", severity=Severity.NOTE)


def _check_environment(seen: Seen) -> Iterator[Finding]:
    for name, value in sorted(seen.bypasses.items()):
        detail = f"{name}={value} was set and was taken out of the environment for this run"
        yield _finding(
            "smoke-environment", "BYPASS_REMOVED", detail, severity=Severity.WARNING, hint="it belongs in no release"
        )
    for name, value in sorted(seen.overrides.items()):
        detail = f"{name}={value} is the operator's own setting and stayed"
        yield _finding("smoke-environment", "OVERRIDE", detail, severity=Severity.NOTE)


def _same(found: str, pin: str) -> bool:
    """Equal versions; a local label counts only where the pin has one."""
    left, right = _version(found), _version(pin)
    if left is None or right is None:
        return found == pin
    return left == right if right.local else Version(left.public) == Version(right.public)


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def _items(value: object) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()


def _finding(check: str, reason: str, detail: str, *, severity: Severity = Severity.ERROR, hint: str = "") -> Finding:
    return Finding(check=check, reason=reason, detail=detail, severity=severity, hint=hint)
