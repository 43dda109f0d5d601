"""Carrying a tuned cache to other machines: files on disk to a bundle and back. What a bundle is: `bundle`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tooling import __version__
from tooling.errors import EdgeError
from tooling.warmup import runtime
from tooling.warmup.bundle import Bundle, differing, make_bundle, parse_bundle, render_bundle
from tooling.warmup.cache_file import replace_file, write_cache
from tooling.warmup.cache_text import METADATA, CacheFile
from tooling.warmup.errors import BundleError
from tooling.warmup.locks import describe


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """One file of a bundle on this machine: its path, and why it was left alone, or ""."""

    path: Path
    kept: str = ""


def export_cache(source: Path, target: Path, *, pins_sha256: str | None = None) -> Bundle:
    """Writes the cache in that folder (`…/version/arch/hash`, or a file in it) to one file, with its provenance.

    Raises:
        BundleError: nothing there to carry. EdgeError: the disk did not let us.
    """
    folder = _identity_folder(source)
    files = {path: _read_text(folder / path) for path in _names(folder)}
    created = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    parts = (folder.parts[-3], folder.parts[-2], folder.parts[-1])
    bundle = make_bundle(parts, files, pins_sha256=pins_sha256, created=created, tool_version=__version__)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_file(target, render_bundle(bundle).encode())
    except OSError as cause:
        raise EdgeError(f"{target}: cannot be written: {describe(cause)}", reason="UNWRITABLE") from cause
    return bundle


def load_bundle(path: Path) -> Bundle:
    """The bundle in that file. Raises BundleError where there is none."""
    return parse_bundle(_read_text(path), path=str(path))


def foreign_fields(bundle: Bundle) -> tuple[tuple[str, str, str], ...]:
    """Field, value there and value here, for each in which the bundle's environment is not this one.

    Raises:
        EdgeError: this machine has no FlashInfer that could tell its own environment.
    """
    installed = runtime.load_installed()
    if not installed.metadata:
        raise EdgeError(
            f"this machine's environment cannot be told: {installed.detail or 'FlashInfer records none'}",
            hint="run it where the engine runs, or say --unchecked: a cache of another environment is never looked up",
            reason="NO_FLASHINFER",
        )
    there = {**bundle.metadata, "arch": bundle.arch}
    here = {**installed.metadata, "arch": installed.arch}
    return tuple((name, there.get(name, "not recorded"), here[name]) for name in differing(there, here))


def import_cache(path: Path, root: Path | None = None, *, unchecked: bool = False) -> tuple[Placed, ...]:
    """Puts a carried cache below the cache root (None: the engine's own), where a warm-up finds it.

    `unchecked`: without comparing environments, for building an image where there is no GPU; the path that it goes to
    carries its environment. Files that are there already keep their own entries.

    Raises:
        BundleError: damaged, or of another environment (`field`). EdgeError: the disk did not let us.
    """
    bundle = load_bundle(path)
    if not unchecked:
        for field, there, here in foreign_fields(bundle):
            raise BundleError(
                f"{path}: tuned in another environment: {field} is {there!r} there and {here!r} here",
                hint="tune here, or take the cache of a machine like this one",
                reason="FOREIGN",
                field=field,
            )
    root = root or runtime.load_settings().cache_root
    if root is None:
        raise EdgeError("there is no cache root on this machine", hint="say --to DIR", reason="UNWRITABLE")
    return tuple(_place(root / bundle.folder / name, text, bundle.metadata) for name, text in bundle.files.items())


def _place(path: Path, text: str, metadata: Mapping[str, str]) -> Placed:
    """One file, merged with what is there if it is a cache file."""
    body = json.loads(text)
    if METADATA in body:
        entries = {key: value for key, value in body.items() if not key.startswith("_")}
        rest = {key: value for key, value in body.items() if key.startswith("_") and key != METADATA}
        shared = not path.name.startswith("rank-")
        file = CacheFile(metadata=body[METADATA], bookkeeping=rest, entries=entries)
        written = write_cache(path, file, metadata, merged=shared)
        if written.reason == "UNWRITABLE":
            raise EdgeError(f"{path}: cannot be written: {written.detail}", reason="UNWRITABLE")
        return Placed(path=path, kept=written.detail)
    if path.exists():
        return Placed(path=path, kept="it is there already")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text.encode())
    except OSError as cause:
        raise EdgeError(f"{path}: cannot be written: {describe(cause)}", reason="UNWRITABLE") from cause
    return Placed(path=path)


def _identity_folder(source: Path) -> Path:
    """The folder `version/arch/hash` that holds the source; the source itself, or one above it."""
    source = source.absolute()
    for folder in (source, *source.parents):
        if folder.is_dir() and len(folder.name) == 20 and set(folder.name) <= set("0123456789abcdef"):
            return folder
    raise BundleError(
        f"{source}: neither a cache's folder (version/arch/hash) nor a file in one",
        hint="the warm-up's record names the file; or look below the cache root",
        reason="NO_CACHE",
    )


def _names(folder: Path) -> list[str]:
    found = (path.relative_to(folder) for path in folder.rglob("*.json"))
    return sorted(str(path) for path in found if not any(part.startswith(".") for part in path.parts))


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        detail = describe(cause) if isinstance(cause, OSError) else "not UTF-8"
        raise BundleError(f"{path}: cannot be read: {detail}", reason="UNREADABLE") from cause
