"""The capabilities table as values: rows of releases with their facts, looked up by version. Its text: `table_text`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from packaging.version import Version

from tooling.capabilities.facts import CALENDAR_FACTS, FACTS, Evidence, Fact, KnownFault, unknown
from tooling.errors import ExitCode, InputError

ROW_FACTS = tuple(name for name in FACTS if name not in CALENDAR_FACTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Releases that can do the same, oldest first. `label` is for people; only `releases` counts.

    `deepep_synchronized` holds evidence from real DeepEP that ranks may synchronise there; null is "not shown".
    """

    releases: tuple[Version, ...]
    facts: Mapping[str, Fact]
    known_faults: tuple[KnownFault, ...] = ()
    deepep_synchronized: Evidence | None = None

    @property
    def label(self) -> str:
        first, last = str(self.releases[0]), str(self.releases[-1])
        return first if first == last else f"{first} … {last}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What the calendar says of one release's file: dates are `YYYY-MM-DD`; `sha256` names the file that was read."""

    file: str
    kind: str
    size_bytes: int
    sha256: str
    uploaded: str | None
    yanked: bool
    cubin_on_index: bool | None

    def as_json(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """All rows, and apart from them what changes with the calendar, as of a day (`YYYY-MM-DD`)."""

    rows: tuple[Row, ...] = ()
    as_of: str = "1970-01-01"
    published: Mapping[Version, Published] = field(default_factory=dict)

    @property
    def releases(self) -> tuple[Version, ...]:
        return tuple(sorted(release for row in self.rows for release in row.releases))


class NoRowError(InputError):
    """The table has no row for a release: a refusal, exit code 4."""

    exit_code = ExitCode.FINDINGS
    reason = "NO_ROW"

    def __init__(self, version: Version) -> None:
        release = version.public
        hint = f"derive it: nox -s probe -- {release} --add"
        if version.is_prerelease:
            hint = f"pre-releases have no row; to see what it can do: nox -s probe -- {release}"
        super().__init__(f"the capabilities table has no row for {release}", hint=hint)
        self.version = version


def lookup(table: Table, version: Version) -> Row | None:
    """The row that lists the release; a local label (`+cu130`) does not count. None for all others, dev and rc too."""
    release = Version(version.public)
    return next((row for row in table.rows if release in row.releases), None)


def calendar_facts(table: Table, version: Version) -> dict[str, Fact]:
    """The facts that stand apart from the row, as facts."""
    published = table.published.get(Version(version.public))
    if published is None or published.cubin_on_index is None:
        return {"cubin_on_index": unknown("the index was not asked")}
    seen = f"the public index {'has' if published.cubin_on_index else 'does not have'} it on {table.as_of}"
    return {
        "cubin_on_index": Fact(
            value=published.cubin_on_index,
            evidence=(Evidence(path="flashinfer-cubin", where=version.public, seen=seen),),
        )
    }


def with_release(table: Table, version: Version, row: Row, published: Published | None) -> Table:
    """The table with that release listed under exactly these facts, joined to a row that has the same ones."""
    release = Version(version.public)
    releases = {item: found for found in table.rows for item in found.releases if item != release}
    releases[release] = replace(row, releases=(release,))
    calendar = dict(table.published)
    if published is not None:
        calendar[release] = published
    return replace(table, rows=group(releases), published=calendar)


def group(releases: Mapping[Version, Row]) -> tuple[Row, ...]:
    """Rows of neighbouring releases that have equal facts and faults, oldest first."""
    rows: list[Row] = []
    for release in sorted(releases):
        row = replace(releases[release], releases=(release,))
        if rows and replace(rows[-1], releases=row.releases) == row:
            rows[-1] = replace(row, releases=(*rows[-1].releases, release))
        else:
            rows.append(row)
    return tuple(rows)
