"""What a command hands back to the command line, and the JSON object that it becomes (DESIGN: output for machines)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from tooling.errors import ExitCode, ToolingError
from tooling.findings import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The end of one command: its status in the command's own words, the exit code, and what it found.

    `fields` are the command's own keys of the JSON object.
    """

    command: str
    status: str
    exit_code: ExitCode
    findings: tuple[Finding, ...] = ()
    error: ToolingError | None = None
    fields: Mapping[str, object] = field(default_factory=dict)


def render_json(report: Report) -> str:
    """Exactly one JSON object and a newline, in ASCII: whatever stdout is encoded in, it stays JSON."""
    return json.dumps(_object(report), indent=2) + "\n"


def _object(report: Report) -> dict[str, object]:
    error = report.error
    return {
        "command": report.command,
        "status": report.status,
        "exit": int(report.exit_code),
        "findings": [finding.as_json() for finding in report.findings],
        "error": error and {"kind": error.kind, "message": error.message, "hint": error.hint, "reason": error.reason},
        **report.fields,
    }
