"""The capabilities table as text, in one spelling: `dump(parse(text)) == text`. Errors name the key path."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from datetime import date

from packaging.version import InvalidVersion, Version

from tooling.capabilities.facts import Evidence, Fact, KnownFault
from tooling.capabilities.table import ROW_FACTS, Published, Row, Table
from tooling.errors import InputError

FORMAT = 1
FILE_NAME = "capabilities.json"


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
    return parse_body(parse_json(text, path=path), path=path)


def parse_json(text: str, *, path: str) -> object:
    """The JSON values of a table's text. Raises InputError."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as cause:
        raise InputError(f"{path}: not JSON: {cause}", reason="BAD_TABLE") from cause


def parse_body(body: object, *, path: str, only: Collection[Version] | None = None) -> Table:
    """As `parse`, from JSON values; with `only`, rows that list none of these releases are passed over unread."""
    reader = _Reader(only)
    table = reader.table(body)
    if reader.problems:
        raise InputError(f"{path}: {'; '.join(reader.problems)}", reason="BAD_TABLE")
    return table


def parse_found(body: object, *, path: str) -> tuple[dict[str, Fact], tuple[KnownFault, ...]]:
    """The facts and faults of one release, as `facts_json` wrote them. Raises InputError."""
    reader = _Reader()
    found = reader.found(reader.mapping(body, path, {"facts", "known_faults"}), path)
    if reader.problems:
        raise InputError(f"{path}: {'; '.join(reader.problems)}", reason="BAD_TABLE")
    return found


def facts_json(facts: Mapping[str, Fact], faults: Iterable[KnownFault]) -> dict[str, object]:
    """Facts in the table's order, and faults, as JSON values."""
    return {
        "facts": {name: facts[name].as_json() for name in ROW_FACTS if name in facts},
        "known_faults": [fault.as_json() for fault in faults],
    }


def _row_json(row: Row) -> dict[str, object]:
    return {
        "label": row.label,
        "releases": [str(release) for release in row.releases],
        **facts_json(row.facts, row.known_faults),
        "deepep_synchronized": row.deepep_synchronized and row.deepep_synchronized.as_json(),
    }


class _Reader:
    """Reads JSON values into a table and gathers what is wrong with them."""

    def __init__(self, only: Collection[Version] | None = None) -> None:
        self.problems: list[str] = []
        self._only = None if only is None else {Version(release.public) for release in only}

    def table(self, body: object) -> Table:
        top = self.mapping(body, "the table", {"format", "rows", "calendar"})
        if top.get("format") != FORMAT:
            self.problems.append(f"format: found {top.get('format')!r}, expected {FORMAT}")
        rows = tuple(
            self._row(item, f"rows[{index}]")
            for index, item in enumerate(self._list(top.get("rows"), "rows"))
            if self._is_wanted(item)
        )
        calendar = self.mapping(top.get("calendar"), "calendar", {"as_of", "releases"})
        published = {}
        for name, item in self.mapping(calendar.get("releases"), "calendar.releases").items():
            release = self._release(name, f"calendar.releases.{name}")
            if self._only is not None and release not in self._only:
                continue
            published[release] = self._published(item, f"calendar.releases.{name}")
        self._check_listed_once(rows)
        return Table(rows=rows, as_of=self._date(calendar.get("as_of"), "calendar.as_of"), published=published)

    def _is_wanted(self, body: object) -> bool:
        if self._only is None or not isinstance(body, dict) or not isinstance(body.get("releases"), list):
            return True
        return not self._only.isdisjoint(map(_version, body["releases"]))

    def _row(self, body: object, path: str) -> Row:
        row = self.mapping(body, path, {"label", "releases", "facts", "known_faults", "deepep_synchronized"})
        names = [self._text(item, f"{path}.releases") for item in self._list(row.get("releases"), f"{path}.releases")]
        releases = tuple(self._release(name, f"{path}.releases") for name in names)
        if not releases or list(releases) != sorted(set(releases)):
            self.problems.append(f"{path}.releases: expected at least one release, oldest first, each once")
            releases = releases or (Version("0"),)
        facts, faults = self.found(row, path)
        proof = row.get("deepep_synchronized")
        parsed = Row(
            releases=releases,
            facts=facts,
            known_faults=faults,
            deepep_synchronized=None if proof is None else self._evidence(proof, f"{path}.deepep_synchronized"),
        )
        if row.get("label") != parsed.label:
            self.problems.append(f"{path}.label: found {row.get('label')!r}, expected {parsed.label!r}")
        return parsed

    def found(self, body: Mapping[str, object], path: str) -> tuple[dict[str, Fact], tuple[KnownFault, ...]]:
        facts = self.mapping(body.get("facts"), f"{path}.facts", set(ROW_FACTS))
        faults = self._list(body.get("known_faults"), f"{path}.known_faults")
        return (
            {name: self._fact(item, f"{path}.facts.{name}") for name, item in facts.items()},
            tuple(self._fault(item, f"{path}.known_faults[{at}]") for at, item in enumerate(faults)),
        )

    def _fact(self, body: object, path: str) -> Fact:
        fact = self.mapping(body, path)
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
        item = self.mapping(body, path, {"path", "where", "seen"})
        return Evidence(**{name: self._text(item.get(name), f"{path}.{name}") for name in ("path", "where", "seen")})

    def _fault(self, body: object, path: str) -> KnownFault:
        item = self.mapping(body, path, {"id", "operations", "effect", "how_to_see", "link", "evidence"})
        operations = self._list(item.get("operations"), f"{path}.operations")
        return KnownFault(
            operations=tuple(self._text(name, f"{path}.operations") for name in operations),
            evidence=tuple(
                self._evidence(proof, f"{path}.evidence")
                for proof in self._list(item.get("evidence"), f"{path}.evidence")
            ),
            **{name: self._text(item.get(name), f"{path}.{name}") for name in ("id", "effect", "how_to_see", "link")},
        )

    def _published(self, body: object, path: str) -> Published:
        item = self.mapping(body, path, set(Published.__slots__))
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
            kind=self._kind(item.get("kind"), f"{path}.kind"),
            size_bytes=size,
            sha256=self._text(item.get("sha256"), f"{path}.sha256"),
            uploaded=None if uploaded is None else self._date(uploaded, f"{path}.uploaded"),
            yanked=yanked,
            cubin_on_index=cubin,
        )

    def _kind(self, value: object, path: str) -> str:
        if value not in {"wheel", "sdist"}:
            self.problems.append(f"{path}: found {value!r}, expected wheel or sdist")
        return str(value)

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
        text = self._text(value, path)
        try:
            # Other spellings of ISO 8601 (20260601, 2026-W23-1) are not the table's one.
            if date.fromisoformat(text).isoformat() == text:
                return text
        except ValueError:
            pass
        self.problems.append(f"{path}: found {value!r}, expected a day, YYYY-MM-DD")
        return "1970-01-01"

    def mapping(self, value: object, path: str, keys: set[str] | None = None) -> dict[str, object]:
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


def _version(name: object) -> Version | None:
    try:
        return Version(str(name))
    except InvalidVersion:
        return None
