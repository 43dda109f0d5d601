"""What the gate reads before it judges: the policy, the tree's own pins, the folders of evidence, the time."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tooling.capabilities.table import Table
from tooling.commands.recording import load_pins
from tooling.edges import clock, git
from tooling.edges.capability_table import load_table
from tooling.edges.evidence_files import is_record_name, load_evidence
from tooling.edges.files.reading import load_text
from tooling.edges.files.tree import find_versions_file, load_optional_text, load_settings
from tooling.errors import InputError
from tooling.gate.candidate import Given
from tooling.gate.policy import Channel
from tooling.gate.policy_text import parse_policy
from tooling.gate.values import EvidenceFile
from tooling.gsm8k.config import config_digest
from tooling.pins.settings import FILE
from tooling.pins.texts import SourceText


@dataclass(frozen=True, slots=True, kw_only=True)
class GateInputs:
    """Everything that the verdict follows from."""

    channel: Channel
    files: tuple[EvidenceFile, ...]
    earlier: tuple[EvidenceFile, ...]
    given: Given
    as_of: datetime
    table: Table


def load_gate_inputs(args: argparse.Namespace) -> GateInputs:
    """Reads all of it; nothing is asked of a network.

    Raises:
        InputError: a broken policy, an unknown channel, no folder of evidence, a broken tree.
    """
    channel = load_channel(args)
    folders = evidence_folders(args)
    _check_before(args.before, folders)
    return GateInputs(
        channel=channel,
        files=load_evidence(folders, leave_out=args.before),
        earlier=load_evidence(args.before, option="--before", leave_out=folders),
        given=_given(args, channel),
        # Whole seconds, as every output shows them: judging again at that time gives the same bytes.
        as_of=(args.as_of or clock.now()).replace(microsecond=0),
        table=load_table(),
    )


def evidence_folders(args: argparse.Namespace) -> list[Path]:
    """The folders that are read, as they were typed: a verdict shows no machine's own paths."""
    named: list[Path] = args.evidence
    return named or [args.root / "evidence"]


def load_channel(args: argparse.Namespace) -> Channel:
    """The channel of `--channel` in `--policy FILE`, by default in the tree's release.toml."""
    path = args.policy or args.root / FILE
    shown = str(args.policy or FILE)
    try:
        text = load_text(path.parent, path.name).text
    except InputError as cause:
        raise InputError(
            f"{path.parent / cause.message}", hint="give --policy FILE; docs/gate.md shows how to write one",
            reason="NO_POLICY" if cause.reason == "MISSING" else cause.reason,
        ) from cause  # fmt: skip
    return parse_policy(text, path=shown).channel(args.channel, path=shown)


def moment(text: str) -> datetime:
    """An argument's ISO 8601 time with its zone, such as 2026-06-01T12:00:00Z, in UTC."""
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is not None:
            return found.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise argparse.ArgumentTypeError(f"found {text!r}, expected a time with its zone, as 2026-06-01T12:00:00Z")


def _check_before(before: list[Path], folders: list[Path]) -> None:
    """A release that is compared with itself never got worse."""
    ours = {folder.resolve() for folder in folders}
    for folder in before:
        if folder.resolve() in ours:
            raise InputError(
                f"--before {folder}: is where the records to judge lie",
                hint="name a folder of the release before",
                reason="BAD_ARGUMENTS",
            )


def _given(args: argparse.Namespace, channel: Channel) -> Given:
    """The tree's own pins and configurations, where there is a tree with any; the records must be of them."""
    pins, version, _ = load_pins(args.root, find_versions_file(args.root, load_settings(args.root)))
    texts = {subject: load_optional_text(args.root, path) for subject, path in channel.gsm8k.subjects.items()}
    return Given(
        pins_sha256=pins,
        flashinfer_version=version,
        commit=args.commit,
        head=None if pins is None else git.load_head(args.root),
        configs={name: _digest(text) for name, text in texts.items() if text is not None or pins is not None},
    )


def _digest(text: SourceText | None) -> str:
    """The configuration's; "" where the tree has none, which no configuration has."""
    return "" if text is None else config_digest(text.text)


def read_by_gate(path: Path, folders: list[Path]) -> bool:
    """Whether the gate would take that file for a record the next time."""
    real, listed = path.resolve(), [folder.resolve() for folder in folders]
    if path.suffix != ".json":
        return False
    return real.parent in listed or (is_record_name(path.name) and real.parent.parent in listed)
