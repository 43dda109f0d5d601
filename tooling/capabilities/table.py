"""The capabilities table: rows of releases with their facts, looked up by version. One spelling: dump(parse(t)) == t."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from packaging.version import InvalidVersion, Version

from tooling.capabilities.facts import CALENDAR_FACTS, FACTS, Evidence, Fact, KnownFault, unknown
from tooling.errors import InputError

FORMAT = 1
FILE_NAME = "capabilities.json"
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
    """The table has no row for a release."""

    reason = "NO_ROW"

    def __init__(self, version: Version) -> None:
        release = version.public
        super().__init__(
            f"the capabilities table has no row for {release}", hint=f"derive it: nox -s probe -- {release} --add"
        )
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


def dump(table: Table) -> str:
    """The table's text, the same for the same table."""
    body = {
        "format": FORMAT,
        "rows": [_row_json(row) for row in table.rows],
        "calendar": {
            "as_of": table.as_of,
            "releases": {str(release): table.published[release].as_json() for release in sorted(table.published)},
        },
    }
    return json.dumps(body, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def parse(text: str, *, path: str = FILE_NAME) -> Table:
    """The table in that text; every problem is gathered and raised at once, with its key path.

    Raises:
        InputError: not JSON, a wrong shape, a release in two rows, or one that is a dev, rc or local version.
    """
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as cause:
        raise InputError(f"{path}: not JSON: {cause}", reason="BAD_TABLE") from cause
    reader = _Reader()
    table = reader.table(body)
    if reader.problems:
        raise InputError(f"{path}: {'; '.join(reader.problems)}", reason="BAD_TABLE")
    return table


def _row_json(row: Row) -> dict[str, object]:
    return {
        "label": row.label,
        "releases": [str(release) for release in row.releases],
        "facts": {name: row.facts[name].as_json() for name in ROW_FACTS if name in row.facts},
        "known_faults": [fault.as_json() for fault in row.known_faults],
        "deepep_synchronized": row.deepep_synchronized and row.deepep_synchronized.as_json(),
    }


class _Reader:
    """Reads JSON values into a table and gathers what is wrong with them."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def table(self, body: object) -> Table:
        top = self._object(body, "the table", {"format", "rows", "calendar"})
        if top.get("format") != FORMAT:
            self.problems.append(f"format: found {top.get('format')!r}, expected {FORMAT}")
        rows = tuple(self._row(item, f"rows[{index}]") for index, item in enumerate(self._list(top.get("rows"), "rows")))
        calendar = self._object(top.get("calendar"), "calendar", {"as_of", "releases"})
        published = {}
        for name, item in self._object(calendar.get("releases"), "calendar.releases").items():
            release = self._release(name, f"calendar.releases.{name}")
            published[release] = self._published(item, f"calendar.releases.{name}")
        self._check_listed_once(rows)
        return Table(rows=rows, as_of=self._date(calendar.get("as_of"), "calendar.as_of"), published=published)

    def _row(self, body: object, path: str) -> Row:
        row = self._object(body, path, {"label", "releases", "facts", "known_faults", "deepep_synchronized"})
        names = [self._text(item, f"{path}.releases") for item in self._list(row.get("releases"), f"{path}.releases")]
        releases = tuple(self._release(name, f"{path}.releases") for name in names)
        if not releases or list(releases) != sorted(set(releases)):
            self.problems.append(f"{path}.releases: expected at least one release, oldest first, each once")
            releases = releases or (Version("0"),)
        facts = {
            name: self._fact(item, f"{path}.facts.{name}")
            for name, item in self._object(row.get("facts"), f"{path}.facts", set(ROW_FACTS)).items()
        }
        faults = self._list(row.get("known_faults"), f"{path}.known_faults")
        proof = row.get("deepep_synchronized")
        parsed = Row(
            releases=releases,
            facts=facts,
            known_faults=tuple(self._fault(item, f"{path}.known_faults[{at}]") for at, item in enumerate(faults)),
            deepep_synchronized=None if proof is None else self._evidence(proof, f"{path}.deepep_synchronized"),
        )
        if row.get("label") != parsed.label:
            self.problems.append(f"{path}.label: found {row.get('label')!r}, expected {parsed.label!r}")
        return parsed

    def _fact(self, body: object, path: str) -> Fact:
        fact = self._object(body, path)
        value = fact.get("value")
        if isinstance(value, list):
            value = tuple(self._text(item, f"{path}.value") for item in value)
        elif not (value is None or isinstance(value, bool | str)):
            self.problems.append(f"{path}.value: found {value!r}, expected true, false, text, a list of texts or null")
            value = None
        evidence = self._list(fact.get("evidence"), f"{path}.evidence")
        reason = fact.get("reason", "")
        if value is None and not reason:
            self.problems.append(f"{path}: a value that could not be told needs a reason")
        if value is not None and not evidence:
            self.problems.append(f"{path}: a value needs evidence")
        return Fact(
            value=value,
            evidence=tuple(self._evidence(item, f"{path}.evidence") for item in evidence),
            reason=self._text(reason, f"{path}.reason"),
        )

    def _evidence(self, body: object, path: str) -> Evidence:
        item = self._object(body, path, {"path", "where", "seen"})
        return Evidence(**{name: self._text(item.get(name), f"{path}.{name}") for name in ("path", "where", "seen")})

    def _fault(self, body: object, path: str) -> KnownFault:
        item = self._object(body, path, {"id", "operations", "effect", "how_to_see", "link", "evidence"})
        operations = self._list(item.get("operations"), f"{path}.operations")
        return KnownFault(
            operations=tuple(self._text(name, f"{path}.operations") for name in operations),
            evidence=tuple(
                self._evidence(proof, f"{path}.evidence") for proof in self._list(item.get("evidence"), f"{path}.evidence")
            ),
            **{name: self._text(item.get(name), f"{path}.{name}") for name in ("id", "effect", "how_to_see", "link")},
        )

    def _published(self, body: object, path: str) -> Published:
        item = self._object(body, path, set(Published.__slots__))
        size, yanked, cubin = item.get("size_bytes"), item.get("yanked"), item.get("cubin_on_index")
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            self.problems.append(f"{path}.size_bytes: found {size!r}, expected a number of bytes")
            size = 0
        if not isinstance(yanked, bool) or not (cubin is None or isinstance(cubin, bool)):
            self.problems.append(f"{path}: yanked must be true or false, cubin_on_index that or null")
            yanked, cubin = False, None
        uploaded = item.get("uploaded")
        return Published(
            file=self._text(item.get("file"), f"{path}.file"),
            kind=self._text(item.get("kind"), f"{path}.kind"),
            size_bytes=size,
            sha256=self._text(item.get("sha256"), f"{path}.sha256"),
            uploaded=None if uploaded is None else self._date(uploaded, f"{path}.uploaded"),
            yanked=yanked,
            cubin_on_index=cubin,
        )

    def _check_listed_once(self, rows: Iterable[Row]) -> None:
        seen: set[Version] = set()
        for release in (release for row in rows for release in row.releases):
            if release in seen:
                self.problems.append(f"{release} is listed twice")
            seen.add(release)

    def _release(self, name: str, path: str) -> Version:
        try:
            release = Version(name)
        except InvalidVersion:
            self.problems.append(f"{path}: {name!r} is no version")
            return Version("0")
        if release.is_prerelease or release.local or str(release) != name:
            self.problems.append(f"{path}: {name} is not a final or post release in its plain spelling")
        return release

    def _date(self, value: object, path: str) -> str:
        try:
            return datetime.strptime(self._text(value, path), "%Y-%m-%d").date().isoformat()  # noqa: DTZ007  # a day
        except ValueError:
            self.problems.append(f"{path}: found {value!r}, expected a day, YYYY-MM-DD")
            return "1970-01-01"

    def _object(self, value: object, path: str, keys: set[str] | None = None) -> dict[str, object]:
        if not isinstance(value, dict):
            self.problems.append(f"{path}: found {type(value).__name__}, expected an object")
            return {}
        if keys is not None and set(value) != keys:
            odd = sorted(set(value) ^ keys)
            self.problems.append(f"{path}: keys missing or not known: {', '.join(odd)}")
        return value

    def _list(self, value: object, path: str) -> list[object]:
        if not isinstance(value, list):
            self.problems.append(f"{path}: found {type(value).__name__}, expected a list")
            return []
        return value

    def _text(self, value: object, path: str) -> str:
        if not isinstance(value, str):
            self.problems.append(f"{path}: found {value!r}, expected text")
            return ""
        return value
