"""What runs in a container: where things lie in it, the words of its command, and the answer that it gives."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tooling.errors import EdgeError, ExitCode, InputError, ToolingError

HOME = "/pin-smoke"
SOURCE, TREE, EVIDENCE, JIT = f"{HOME}/source", f"{HOME}/tree", f"{HOME}/evidence", f"{HOME}/jit"
START = f"{SOURCE}/tooling/edges/smoke_start.py"

PYTHONS = ("python3", "python")
"""The names under which an image's own Python is looked for, in this order."""

START_S = 900.0
"""Beside the scenarios' own deadlines: the machine's look at itself, imports from a cold disk."""

STOP_S = 30
"""How long the run inside may take to end its workers and write what it has."""

PINS = ("release.toml", "versions.json", "docker/versions.json")
PINS_FOLDER = "requirements"
"""Of `--root`, what the run inside reads: the pins, and nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The one JSON object that a command gives, read back. `lacks`, `found`: what the image has not, and has."""

    status: str = ""
    exit_code: ExitCode = ExitCode.CRASH
    findings: tuple[dict[str, Any], ...] = ()
    error: ToolingError | None = None
    lacks: str = ""
    found: str = ""
    fields: dict[str, Any] = field(default_factory=dict)


def plan_command(python: str, options: Sequence[str], *, jit_image: str | None) -> list[str]:
    """The container's command: its Python runs this tool's smoke on the tree that was brought in.

    `jit_image`: with kernels brought in that belong to the image of that id.
    """
    jit = ["--jit-cache", JIT, "--jit-image", jit_image] if jit_image is not None else []
    words = ["smoke", "--json", "--root", TREE, "--evidence", EVIDENCE, *jit, *options]
    return [python, START, *words]


def find_manifest_digest(tag: str, repository_digests: Sequence[str]) -> str | None:
    """What registries call an image: the digest of the tag's own repository, else any; None if it was never pushed."""
    named = tag.partition("@")[0]
    folder, slash, last = named.rpartition("/")
    repository = folder + slash + last.partition(":")[0]
    pairs = sorted((text.partition("@") for text in repository_digests), key=lambda pair: pair[0] != repository)
    return pairs[0][2] if pairs else None


def parse_answer(stdout: bytes, *, jit_folder: str = JIT) -> Answer | None:
    """The answer in a container's standard output, None if there is none (it was killed, or could not begin).

    An error that names the folder of kernels names `jit_folder`, where it lies outside.
    """
    try:
        body = json.loads(stdout)
        if "lacks" in body:
            return Answer(lacks=str(body["lacks"]), found=str(body.get("found", "")))
        known = ("command", "status", "exit", "findings", "error")
        return Answer(
            status=str(body["status"]),
            exit_code=ExitCode(body["exit"]),
            findings=tuple(body["findings"]),
            error=_read_error(body["error"], jit_folder),
            fields={key: value for key, value in body.items() if key not in known},
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _read_error(body: dict[str, Any] | None, jit_folder: str) -> ToolingError | None:
    if body is None:
        return None
    family = {InputError.kind: InputError, EdgeError.kind: EdgeError}.get(body["kind"], ToolingError)
    message = body["message"].replace(JIT, jit_folder)
    return family(f"in the container: {message}", hint=body["hint"], reason=body["reason"])
