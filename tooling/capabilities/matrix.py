"""The matrix of all releases against facts, as Markdown, and as cells for a terminal or JSON."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from tooling.capabilities.comparing import gate_row
from tooling.capabilities.table import Row, Table

COLUMNS = (
    ("published", "published"),
    ("autotuner", "autotuner"),
    ("parameters", "autotune parameters"),
    ("config_files", "cache files"),
    ("disk_key_has_runner_extras", "runner parameters in key"),
    ("extras_have_sf_layout", "scale-factor layout in key"),
    ("foreign_save", "saving onto a foreign file"),
    ("process_group_timing", "process-group timing"),
    ("managed_store", "managed store"),
    ("mismatch_policy", "package mismatch"),
    ("packaging_layout", "companions"),
    ("cubin_on_index", "cubin on public index"),
    ("operations", "operations"),
    ("known_faults", "known faults"),
    ("gating", "warm-up: one rank / several / DeepEP"),
)
"""Key in the JSON and heading for people."""
NEW_PARAMETERS_FROM = 1
"""`tune_mode` is in every release that has an autotuner, and not worth a cell."""


def matrix(table: Table) -> Iterator[tuple[Version, dict[str, str]]]:
    """Each release, newest first, with the words of its cells by column key."""
    rows = {release: row for row in table.rows for release in row.releases}
    for release in sorted(rows, reverse=True):
        yield release, _cells(table, release, rows[release])


def render_markdown(table: Table) -> str:
    """The matrix as a page; made by a command, never edited."""
    heads = [heading for _, heading in COLUMNS]
    lines = [
        "# Every release against what it can do",
        "",
        "Made from `tooling/data/capabilities.json` by `nox -s capabilities_matrix`; do not edit. Each fact was read",
        "from the release's own source; [capabilities.md](capabilities.md) says how. A warm-up strategy with `*` keeps",
        "its cache between starts.",
        "",
        f"| release | {' | '.join(heads)} |",
        f"|---|{'---|' * len(heads)}",
    ]
    for release, cells in matrix(table):
        lines.append(f"| {release} | {' | '.join(cells[key].replace('|', '/') for key, _ in COLUMNS)} |")
    lines += ["", "Known faults:", ""]
    lines += [f"- `{name}`: {text}" for name, text in _fault_texts(table)]
    return "\n".join(lines) + "\n"


def fault_ranges(table: Table) -> dict[str, tuple[Version, Version]]:
    """Each known fault's first and last listed release."""
    found: dict[str, list[Version]] = {}
    for row in table.rows:
        for fault in row.known_faults:
            found.setdefault(fault.id, []).extend(row.releases)
    return {name: (min(releases), max(releases)) for name, releases in sorted(found.items())}


def _fault_texts(table: Table) -> Iterator[tuple[str, str]]:
    faults = {fault.id: fault for row in table.rows for fault in row.known_faults}
    for name, (first, last) in fault_ranges(table).items():
        fault = faults[name]
        where = f"{first} to {last}, {', '.join(fault.operations)}"
        yield name, f"{where}: {fault.effect}. To see it: {fault.how_to_see}. <{fault.link}>"


def _cells(table: Table, release: Version, row: Row) -> dict[str, str]:
    published = table.published.get(release)
    parameters = row.facts["autotune_parameters"].value
    operations = row.facts["operations"].value
    gating = gate_row(row)
    cubin = None if published is None else published.cubin_on_index
    day = "?" if published is None or published.uploaded is None else published.uploaded
    cells = {key: _word(row.facts[key].value) for key, _ in COLUMNS if key in row.facts}
    return {
        **cells,
        "published": f"{day} (yanked)" if published and published.yanked else day,
        "parameters": ", ".join(parameters[NEW_PARAMETERS_FROM:]) if isinstance(parameters, tuple) else "?",
        "cubin_on_index": _word(cubin),
        "operations": str(len(operations)) if isinstance(operations, tuple) else "?",
        "known_faults": ", ".join(fault.id.removeprefix("flashinfer") for fault in row.known_faults),
        "gating": " / ".join(f"{item.strategy}{'*' if item.persistent else ''}" for item in gating.values()),
    }


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "?" if value is None else str(value)
