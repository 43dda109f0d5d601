"""Reads what the stages recorded, and says whether a release may go to a channel: PASS, FAIL or INCOMPLETE.

Only evidence is read: no network, no engine, no GPU. The same records, policy and time give the same bytes. What is
missing is never a pass: every reason names the command that makes the right record, and the machine for it.

Examples:
  tooling gate                                        the default channel over ROOT/evidence
  tooling gate --channel release --evidence build/evidence gpu/evidence
  tooling gate --channel release --missing            which commands are still to run, and where
  tooling gate --channel release --before ../last/evidence --html gate.html --markdown gate.md --junit gate.xml
  tooling gate --policy policy.toml --as-of 2026-06-01T12:00:00Z --commit 3f2a9c1 --attest gate.intoto.json
"""

from __future__ import annotations

import argparse

from tooling.commands.argument_types import file, folder
from tooling.commands.gate_inputs import load_gate_inputs, moment
from tooling.commands.gate_outputs import add_output_arguments, check_outputs, say_verdict, write_outputs
from tooling.commands.recording import commit
from tooling.commands.report import Report
from tooling.commands.terminal import Terminal
from tooling.edges.files.reading import check_root
from tooling.errors import ExitCode, ToolingError
from tooling.gate.fields import verdict_fields
from tooling.gate.values import Outcome
from tooling.gate.verdict import judge

EXIT_CODES = {Outcome.PASS: ExitCode.OK, Outcome.FAIL: ExitCode.FINDINGS, Outcome.INCOMPLETE: ExitCode.INCOMPLETE}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--channel", metavar="NAME", help="where the release should go (default: what the policy names)"
    )
    parser.add_argument(
        "--evidence", type=folder, nargs="+", action="extend", default=[], metavar="DIR",
        help="folders of records, from as many machines as there are (default: ROOT/evidence)",
    )  # fmt: skip
    parser.add_argument(
        "--policy", type=file, metavar="FILE", help="where the channels stand (default: ROOT/release.toml)"
    )
    parser.add_argument("--as-of", type=moment, metavar="TIME", help="the moment to judge at (default: now)")
    parser.add_argument("--commit", type=commit, metavar="SHA", help="the commit that every record must be of")
    parser.add_argument(
        "--before", type=folder, nargs="+", action="extend", default=[], metavar="DIR",
        help="folders of records of the release before, to compare with",
    )  # fmt: skip
    parser.add_argument("--missing", action="store_true", help="print only the commands still to run, and where")
    add_output_arguments(parser)


def run(args: argparse.Namespace, terminal: Terminal) -> Report:
    """Exit 0: PASS; 4: FAIL; 5: INCOMPLETE; 2: a broken policy, an unknown channel, no folder of evidence."""
    check_root(args.root)
    outputs = check_outputs(args)
    inputs = load_gate_inputs(args)
    verdict = judge(
        inputs.files, inputs.channel, as_of=inputs.as_of, table=inputs.table, given=inputs.given, earlier=inputs.earlier
    )
    say_verdict(terminal, verdict, outputs, only_missing=args.missing)
    write_outputs(terminal, verdict, outputs)
    return Report(
        command="gate",
        status=verdict.outcome.lower(),
        exit_code=EXIT_CODES[verdict.outcome],
        findings=tuple(finding for _, finding in verdict.findings),
        fields=verdict_fields(verdict),
    )


def report_error(error: ToolingError) -> Report:
    """An error before any verdict; a reader of the JSON finds none."""
    return Report(
        command="gate", status="error", exit_code=error.exit_code, error=error, fields={"verdict": None, "reasons": []}
    )
