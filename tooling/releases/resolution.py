"""What a resolver answered, as values: the packages with the index each came from, or the conflict, innermost first."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from tooling.findings import Finding, Severity
from tooling.redaction import redact_text
from tooling.releases.addresses import redact_url

_BOX = re.compile(r"^[\s\u2500-\u25ff\u00d7]*(?:cause:\s*|Caused by:\s*)?", re.MULTILINE)
_FROM = re.compile(r"#\s*from\s+(\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Why there is no solution: `steps` are the resolver's sentences, the innermost first; `hint` is its own advice."""

    steps: tuple[str, ...]
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """The answer for one machine; `packages` is name to (version, printable index)."""

    target: str
    packages: Mapping[str, tuple[str, str | None]] = field(default_factory=dict)
    conflict: Conflict | None = None

    def as_json(self) -> dict[str, object]:
        return {
            "target": self.target,
            "resolves": self.conflict is None,
            "packages": {name: {"version": found[0], "index": found[1]} for name, found in self.packages.items()},
            "conflict": list(self.conflict.steps) if self.conflict else [],
        }


def parse_resolved(text: str) -> dict[str, tuple[str, str | None]]:
    """Name to version and index of what `uv pip compile --emit-index-annotation` printed."""
    found: dict[str, tuple[str, str | None]] = {}
    name = None
    for line in text.splitlines():
        if (index := _FROM.search(line)) and name is not None:
            found[name] = (found[name][0], redact_url(index[1]))
        elif line.strip() and not line.lstrip().startswith("#"):
            try:
                requirement = Requirement(line.partition("#")[0].strip())
            except InvalidRequirement:
                continue
            name = canonicalize_name(requirement.name)
            found[name] = (str(requirement.specifier).removeprefix("=="), None)
    return found


def parse_conflict(text: str) -> Conflict | None:
    """The conflict in the resolver's words, or None if it failed for another reason."""
    if "No solution found" not in text:
        return None
    plain = redact_text(_BOX.sub("", text.partition("No solution found")[2]))
    reason, *hints = re.split(r"^hint:\s*", plain, flags=re.MULTILINE)
    words = " ".join(reason.split())
    start = words.find("Because")
    sentences = re.split(r"(?<=[.])\s+(?=(?:And b|B)ecause)", words[max(start, 0) :])
    return Conflict(
        steps=tuple(sentence.strip() for sentence in sentences if sentence.strip()),
        hint=" ".join(" ".join(hints).split()),
    )


def check_resolution(path: str, resolution: Resolution) -> list[Finding]:
    """`resolve` for a machine on which the file has no solution, the innermost conflict first."""
    if resolution.conflict is None:
        return []
    steps = resolution.conflict.steps or ("the resolver gives no reason.",)
    rest = " ".join(steps[1:])
    return [
        Finding(
            check="resolve",
            severity=Severity.ERROR,
            path=path,
            detail=f"{resolution.target}: no solution. {steps[0]}",
            hint=" ".join(part for part in (rest, resolution.conflict.hint) if part)[:1500],
            reason="RESOLUTION",
        )
    ]
