"""What a tree pins of the packages that a smoke run finds installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tooling.pins.requirements import RequirementLine

VARIABLES = {"FLASHINFER_VERSION": "flashinfer-python", "TORCH_VERSION": "torch"}
"""Variables of versions.json and the package that each names."""
ALWAYS = frozenset({"flashinfer-python", "flashinfer-cubin", "flashinfer-jit-cache", "torch"})
"""What must be as pinned. Companions are compared where they are installed: not every GPU needs each of them."""


def find_pinned(variables: Mapping[str, str], lines: Sequence[RequirementLine]) -> dict[str, str]:
    """Package and version: exact requirements, and versions.json, which has the last word."""
    pinned = {line.name: line.exact_version for line in lines if line.name and line.exact_version}
    pinned |= {package: variables[name] for name, package in VARIABLES.items() if name in variables}
    return {name: version for name, version in sorted(pinned.items()) if version}


def absent_companions(pinned: Mapping[str, str], installed: Mapping[str, str | None]) -> tuple[str, ...]:
    """Pinned companions that are not installed: the run says nothing about them."""
    return tuple(name for name in pinned if name not in ALWAYS and installed.get(name) is None)
