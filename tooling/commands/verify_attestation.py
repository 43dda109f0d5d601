"""Check what an attestation of the gate says: its types, about which image, under which policy, with which result.

FILE is the Statement that `gate --attest` wrote, or a DSSE envelope or Sigstore bundle around one. The signature is not
checked here: that is cosign's or GitHub's, see docs/attestation.md.

Examples:
  tooling verify-attestation gate.intoto.json --channel release --subject sha256:…     before a release goes out
  tooling verify-attestation gate.intoto.json --channel release --evidence evidence    the records are those listed
  tooling verify-attestation bundle.json --policy trusted.toml --subject sha256:…      under a policy of one's own
  tooling verify-attestation gate.intoto.json --predicate predicate.json               take the predicate out to sign it
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path

from tooling.commands.argument_types import file, folder
from tooling.commands.report import Report
from tooling.commands.terminal import Terminal
from tooling.edges.evidence_files import load_evidence
from tooling.edges.files.durable import replace_file
from tooling.edges.files.reading import check_root, load_text
from tooling.errors import EdgeError, ExitCode, InputError
from tooling.findings import Finding, Severity, has_errors
from tooling.gate.attestation_check import check_attestation, check_records
from tooling.gate.attestation_text import MAX_BYTES, Attestation, parse_attestation
from tooling.gate.escaping import console_line
from tooling.gate.policy import Channel
from tooling.gate.policy_text import parse_policy
from tooling.pins.settings import FILE

MAX_NAME = 200
"""Characters of a name that are shown."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=file, metavar="FILE", help="a Statement, a DSSE envelope or a Sigstore bundle")
    parser.add_argument("--subject", type=_digest, action="append", default=[], metavar="sha256:…",
                        help="the image that it must be about; may be repeated")  # fmt: skip
    parser.add_argument("--policy", type=file, metavar="FILE", help=f"the policy to trust (default: ROOT/{FILE})")
    parser.add_argument("--channel", metavar="NAME", help="the channel that it must be for (default: the policy's own)")
    parser.add_argument("--evidence", type=folder, nargs="+", action="extend", default=[], metavar="DIR",
                        help="evidence folders: their records must be those that it lists")  # fmt: skip
    parser.add_argument("--strict", action="store_true", help="take no result that passed with warnings")
    parser.add_argument("--predicate", type=file, metavar="FILE",
                        help="if it passes, write its predicate alone here: cosign and GitHub take that")  # fmt: skip


def run(args: argparse.Namespace, terminal: Terminal) -> Report:
    attestation = parse_attestation(_read(args.file), path=str(args.file))
    channel = _load_channel(args)
    files = load_evidence(args.evidence)
    findings = check_attestation(
        attestation, subjects=args.subject, channel=channel.name, policy_sha256=channel.sha256,
        required=channel.titles, strict=args.strict,
    )  # fmt: skip
    if args.evidence:
        findings += check_records(attestation, files)
    _say(terminal, attestation, findings)
    failed = has_errors(findings)
    if args.predicate is not None and not failed:
        _write(args.predicate, attestation)
        terminal.say(f"written: {args.predicate}")
    return Report(
        command="verify-attestation",
        status="refused" if failed else "verified",
        exit_code=ExitCode.FINDINGS if failed else ExitCode.OK,
        findings=tuple(findings),
        fields={**_fields(attestation), "channel": channel.name, "policy_sha256": channel.sha256},
    )


def _load_channel(args: argparse.Namespace) -> Channel:
    """The channel that is trusted, of --policy or of the tree's own release.toml; never what the attestation says."""
    if args.policy is not None:
        path, text = str(args.policy), _read(args.policy).decode("utf-8", "replace")
    else:
        path, text = FILE, load_text(check_root(args.root), FILE).text
    return parse_policy(text, path=path).channel(args.channel, path=path)


def _read(path: Path) -> bytes:
    """The file's bytes, bounded; a pipe will do, as `<(cosign download …)` is one."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as cause:
        raise InputError(f"{path}: cannot be read: {cause.strerror}", reason="UNREADABLE") from cause


def _write(path: Path, attestation: Attestation) -> None:
    text = json.dumps(attestation.predicate, indent=2) + "\n"
    try:
        replace_file(path, text.encode())
    except OSError as cause:
        raise EdgeError(f"--predicate {path}: cannot be written: {cause.strerror}", reason="UNWRITABLE") from cause


def _say(terminal: Terminal, attestation: Attestation, findings: Sequence[Finding]) -> None:
    result = attestation.test_result
    for item in attestation.subjects:
        name = console_line(item.name or "_", MAX_NAME)
        terminal.say(f"subject  {name} sha256:{item.sha256 or '(by another algorithm)'}")
    if result is not None:
        count = len(result.passed) + len(result.warned)
        terminal.say(f"result   {result.result}, {count} passed, {len(result.failed)} failed, "
                     f"{len(result.records)} records")  # fmt: skip
        told = [f"{key} {console_line(value, MAX_NAME)}" for key, value in result.judged.items() if value is not None]
        terminal.say(f"judged   {', '.join(told) or 'it does not say when, nor for what'}")
    if attestation.envelope == "none":
        terminal.say("no signature: this is a bare Statement, which anybody can write")
    else:
        terminal.say(f"a signature is there ({attestation.envelope}); verify it with cosign or gh, this does not")
    terminal.say_findings(findings)
    bad = [item for item in findings if item.severity is Severity.ERROR]
    said = terminal.paint("refused", "red", "bold") if bad else terminal.paint("verified", "green", "bold")
    terminal.say(f"{said}: what it says" + (f" has {len(bad)} problems" if bad else " holds"))


def _fields(attestation: Attestation) -> dict[str, object]:
    result = attestation.test_result
    return {
        "envelope": attestation.envelope,
        "signature_checked": False,
        "subjects": [{"name": item.name, "sha256": item.sha256} for item in attestation.subjects],
        "result": None if result is None else result.result,
        "judged": None if result is None else result.judged,
        "records": [] if result is None else [{"name": r.name, "sha256": r.sha256} for r in result.records],
    }


def _digest(text: str) -> str:
    if not re.fullmatch("sha256:[0-9a-f]{64}", text):
        raise argparse.ArgumentTypeError(f"found {text!r}, expected sha256: and 64 hexadecimal digits")
    return text
