"""Whether a carried cache's files are what a warm-up writes, of the environment that the bundle names. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tooling.warmup.cache_text import ANY, METADATA, is_entry, is_writable
from tooling.warmup.errors import BundleError

VERSION_FIELD = "flashinfer_version"


def check_contents(where: str, version: str, metadata: Mapping[str, str], files: Mapping[str, str]) -> None:
    """Nothing, or the first thing that is wrong with the files.

    Raises:
        BundleError: no file, a file that is none of a cache's, or one of another environment (`field`).
    """
    if not files:
        raise BundleError(f"{where}: it holds no file", hint="export it again", reason="EMPTY")
    recorded = metadata.get(VERSION_FIELD, ANY)
    if recorded not in (ANY, "unknown") and _public(recorded) != _public(version):
        raise BundleError(
            f"{where}: {VERSION_FIELD} is {recorded!r} in its metadata, and its version is {version!r}",
            hint="export it again",
            reason="TWO_ENVIRONMENTS",
            field=VERSION_FIELD,
        )
    for name, text in files.items():
        _check_file(f"{where}: {name}", name, _parse(f"{where}: {name}", text), metadata)


def check_provenance(where: str, fields: Mapping[str, object]) -> None:
    """Nothing, or the first field that would do something else to a person's terminal than show its letters.

    Raises:
        BundleError: a control character.
    """
    for name, value in sorted(fields.items()):
        if not f"{name}{value}".isprintable():
            raise _bad(where, f"{name!r} holds a control character: {value!r}")


def _parse(where: str, text: str) -> dict[str, object]:
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as cause:
        raise _bad(where, f"not JSON: {cause}") from cause
    if not isinstance(body, dict):
        raise _bad(where, f"a JSON {type(body).__name__}, not an object")
    if not body:
        raise _bad(where, "it is empty")
    if not is_writable(body):
        raise _bad(where, "something in it cannot be written as UTF-8, such as half of a surrogate pair")
    return body


def _check_file(where: str, name: str, body: Mapping[str, object], metadata: Mapping[str, str]) -> None:
    """A managed store's entry or manifest by its place, a cache file by its metadata; other files are only JSON."""
    if "/entries/" in name:
        entry = [body.get("runner"), body.get("tactic")]
        if not isinstance(body.get("key"), str) or "tactic" not in body or not is_entry(entry):
            raise _bad(where, "no entry with key, runner and tactic")
    elif name.endswith("/manifest.json"):
        _check_environment(where, body, metadata)
    elif METADATA in body:
        found = body[METADATA]
        if not isinstance(found, dict):
            raise _bad(where, f"{METADATA} is a JSON {type(found).__name__}, not an object")
        _check_environment(where, found, metadata)
        _check_entries(where, {key: value for key, value in body.items() if not key.startswith("_")})


def _check_environment(where: str, found: Mapping[str, object], metadata: Mapping[str, str]) -> None:
    for field, expected in sorted(metadata.items()):
        value = found.get(field)
        if value is not None and value != expected and ANY not in (value, expected):
            raise BundleError(
                f"{where}: {field} is {value!r} there and {expected!r} in the bundle's metadata",
                hint="export it again from one environment",
                reason="TWO_ENVIRONMENTS",
                field=field,
            )


def _check_entries(where: str, entries: Mapping[str, object]) -> None:
    if not entries:
        raise _bad(where, "it holds no entry")
    if bad := next((key for key, value in entries.items() if not is_entry(value)), None):
        raise _bad(where, f"{bad!r} is not [runner, tactic]")


def _public(version: str) -> str:
    return version.split("+", 1)[0]


def _bad(where: str, problem: str) -> BundleError:
    return BundleError(f"{where}: {problem}", hint="tune anew and export it again", reason="BAD_CONTENTS")
