"""Read what a FlashInfer release can do, from its wheel, without installing it.

The wheel is read in byte ranges (the sdist whole where there is no wheel), its source is parsed and never run. Every
fact comes with the file and function it was read from; what cannot be told is null with a reason, and exit code 4.

Examples:
  tooling probe 0.7.4                          all facts, compared with the table's row
  tooling probe 0.7.4 --without-operations     metadata and tuner only: a fraction of the bytes
  tooling probe 0.7.5 --add                    write its row into the table, ready to commit
  tooling probe 0.7.5 --from dist/x.whl        a local wheel, sdist, or folder
  tooling probe all                            every published final and post release
  tooling probe 0.6.13 --behaviour             also install it apart and run its real tuner on the CPU
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from packaging.version import InvalidVersion, Version

from tooling.capabilities.checks import check_against_row, check_understood, check_unlisted
from tooling.capabilities.table import Published, Row, Table, with_release
from tooling.commands import probe_report
from tooling.commands.progress import follow
from tooling.commands.report import Report
from tooling.commands.terminal import Terminal
from tooling.edges import clock
from tooling.edges.capability_table import TABLE, load_table, save_table
from tooling.edges.packaged_data import load_library
from tooling.edges.probe_cache import default_probe_cache
from tooling.edges.probing import Probed, Prober
from tooling.edges.probing_sources import Listing, load_listing, open_given
from tooling.errors import InputError
from tooling.findings import Finding, has_errors

ALL = "all"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("version", metavar="VERSION", help=f"the release, such as 0.7.4, or `{ALL}`")
    parser.add_argument("--from", type=Path, dest="source", metavar="PATH", help="a wheel, sdist or folder; no index")
    parser.add_argument("--without-operations", action="store_true", help="leave out what needs every module")
    parser.add_argument("--add", action="store_true", help="write the release's row into the table")
    parser.add_argument(
        "--table", type=Path, default=TABLE, metavar="FILE", help="the table (default: the shipped one)"
    )
    parser.add_argument("--no-cache", action="store_true", help="derive anew, whatever was read before")
    parser.add_argument("--behaviour", action="store_true", help="also run the release's real tuner on CPU tensors")
    parser.add_argument("--torch", metavar="SPEC", help="which torch --behaviour installs (default: what is at hand)")


def run(args: argparse.Namespace, terminal: Terminal) -> Report:
    release = _parse_release(args)
    table = load_table(args.table)
    cache = None if args.no_cache else default_probe_cache()
    with load_listing(load_library(), offline=args.source is not None) as listing:
        prober = Prober(http=listing.http, cache=cache, with_operations=not args.without_operations)
        if args.source is not None:
            probed = [_read_given(prober, release, args.source)]
        elif release is None:
            wanted = listing.finals()
            steps = follow(prober.probe_many(wanted), total=len(wanted), what="reading releases")
            probed = sorted(steps, key=lambda item: item.release)
        else:
            probed = [prober.probe(release, listing.file(release))]
        findings = _check(probed, table, listing, everything=release is None)
        behaviour, seen = _behaviour(args, probed, terminal)
        if args.add and not has_errors([item for item in findings if item.check != "table"]):
            table = _add(table, probed, listing)
            save_table(table, args.table)
            findings = [item for item in findings if item.check not in {"table", "not-listed"}]
        now = _with_calendar(table, probed, listing)
    return probe_report.make(args, terminal, probed=probed, findings=[*findings, *behaviour], table=now, behaviour=seen)


def _parse_release(args: argparse.Namespace) -> Version | None:
    if args.version == ALL:
        if args.source is not None or args.behaviour:
            raise InputError("`all` goes with neither --from nor --behaviour", reason="BAD_ARGUMENTS")
        return None
    try:
        release = Version(args.version)
    except InvalidVersion as cause:
        raise InputError(f"{args.version!r} is no version", hint="such as 0.7.4", reason="BAD_VERSION") from cause
    if args.add and (release.is_prerelease or release.local):
        raise InputError(f"{release} gets no row: the table lists final and post releases", reason="NO_ROW")
    if args.add and args.without_operations:
        raise InputError("--add needs all facts; leave --without-operations out", reason="BAD_ARGUMENTS")
    return release


def _read_given(prober: Prober, release: Version | None, source: Path) -> Probed:
    assert release is not None
    archive = open_given(source, release, load_library())
    try:
        return prober.read(release, archive)
    finally:
        archive.close()


def _check(probed: Sequence[Probed], table: Table, listing: Listing, *, everything: bool) -> list[Finding]:
    findings: list[Finding] = []
    for item in probed:
        if item.error is not None:
            findings.append(
                Finding(
                    check="unread",
                    detail=f"{item.release}: {item.error.message}",
                    hint=item.error.hint,
                    reason=item.error.reason,
                )
            )
        elif item.derived is not None:
            problems = list(check_understood(item.release, item.derived))
            findings += problems
            if not everything and not has_errors(problems):
                findings += check_against_row(item.release, item.derived, table)
            elif everything and not has_errors(problems):
                findings += [f for f in check_against_row(item.release, item.derived, table) if f.check == "table"]
    return [*findings, *(check_unlisted((release for release, _ in listing.finals()), table) if everything else ())]


def _add(table: Table, probed: Sequence[Probed], listing: Listing) -> Table:
    """The table with the releases' rows, joined to rows of equal facts, and the calendar of today."""
    for item in probed:
        assert item.derived is not None
        row = Row(releases=(item.release,), facts=item.derived.facts, known_faults=item.derived.known_faults)
        table = with_release(table, item.release, row, _published(item, listing))
    return replace(table, as_of=clock.now().date().isoformat())


def _published(item: Probed, listing: Listing) -> Published | None:
    return listing.published(item.release)


def _with_calendar(table: Table, probed: Sequence[Probed], listing: Listing) -> Table:
    """The table whose calendar knows these releases as the index shows them now."""
    now = {item.release: found for item in probed if (found := listing.published(item.release)) is not None}
    as_of = clock.now().date().isoformat() if now else table.as_of
    return replace(table, as_of=as_of, published={**table.published, **now})


def _behaviour(
    args: argparse.Namespace, probed: Sequence[Probed], terminal: Terminal
) -> tuple[list[Finding], dict[str, object]]:
    if not args.behaviour:
        return [], {}
    from tooling.commands.probe_behaviour import observe  # noqa: PLC0415  # only where it is asked for

    return observe(args, probed[0], terminal)
