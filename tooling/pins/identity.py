"""`pins_sha256`: one digest for all pins, so that records can be told to speak of the same ones."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping

from packaging.utils import canonicalize_name

from tooling.pins.requirements import RequirementLine


def pins_sha256(variables: Mapping[str, str], requirements: Iterable[RequirementLine]) -> str:
    """64 hex digits over the canonical JSON of the variables and of every parsed requirement.

    Comments, layout, order of lines, case and `_` or `-` in names do not count; option lines do not either.
    """
    lines = sorted(_canonical(line) for line in requirements if not line.is_option)
    body = json.dumps({"requirements": lines, "variables": dict(variables)}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(body.encode()).hexdigest()


def _canonical(line: RequirementLine) -> str:
    requirement = line.requirement
    if requirement is None:
        return " ".join(line.text.split())
    extras = (
        f"[{','.join(sorted(canonicalize_name(extra) for extra in requirement.extras))}]" if requirement.extras else ""
    )
    marker = f" ; {requirement.marker}" if requirement.marker else ""
    url = f" @ {requirement.url}" if requirement.url else ""
    return f"{canonicalize_name(requirement.name)}{extras}{requirement.specifier}{url}{marker}"
