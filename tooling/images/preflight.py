"""What must be there before an hour-long build, decided from what was seen. Looking is done by edges.

Each problem is one sentence; the command raises the first one as an error, and `--doctor` lists them all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

MIN_BUILDX = (0, 10, 0)
"""The first one with attestation flags and metadata of bake targets (buildx release notes)."""
DEFAULT_DISK_GB = 20
"""A target's image has 8 GB, its wheels in the build's caches 7 GB, and layers are written once more when exported."""

_MISSING = re.compile(r"not found|manifest unknown|does not exist|repository name not known|denied", re.IGNORECASE)

Outcome = Literal["ok", "problem", "not checked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One look at the world: its name, how it ended, a sentence, and for a problem its reason and what to do."""

    name: str
    outcome: Outcome
    detail: str
    reason: str = ""
    hint: str = ""

    def as_json(self) -> dict[str, str]:
        return {"name": self.name, "outcome": self.outcome, "detail": self.detail, "reason": self.reason}


def judge_buildx(answer: str | None, complaint: str, *, is_late: bool = False) -> Check:
    """`answer` is what `docker buildx version` printed, None if it failed; `complaint` is what is then to be said."""
    if is_late:
        hint = "does `docker version` answer? A credential helper or a plugin may be waiting for something"
        return problem("buildx", "TOOL_HANGS", f"{complaint}.", hint)
    hint = "install the docker-buildx plugin; Debian and Docker both have a package of that name"
    if answer is None:
        return problem("buildx", "TOOL_MISSING", f"docker has no buildx: it says {_first_line(complaint)!r}.", hint)
    found = re.search(r"\bv?(\d+)\.(\d+)\.(\d+)", answer)
    if found is None:
        return problem("buildx", "TOOL_MISSING", f"buildx does not say its version: {_first_line(answer)!r}.", hint)
    version = tuple(int(part) for part in found.groups())
    shown = ".".join(found.groups())
    if version < MIN_BUILDX:
        needed = ".".join(str(part) for part in MIN_BUILDX)
        return problem("buildx", "TOOL_TOO_OLD", f"buildx is {shown}, and {needed} or later is needed.", hint)
    return Check(name="buildx", outcome="ok", detail=f"buildx {shown}")


def judge_disk(folder: str, free_bytes: int | None, needed_gb: float) -> Check:
    """`free_bytes` None: the engine's folder is not on this machine."""
    if free_bytes is None:
        return not_checked("disk", f"the engine's {folder} is not on this machine")
    free_gb = free_bytes / 1e9
    sentence = f"{needed_gb:g} GB are needed in {folder} and {free_gb:.1f} GB are free"
    if free_gb < needed_gb:
        hint = "`docker system prune` frees what nobody uses; --disk-gb N changes what is asked for"
        return problem("disk", "INFRA_DISK", f"{sentence}.", hint)
    return Check(name="disk", outcome="ok", detail=sentence)


def judge_base(image: str, *, is_local: bool, registry_answer: str | None, complaint: str) -> Check:
    """`registry_answer` None: the registry gave no manifest, and `complaint` is what was said instead."""
    name = f"base {image}"
    if is_local:
        return Check(name=name, outcome="ok", detail="the engine has it")
    if registry_answer is not None:
        return Check(name=name, outcome="ok", detail="its registry has it")
    if _MISSING.search(complaint):
        return problem(
            name,
            "BASE_IMAGE_MISSING",
            f"the base image {image} is in no engine or registry here: {_first_line(complaint)}.",
            "tags of CUDA bases are withdrawn by policy; name another with --base-image",
        )
    return problem(
        name,
        "BASE_IMAGE_UNREACHABLE",
        f"the engine does not have the base image {image}, and its registry does not answer: {_first_line(complaint)}.",
        "name one that is to be had with --base-image, or load it into the engine first",
    )


def not_checked(name: str, why: str) -> Check:
    return Check(name=name, outcome="not checked", detail=f"not checked: {why}")


def problem(name: str, reason: str, detail: str, hint: str) -> Check:
    return Check(name=name, outcome="problem", detail=detail, reason=reason, hint=hint)


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0].removeprefix("ERROR: ").rstrip(".") if lines else "nothing"
