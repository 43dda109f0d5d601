"""Findings: facts about a release that are returned, listed and judged, and shown. Nothing here decides which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from tooling.redaction import redact_text


class Severity(StrEnum):
    """How a finding counts: an error fails or refuses, a warning is shown, a note informs."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fact, with the check that saw it and where.

    `path` is relative to the root, with forward slashes; `line` counts from 1; `reason` is a short upper-case word.
    Secrets of addresses that stand in `detail` or `hint` are hidden: findings quote files, and they are recorded.
    """

    check: str
    detail: str
    severity: Severity = Severity.ERROR
    path: str | None = None
    line: int | None = None
    hint: str = ""
    reason: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "detail", redact_text(self.detail))
        object.__setattr__(self, "hint", redact_text(self.hint))

    def as_json(self) -> dict[str, object]:
        return {
            "check": self.check,
            "severity": str(self.severity),
            "path": self.path,
            "line": self.line,
            "detail": self.detail,
            "hint": self.hint,
            "reason": self.reason,
        }

    @staticmethod
    def from_json(value: Mapping[str, object]) -> Finding:
        """The finding that `as_json` wrote. Raises KeyError, TypeError or ValueError on another shape."""
        path, line = value["path"], value["line"]
        if not (path is None or isinstance(path, str)) or not (line is None or isinstance(line, int)):
            raise TypeError("path must be text or null and line a number or null")
        return Finding(
            check=str(value["check"]),
            detail=str(value["detail"]),
            severity=Severity(str(value["severity"])),
            path=path,
            line=line,
            hint=str(value.get("hint", "")),
            reason=str(value.get("reason", "")),
        )

    @property
    def where(self) -> str:
        """`path:line`, `path`, or nothing."""
        if self.path is None:
            return ""
        return self.path if self.line is None else f"{self.path}:{self.line}"


def has_errors(findings: Iterable[Finding]) -> bool:
    return any(finding.severity is Severity.ERROR for finding in findings)


def render_annotation(finding: Finding) -> str:
    """One GitHub workflow command, such as `::error file=a,line=3,title=drift::text`, with its escapes."""
    level = "notice" if finding.severity is Severity.NOTE else str(finding.severity)
    places = {"file": finding.path, "line": finding.line, "title": finding.check}
    properties = ",".join(f"{key}={_escape_property(str(value))}" for key, value in places.items() if value is not None)
    text = f"{finding.detail} {finding.hint}".strip()
    return f"::{level} {properties}::{_escape_data(text)}"


def _escape_data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_data(text).replace(":", "%3A").replace(",", "%2C")
