"""Wraps what a stage returns into an evidence record: the tree's pins, its revision, the times."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tooling import __version__
from tooling.commands.argument_types import folder
from tooling.edges import clock, git
from tooling.edges.evidence_files import write_record
from tooling.edges.files.tree import find_versions_file, load_optional_text, load_settings
from tooling.edges.packaged_data import load_library
from tooling.evidence import COMMIT, Record, Status
from tooling.findings import Finding
from tooling.pins.identity import pins_sha256
from tooling.pins.requirements import parse_requirements
from tooling.pins.versions import parse_versions

REQUIREMENTS = "requirements/cuda.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedTree:
    """What the tree pins, read once when a stage starts: the record names these, also if files change meanwhile."""

    versions_file: str | None
    pins_sha256: str | None
    flashinfer_version: str | None
    variables: Mapping[str, str]
    revision: git.Revision
    started: datetime


def commit(text: str) -> str:
    """A commit, whole or cut to at least seven digits; a branch names another one tomorrow."""
    if not re.fullmatch(COMMIT, text):
        raise argparse.ArgumentTypeError(f"found {text!r}, expected 7 to 64 hexadecimal digits")
    return text.lower()


def add_evidence_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--evidence", type=folder, metavar="DIR", help="where the record goes (default: ROOT/evidence)")
    parser.add_argument("--commit", type=commit, metavar="SHA", help="the commit to record where git cannot tell it")


def load_pinned_tree(root: Path, *, versions_file: str | None = None, commit: str | None = None) -> PinnedTree:
    """The tree's pins and revision. A tree without these files has null pins; broken ones raise InputError.

    `versions_file` is found as everywhere where it is not given, so that all stages' records name the same pins.
    """
    started = clock.now()
    versions_file = versions_file or find_versions_file(root, load_settings(root))
    digest, version, variables = load_pins(root, versions_file)
    return PinnedTree(
        versions_file=versions_file,
        pins_sha256=digest,
        flashinfer_version=version,
        variables=variables,
        revision=_revision(git.load_revision(root), commit),
        started=started,
    )


def _revision(found: git.Revision, given: str | None) -> git.Revision:
    """What git tells; a commit that was given, cut short or not, is git's own or that of another tree."""
    if given is None or (found.commit is not None and found.commit.startswith(given)):
        return found
    return git.Revision(commit=given, dirty=bool(found.dirty) if found.commit is None else True)


def load_pins(root: Path, versions_file: str | None) -> tuple[str | None, str | None, Mapping[str, str]]:
    """The digest of the tree's pins, its FlashInfer release and its variables; None, None and {} where it has none."""
    text = load_optional_text(root, versions_file) if versions_file else None
    variables = {} if text is None else parse_versions(text.text, path=text.path)
    lines = [] if (listed := load_optional_text(root, REQUIREMENTS)) is None else parse_requirements(listed.text)
    digest = pins_sha256(variables, lines) if variables or lines else None
    return digest, variables.get(load_library().variable), variables


def make_record(
    tree: PinnedTree,
    *,
    stage: str,
    status: Status,
    subject: str | None = None,
    reason: str | None = None,
    findings: Sequence[Finding] = (),
    measurements: Mapping[str, object] | None = None,
    image_id: str | None = None,
    manifest_digest: str | None = None,
    gpu: Mapping[str, object] | None = None,
) -> Record:
    """The record of a stage that ends now."""
    return Record(
        stage=stage,
        subject=subject,
        status=status,
        reason=reason,
        pins_sha256=tree.pins_sha256,
        flashinfer_version=tree.flashinfer_version,
        commit=tree.revision.commit,
        dirty=tree.revision.dirty,
        image_id=image_id,
        manifest_digest=manifest_digest,
        gpu=gpu,
        started=tree.started,
        ended=clock.now(),
        tool_version=__version__,
        findings=tuple(findings),
        measurements=measurements or {},
    )


def save_record(args: argparse.Namespace, record: Record) -> Path:
    """Writes the record to the evidence folder; returns its path."""
    return write_record(evidence_folder(args), record)


def evidence_folder(args: argparse.Namespace) -> Path:
    """`--evidence DIR`, by default the tree's own folder."""
    folder: Path = args.evidence or args.root / "evidence"
    return folder
