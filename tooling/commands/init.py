"""Write a release.toml for a tree, from the pins that are found in it.

Every file that holds a pin becomes a required site, so that a bump notices when one gets lost or another one appears.
The file says what each entry is for; edit it freely. A release.toml that exists is not touched.

Examples:
  tooling --root ../vllm init                write ../vllm/release.toml
  tooling --root ../vllm init --print        show it, write nothing
"""

from __future__ import annotations

import argparse

from tooling.commands.report import Report
from tooling.commands.terminal import Terminal
from tooling.edges.files.applying import apply_edits
from tooling.edges.files.journal import lock_tree
from tooling.edges.files.reading import check_root
from tooling.edges.files.tree import load_optional_text, load_tree
from tooling.edges.packaged_data import load_library
from tooling.errors import ExitCode, InputError
from tooling.findings import Finding
from tooling.pins.drift import groups_by_version
from tooling.pins.leftovers import check_leftovers
from tooling.pins.settings import FILE, parse_settings
from tooling.pins.settings_text import render_settings
from tooling.pins.texts import FileEdit


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--print", action="store_true", help="show the file, write nothing")


def run(args: argparse.Namespace, terminal: Terminal) -> Report:
    args.root = check_root(args.root)
    if load_optional_text(args.root, FILE) is not None:
        raise InputError(f"{FILE}: exists already", hint="edit it, or move it away and run init again", reason="EXISTS")
    tree = load_tree(args.root, load_library())
    suspects = check_leftovers(tree)
    if not tree.pins:
        return _refuse(terminal, tree.library.name)
    text = render_settings(tree, suspects)
    parse_settings(text)
    if args.print:
        terminal.say(text.rstrip("\n"))
    else:
        with lock_tree(args.root):
            apply_edits(args.root, [FileEdit(path=FILE, before=None, after=text.encode())])
        terminal.say(f"wrote {FILE}: {len(tree.pins)} pins in {len({site.path for site in tree.pins})} files")
    versions = list(groups_by_version(tree.pins))
    if len(versions) > 1:
        terminal.say(terminal.paint(f"the pins hold {len(versions)} versions: {', '.join(versions)}", "yellow"))
    return Report(
        command="init",
        status="would-write" if args.print else "written",
        exit_code=ExitCode.OK,
        findings=tuple(tree.unread),
        fields={"path": FILE, "text": text, "versions": versions},
    )


def _refuse(terminal: Terminal, name: str) -> Report:
    finding = Finding(
        check="no-pins",
        detail=f"no pin of {name} was found, so there is nothing to require.",
        hint="point --root at a tree that pins it",
        reason="NO_PINS",
    )
    terminal.say_findings([finding])
    return Report(command="init", status="refused", exit_code=ExitCode.FINDINGS, findings=(finding,))
