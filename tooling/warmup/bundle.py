"""A carried cache as one JSON document: the files of one identity, where they come from, and digests. Pure.

{"format": 1, "kind": "flashinfer-autotune-cache", "version", "arch", "identity", "metadata", "pins_sha256", "created",
 "tool_version", "files": {"autotune_configs.json": {"sha256", "text"}}, "digest": "sha256:… over all the rest"}
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from tooling.warmup.cache_text import ANY, METADATA, is_writable
from tooling.warmup.contents import check_contents, check_provenance
from tooling.warmup.errors import BundleError

FORMAT = 1
KIND = "flashinfer-autotune-cache"
PART = re.compile(r"[A-Za-z0-9+_-][A-Za-z0-9.+_-]*")
"""One component of a path: no hidden names, nothing that leads out of the folder."""
OWN_FIELDS = ("warmup_",)
STORE_FIELDS = ("cache_schema", "measure_")
"""Beginnings of metadata fields that are ours or the managed store's, not the environment's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A tuned cache with its provenance. `files` are texts by path below `version/arch/identity`.

    `metadata` is FlashInfer's record of the environment that tuned; `created` is ISO 8601 in UTC.
    """

    version: str
    arch: str
    identity: str
    metadata: Mapping[str, str]
    files: Mapping[str, str]
    pins_sha256: str | None
    created: str
    tool_version: str

    @property
    def folder(self) -> str:
        """`version/arch/identity`, relative to a cache root."""
        return f"{self.version}/{self.arch}/{self.identity}"

    @property
    def entries(self) -> int:
        """Tuned entries in all files; files of ranks repeat them."""
        return sum(_entries(name, text) for name, text in self.files.items())


def make_bundle(
    parts: tuple[str, str, str], files: Mapping[str, str], *, pins_sha256: str | None, created: str, tool_version: str
) -> Bundle:
    """The bundle of those files, whose metadata must all be of one environment.

    Raises:
        BundleError: no file, no metadata, files of two environments, or one that no warm-up writes.
    """
    version, arch, identity = parts
    found = {name: environment for name, text in files.items() if (environment := _environment(name, text))}
    if not found:
        where = f"{version}/{arch}/{identity}"
        raise BundleError(
            f"{where}: no cache file says which environment wrote it", hint="tune first", reason="NO_METADATA"
        )
    first_name, first = next(iter(found.items()))
    for name, environment in found.items():
        if field := next(iter(differing(first, environment)), ""):
            raise BundleError(f"{name} and {first_name} differ in {field}", reason="TWO_ENVIRONMENTS", field=field)
    check_contents(f"{version}/{arch}/{identity}", version, first, files)
    return Bundle(
        version=version,
        arch=arch,
        identity=identity,
        metadata=first,
        files=dict(sorted(files.items())),
        pins_sha256=pins_sha256,
        created=created,
        tool_version=tool_version,
    )


def render_bundle(bundle: Bundle) -> str:
    """The document, sealed."""
    body = _body(bundle)
    return json.dumps({**body, "digest": _digest(body)}, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def parse_bundle(text: str, *, path: str) -> Bundle:
    """The bundle in that document.

    Raises:
        BundleError: no JSON, another format, a digest that does not fit, a path that leads out of the folder, or a file
            in it that is not what the bundle says (`field`).
    """
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as cause:
        raise BundleError(f"{path}: not JSON: {cause}", reason="UNPARSABLE") from cause
    if not isinstance(body, dict) or body.get("kind") != KIND or body.get("format") != FORMAT:
        raise BundleError(f"{path}: not a carried cache of format {FORMAT}", hint="make one: tooling cache export")
    if not is_writable(body):
        raise BundleError(f"{path}: it holds text that is no UTF-8", hint="export it again", reason="UNPARSABLE")
    digest = body.pop("digest", None)
    if digest != _digest(body):
        raise BundleError(f"{path}: it does not match its own digest", hint="export or copy it again", reason="DAMAGED")
    try:
        return _read(body, path)
    except (KeyError, TypeError, AttributeError) as cause:
        raise BundleError(f"{path}: a field is missing or wrong: {cause}", reason="UNPARSABLE") from cause


def differing(there: Mapping[str, str], here: Mapping[str, str]) -> tuple[str, ...]:
    """The fields of the metadata in which two environments differ; the wildcard `*` there counts as equal."""
    return tuple(sorted(name for name in here if there.get(name) not in (here[name], ANY)))


def _read(body: Mapping[str, object], path: str) -> Bundle:
    files = body["files"]
    metadata = body["metadata"]
    if not isinstance(files, dict) or not isinstance(metadata, dict):
        raise TypeError("files and metadata must be objects")
    texts = {str(name): str(file["text"]) for name, file in files.items()}
    for name, file in files.items():
        if not all(PART.fullmatch(part) for part in name.split("/")) or not name.endswith(".json"):
            raise BundleError(f"{path}: {name!r} is no path below a cache's folder", reason="BAD_PATH")
        if hashlib.sha256(texts[name].encode()).hexdigest() != file["sha256"]:
            raise BundleError(f"{path}: {name} does not match its sha256", hint="copy it again", reason="DAMAGED")
    parts = [str(body[name]) for name in ("version", "arch", "identity")]
    if not all(PART.fullmatch(part) for part in parts):
        raise BundleError(f"{path}: {'/'.join(parts)!r} is no path below a cache root", reason="BAD_PATH")
    check_contents(path, parts[0], {str(name): str(value) for name, value in metadata.items()}, texts)
    pins = body["pins_sha256"]
    check_provenance(path, {**metadata, **{name: body[name] for name in ("created", "tool_version", "pins_sha256")}})
    return Bundle(
        version=parts[0],
        arch=parts[1],
        identity=parts[2],
        metadata={str(name): str(value) for name, value in metadata.items()},
        files=texts,
        pins_sha256=None if pins is None else str(pins),
        created=str(body["created"]),
        tool_version=str(body["tool_version"]),
    )


def _body(bundle: Bundle) -> dict[str, object]:
    return {
        "format": FORMAT,
        "kind": KIND,
        "version": bundle.version,
        "arch": bundle.arch,
        "identity": bundle.identity,
        "metadata": dict(bundle.metadata),
        "pins_sha256": bundle.pins_sha256,
        "created": bundle.created,
        "tool_version": bundle.tool_version,
        "files": {
            name: {"sha256": hashlib.sha256(text.encode()).hexdigest(), "text": text}
            for name, text in bundle.files.items()
        },
    }


def _digest(body: Mapping[str, object]) -> str:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _environment(name: str, text: str) -> dict[str, str]:
    """FlashInfer's record of the environment in a cache file or a managed store's manifest, {} in any other file."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(body, dict):
        return {}
    fields = body if name.endswith("/manifest.json") else body.get(METADATA)
    if not isinstance(fields, dict):
        return {}
    return {
        str(field): value
        for field, value in fields.items()
        if isinstance(value, str) and not field.startswith((*OWN_FIELDS, *STORE_FIELDS))
    }


def _entries(name: str, text: str) -> int:
    if "/entries/" in name:
        return 1
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return 0
    return sum(isinstance(value, list) for value in body.values()) if isinstance(body, dict) else 0
