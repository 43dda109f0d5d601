"""Say whether every place agrees with the versions file.

Reads the tree and changes nothing, except with --heal. Findings name path and line; an error means exit code 4.

Examples:
  tooling check                            every place agrees, or which does not
  tooling check --base origin/main         also: is the pin lower than on the base branch?
  tooling check --resolve                  also: does uv find a solution for every platform?
  tooling check --heal                     finish or undo a bump that was interrupted
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from tooling.commands.bump_report import first_reason, interrupted_finding
from tooling.commands.recording import add_evidence_argument, load_pinned_tree, make_record, save_record
from tooling.commands.report import Report
from tooling.commands.terminal import Terminal
from tooling.edges import clock, git
from tooling.edges.files.applying import Healing, find_interrupted, heal
from tooling.edges.files.journal import is_locked, lock_tree
from tooling.edges.files.reading import check_root
from tooling.edges.files.tree import load_tree
from tooling.edges.packaged_data import load_library
from tooling.errors import EdgeError, ExitCode
from tooling.evidence import Record
from tooling.findings import Finding, Severity, has_errors
from tooling.pins.agreement import check_agreement
from tooling.pins.base_branch import check_downgrade
from tooling.pins.drift import check_pins
from tooling.pins.install_checks import check_installs
from tooling.pins.leftovers import check_leftovers, check_locks
from tooling.pins.override_checks import check_overrides
from tooling.pins.scan import Tree
from tooling.pins.texts import SourceText
from tooling.pins.variable_checks import check_variables
from tooling.releases.own_index import check_own_index


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--heal", action="store_true", help="finish or undo an interrupted bump first")
    parser.add_argument("--base", metavar="REF", help="the branch or commit that a pin may not fall behind")
    parser.add_argument("--allow-downgrade", action="store_true", help="announce that a lower pin is meant")
    parser.add_argument("--resolve", action="store_true", help="ask uv whether the requirements resolve everywhere")
    parser.add_argument("--no-evidence", action="store_true", help="write no record (for the pre-commit hook)")
    add_evidence_argument(parser)


def run(args: argparse.Namespace, terminal: Terminal) -> Report:
    started = clock.now()
    args.root = check_root(args.root)
    healed = _heal(args.root, terminal) if args.heal else None
    interrupted = _interrupted(args.root)
    tree = load_tree(args.root, load_library())
    findings = [*interrupted, *_find(args, tree)]
    resolutions = _resolve(args, tree, terminal, findings)
    failed = has_errors(findings)
    _say(terminal, tree, findings)
    if not args.no_evidence:
        pinned = load_pinned_tree(args.root, versions_file=tree.versions_file, commit=args.commit)
        record = make_record(
            replace(pinned, started=started),
            stage="check",
            status="fail" if failed else "pass",
            reason=first_reason(findings),
            findings=findings,
            measurements={"sites": [site.as_json() for site in tree.pins], **resolutions},
        )
        _save(args, record, terminal, failed=failed)
    return Report(
        command="check",
        status="fail" if failed else "pass",
        exit_code=ExitCode.FINDINGS if failed else ExitCode.OK,
        findings=tuple(findings),
        fields={
            "version": None if tree.truth is None else str(tree.truth),
            "healed": None if healed is None else {"to": healed.to, "version": healed.version},
            "sites": [site.as_json() for site in tree.pins],
            **resolutions,
        },
    )


def _find(args: argparse.Namespace, tree: Tree) -> list[Finding]:
    """What disagrees in the tree as it was read, in the order in which it is told."""
    return [
        *tree.unread,
        *check_pins(tree),
        *check_variables(tree),
        *check_agreement(tree),
        *check_own_index(tree),
        *check_installs(tree),
        *check_overrides(tree),
        *check_leftovers(tree),
        *check_locks(tree),
        *_check_base(args, tree),
    ]


def _save(args: argparse.Namespace, record: Record, terminal: Terminal, *, failed: bool) -> None:
    """Writes the record; where that fails beside findings, the findings say how the check ends."""
    try:
        save_record(args, record)
    except EdgeError as error:
        if not failed:
            raise
        terminal.say_error(error)


def _say(terminal: Terminal, tree: Tree, findings: list[Finding]) -> None:
    terminal.say_findings(findings)
    files = len({site.path for site in tree.pins})
    if has_errors(findings):
        count = sum(item.severity is Severity.ERROR for item in findings)
        terminal.say(terminal.paint("1 error" if count == 1 else f"{count} errors", "red", "bold"))
    else:
        terminal.say(terminal.paint(f"{len(tree.pins)} pins in {files} files hold {tree.truth}", "green"))


def _heal(root: Path, terminal: Terminal) -> Healing | None:
    with lock_tree(root):
        healed = heal(root)
    if healed is None:
        terminal.say("no interrupted bump was found, nothing to heal")
    else:
        terminal.say(f"healed an interrupted bump: every file is {healed.to} ({healed.version})")
    return healed


def _interrupted(root: Path) -> list[Finding]:
    """A record without a process that holds it is an interrupted bump; with one, a bump at work right now."""
    found = find_interrupted(root)
    if found is None:
        return []
    if is_locked(root):
        return [
            Finding(
                check="busy",
                detail="a bump is at work in this tree right now.",
                hint="check again when it ends",
                reason="BUSY",
            )
        ]
    found = find_interrupted(root)  # that bump may have ended since the first look
    return [] if found is None else [interrupted_finding(found)]


def _resolve(
    args: argparse.Namespace, tree: Tree, terminal: Terminal, findings: list[Finding]
) -> dict[str, list[dict[str, object]]]:
    """With `--resolve`, the answers for the record; their findings go in front, for people to see first."""
    if not args.resolve:
        return {}
    from tooling.commands.check_resolve import check_resolves  # noqa: PLC0415  # costs half a second

    found, answers = check_resolves(args.root, tree, terminal)
    findings[:0] = found
    return {"resolve": [answer.as_json() for answer in answers]}


def _check_base(args: argparse.Namespace, tree: Tree) -> list[Finding]:
    """The same files at the base commit, read as they were there."""
    if args.base is None:
        return []
    paths = dict.fromkeys([*([tree.versions_file] if tree.versions_file else []), *(site.path for site in tree.pins)])
    loaded = ((path, git.load_file_at(args.root, args.base, path)) for path in paths)
    before = [SourceText(path, raw.decode("utf-8", "replace")) for path, raw in loaded if raw is not None]
    return check_downgrade(tree, before, base=args.base, announced=args.allow_downgrade)
