"""Show what releases can do, their known faults, and how a warm-up must tune with them.

Facts come from the shipped table, which `tooling probe` derives from the releases' own source.

Examples:
  tooling capabilities                          the release that this tree pins
  tooling capabilities 0.6.13                   its facts, faults, and gating in three worlds
  tooling capabilities 0.6.13+cu130             a local label does not count
  tooling capabilities 0.6.12..0.7.4            what breaks a caller written for 0.6.12
  tooling capabilities --matrix                 all releases against facts
  tooling capabilities --matrix --markdown      the same as Markdown
"""

from __future__ import annotations

import argparse
from pathlib import Path

from packaging.version import InvalidVersion, Version

from tooling.capabilities.comparing import WORLD_NAMES, compare, gate_row
from tooling.capabilities.matrix import COLUMNS, matrix, render_markdown
from tooling.capabilities.table import NoRowError, Row, Table, calendar_facts, lookup
from tooling.commands.probe_report import say_facts
from tooling.commands.recording import load_pinned_tree
from tooling.commands.report import Report
from tooling.commands.terminal import Terminal
from tooling.edges.capability_table import TABLE, load_table
from tooling.edges.files.durable import replace_file
from tooling.errors import ExitCode, InputError

COLOURS = {"breaks": "red", "changes": "yellow", "gains": "green"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "version", nargs="?", metavar="VERSION|A..B", help="a release, or two (default: the tree's pin)"
    )
    parser.add_argument("--matrix", action="store_true", help="all releases against facts")
    parser.add_argument("--markdown", action="store_true", help="the matrix as Markdown")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the Markdown there")
    parser.add_argument("--evidence", action="store_true", help="show where each fact was read")
    parser.add_argument(
        "--table", type=Path, default=TABLE, metavar="FILE", help="the table (default: the shipped one)"
    )


def run(args: argparse.Namespace, terminal: Terminal) -> Report:
    table = load_table(args.table)
    if args.matrix:
        return _matrix(args, table, terminal)
    if args.markdown or args.output:
        raise InputError("--markdown and --output go with --matrix", reason="BAD_ARGUMENTS")
    if args.version and ".." in args.version:
        before, after = args.version.split("..", 1)
        return _compare(table, _parse(before), _parse(after), terminal)
    return _show(args, table, _parse(args.version) if args.version else _pinned(args.root), terminal)


def _show(args: argparse.Namespace, table: Table, release: Version, terminal: Terminal) -> Report:
    row = _row(table, release)
    facts = {**row.facts, **calendar_facts(table, release)}
    gating = gate_row(row)
    terminal.say(terminal.paint(f"FlashInfer {release}", "bold") + f"  (row {row.label}, {len(row.releases)} releases)")
    say_facts(terminal, facts, evidence=args.evidence)
    terminal.say(terminal.paint("known faults", "bold") + ("" if row.known_faults else ": none"))
    for fault in row.known_faults:
        terminal.say(f"  {terminal.paint(fault.id, 'yellow')} {', '.join(fault.operations)}: {fault.effect}")
        terminal.say(f"    to see it: {fault.how_to_see}")
        terminal.say(terminal.paint(f"    {fault.link}", "dim"))
    terminal.say(terminal.paint("warm-up", "bold"))
    for world, item in gating.items():
        kept = "cache persists" if item.persistent else "no persistent cache"
        words = WORLD_NAMES[world]
        terminal.say(f"  {words:<18}{item.strategy:<18}{kept:<22}rule {item.rule}: {item.why}")
    entry = {
        "release": str(release),
        "facts": {name: fact.as_json() for name, fact in facts.items()},
        "known_faults": [fault.as_json() for fault in row.known_faults],
        "gating": {world: item.as_json() for world, item in gating.items()},
        "row": row.label,
    }
    return _report("shown", {"releases": [entry]})


def _compare(table: Table, before: Version, after: Version, terminal: Terminal) -> Report:
    changes = compare(_row(table, before), _row(table, after))
    terminal.say(terminal.paint(f"FlashInfer {before} -> {after}", "bold") + ("" if changes else ": nothing changes"))
    for change in changes:
        label = terminal.paint(f"{change.effect:<8}", COLOURS[change.effect])
        terminal.say(f"  {label} {change.text} {terminal.paint(f'[{change.fact}]', 'dim')}")
    fields = {"from": str(before), "to": str(after), "changes": [change.as_json() for change in changes]}
    return _report("compared", {**fields, "releases": []})


def _matrix(args: argparse.Namespace, table: Table, terminal: Terminal) -> Report:
    if args.version:
        raise InputError("--matrix shows all releases; leave VERSION out", reason="BAD_ARGUMENTS")
    rows = list(matrix(table))
    if args.output is not None:
        _write(args.output, render_markdown(table))
        terminal.say(f"written: {args.output}")
    elif args.markdown:
        terminal.say(render_markdown(table).rstrip("\n"))
    else:
        _say_matrix(terminal, [(str(release), cells) for release, cells in rows])
    return _report("shown", {"releases": [{"release": str(release), "matrix": cells} for release, cells in rows]})


def _write(path: Path, text: str) -> None:
    try:
        replace_file(path, text.encode())
    except OSError as cause:
        raise InputError(
            f"{path}: cannot be written: {cause.strerror}", hint="give --output a file in a folder that is there"
        ) from cause


def _say_matrix(terminal: Terminal, rows: list[tuple[str, dict[str, str]]]) -> None:
    from rich.console import Console  # noqa: PLC0415  # costs 100 ms
    from rich.table import Table as Grid  # noqa: PLC0415

    grid = Grid(show_edge=False)
    for _, heading in (("", "release"), *COLUMNS):
        grid.add_column(heading, overflow="fold")
    for release, cells in rows:
        grid.add_row(release, *(cells[key] for key, _ in COLUMNS))
    width = None if terminal.stream.isatty() else 240
    Console(file=terminal.stream, no_color=not terminal.colour, width=width).print(grid)


def _row(table: Table, release: Version) -> Row:
    row = lookup(table, release)
    if row is None:
        raise NoRowError(release)
    return row


def _parse(text: str) -> Version:
    try:
        return Version(text.strip())
    except InvalidVersion as cause:
        hint = "a release such as 0.7.4, or two of them: 0.6.12..0.7.4"
        raise InputError(f"{text!r} is no version", hint=hint, reason="BAD_VERSION") from cause


def _pinned(root: Path) -> Version:
    version = load_pinned_tree(root).flashinfer_version
    if version is None:
        raise InputError(f"{root} pins no release", hint="name one: `tooling capabilities 0.7.4`", reason="MISSING")
    return _parse(version)


def _report(status: str, fields: dict[str, object]) -> Report:
    return Report(command="capabilities", status=status, exit_code=ExitCode.OK, fields=fields)
