"""The gate's values: what a record is worth, what a channel asks for, the verdict. Renderers read nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from tooling.capabilities.table import Row
from tooling.evidence import Record, title
from tooling.findings import Finding


class Outcome(StrEnum):
    """The gate's verdict, and what one requirement came to. The worst of all is the whole."""

    PASS = "PASS"  # noqa: S105  # no password
    INCOMPLETE = "INCOMPLETE"
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceFile:
    """A file of an evidence folder as it was found. `sha256` is over its bytes, hexadecimal; `path` is for people.

    `record` null: `problem` says in one sentence why it is none, `reason` in a word (UNPARSABLE, HAND_EDITED, TOO_BIG,
    OUTSIDE, …).
    """

    path: str
    sha256: str
    record: Record | None = None
    reason: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why the verdict is not PASS, or something that everybody should see although it is (`outcome` PASS).

    `word` is upper-case for machines; `command` produces the right record, `machine` says where to run it (such as
    "a machine with an sm90 GPU"); `path` is the evidence file.
    """

    outcome: Outcome
    word: str
    detail: str
    stage: str | None = None
    subject: str | None = None
    path: str | None = None
    command: str = ""
    machine: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """Something that the channel asks for, the record that was taken for it, and what it came to."""

    stage: str
    subject: str | None
    outcome: Outcome
    file: EvidenceFile | None = None
    reasons: tuple[Reason, ...] = ()

    @property
    def title(self) -> str:
        return title(self.stage, self.subject)


@dataclass(frozen=True, slots=True, kw_only=True)
class BumpChange:
    """What moving the pin changes: releases and their rows (null without one), and the table's comparison in words.

    `companions`: requirement and what it was before and is after, null where it came or went.
    """

    before: str | None
    after: str | None
    row_before: Row | None = None
    row_after: Row | None = None
    changes: tuple[Mapping[str, object], ...] = ()
    companions: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The verdict of a channel over a set of records at a moment, with everything that is shown of it.

    The same records, policy and `as_of` give the same value. `reasons` are in order of weight, the first cause first.
    `earlier` are records of the release before, for comparison only. `policy_sha256` is over the policy's canonical
    JSON.
    """

    outcome: Outcome
    channel: str
    as_of: datetime
    policy_sha256: str
    flashinfer_version: str | None
    pins_sha256: str | None
    commit: str | None
    images: Mapping[str, str] = field(default_factory=dict)
    """Config digest by bake target."""
    requirements: tuple[Requirement, ...] = ()
    reasons: tuple[Reason, ...] = ()
    files: tuple[EvidenceFile, ...] = ()
    earlier: tuple[EvidenceFile, ...] = ()
    bump: BumpChange | None = None
    row: Row | None = None
    """The capabilities table's row of the release, None where it has none."""

    @property
    def findings(self) -> tuple[tuple[EvidenceFile, Finding], ...]:
        """Every finding of every record that was taken for a requirement."""
        taken = {item.file.path: item.file for item in self.requirements if item.file is not None}
        return tuple(
            (file, finding) for file in taken.values() if file.record is not None for finding in file.record.findings
        )

    def manifest_digest(self, target: str) -> str | None:
        """What a registry calls the target's image, from the image stage's record of it; None before it was pushed."""
        taken = [item.file for item in self.requirements if item.file is not None]
        records = [file.record for file in sorted((*taken, *self.files), key=lambda file: file.path) if file.record]
        wanted = ("image", target, self.images[target])
        named = (one.manifest_digest for one in records if (one.stage, one.subject, one.image_id) == wanted)
        return next(filter(None, named), None)
