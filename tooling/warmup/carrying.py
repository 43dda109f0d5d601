"""Carrying a tuned cache to other machines: files on disk to a bundle and back. What a bundle is: `bundle`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tooling import __version__
from tooling.capabilities.gating import Strategy
from tooling.errors import EdgeError
from tooling.warmup import runtime
from tooling.warmup.agreement import Claim, verdict
from tooling.warmup.bundle import Bundle, differing, make_bundle, parse_bundle, render_bundle
from tooling.warmup.cache_file import read_cache, read_regular, replace_file, write_cache
from tooling.warmup.cache_text import METADATA, SET_FIELD, CacheFile
from tooling.warmup.errors import BundleError
from tooling.warmup.locks import describe, locked
from tooling.warmup.rank_files import LOCK_NAME

HASH = re.compile(r"[0-9a-f]{20}")
RANK_FILE = re.compile(r"rank-\d+-of-\d+\.json")
OURS = re.compile(rf"autotune_configs\.json|{RANK_FILE.pattern}|managed-notes\.json|managed/.+")
"""The files below `version/arch/hash` that a warm-up writes; of FlashInfer's own store, all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """One file of a bundle on this machine: its path, and why it was left alone, or "".

    `reason` is FOREIGN where a file of another environment lies there.
    """

    path: Path
    kept: str = ""
    reason: str = ""


def export_cache(source: Path, target: Path, *, pins_sha256: str | None = None) -> Bundle:
    """Writes the cache in that folder (`…/version/arch/hash`, or a file in it) to one file, with its provenance.

    Raises:
        BundleError: nothing there to carry. EdgeError: the disk did not let us.
    """
    folder = _identity_folder(source)
    real = Path(os.path.realpath(target))
    if Path(os.path.realpath(folder)) in real.parents:
        raise BundleError(
            f"{target}: lies in the cache that is to be carried", hint="name a file elsewhere", reason="BAD_PATH"
        )
    files = {path: _read_text(folder / path) for path in _names(folder)}
    created = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    parts = (folder.parts[-3], folder.parts[-2], folder.parts[-1])
    bundle = make_bundle(parts, files, pins_sha256=pins_sha256, created=created, tool_version=__version__)
    try:
        _put(real, render_bundle(bundle).encode())
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
            hint="run it where the engine runs; `import --unchecked` does not ask, and no other machine looks it up",
            reason="NO_FLASHINFER",
        )
    there = {**bundle.metadata, "arch": bundle.arch}
    here = {**installed.metadata, "arch": installed.arch}
    return tuple((name, there.get(name, "not recorded"), here[name]) for name in differing(there, here))


def import_cache(path: Path, root: Path | None = None, *, unchecked: bool = False) -> tuple[Placed, ...]:
    """Puts a carried cache below the cache root (None: the engine's own), where a warm-up finds it.

    `unchecked`: without comparing environments, for building an image where there is no GPU; the path that it goes to
    carries its environment. What is there already is kept: its own entries, and a whole set of ranks' files.

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
    return place_bundle(bundle, root)


def place_bundle(bundle: Bundle, root: Path | None = None) -> tuple[Placed, ...]:
    """As `import_cache`, of a bundle that was read and judged before."""
    folder = (root or _own_root()) / bundle.folder
    ranks = {name: text for name, text in bundle.files.items() if RANK_FILE.fullmatch(name)}
    placed = [_place(folder / name, text, bundle.metadata) for name, text in bundle.files.items() if name not in ranks]
    if ranks:
        placed += _place_set(folder, ranks, bundle.metadata)
    return tuple(sorted(placed, key=lambda one: one.path))


def _own_root() -> Path:
    """The engine's own cache root."""
    settings = runtime.load_settings()
    if settings.cache_root is None:
        problems = "; ".join(settings.problems)
        raise EdgeError(f"there is no cache root here: {problems}", hint="say --to DIR", reason="UNWRITABLE")
    return settings.cache_root


def _place_set(folder: Path, files: Mapping[str, str], metadata: Mapping[str, str]) -> list[Placed]:
    """The files of all ranks under the lock of their set, unless a whole set of this environment is there."""
    with locked(folder / LOCK_NAME) as lock:
        if lock.busy:
            raise EdgeError(f"{folder}: an engine is writing there: {lock.trouble}", hint="try again", reason="BUSY")
        if _holds_whole_set(folder, files, metadata):
            return [Placed(path=folder / name, kept="a whole set is there already") for name in files]
        return [_place(folder / name, text, metadata, merged=False) for name, text in files.items()]


def _holds_whole_set(folder: Path, names: Iterable[str], metadata: Mapping[str, str]) -> bool:
    claims = []
    for name in names:
        state, content, _ = read_cache(folder / name, metadata)
        mark = str(content.metadata.get(SET_FIELD, "")) if content else ""
        rank = int(name.split("-")[1])
        claims.append(Claim(rank=rank, strategy=Strategy.SYNCHRONIZED, release="", cache=state, mark=mark))
    return verdict(sorted(claims, key=lambda claim: claim.rank))[0]


def _place(path: Path, text: str, metadata: Mapping[str, str], *, merged: bool = True) -> Placed:
    """One file, merged with what is there if it is a cache file."""
    body = json.loads(text)
    if METADATA in body:
        entries = {key: value for key, value in body.items() if not key.startswith("_")}
        rest = {key: value for key, value in body.items() if key.startswith("_") and key != METADATA}
        file = CacheFile(metadata=body[METADATA], bookkeeping=rest, entries=entries)
        written = write_cache(path, file, metadata, merged=merged, theirs_first=True)
        if written.reason == "UNWRITABLE":
            raise EdgeError(f"{path}: cannot be written: {written.detail}", reason="UNWRITABLE")
        return Placed(path=path, kept=written.detail, reason=written.reason)
    try:
        if path.exists():
            return Placed(path=path, kept="it is there already")
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text.encode())
    except OSError as cause:
        raise EdgeError(f"{path}: cannot be written: {describe(cause)}", reason="UNWRITABLE") from cause
    return Placed(path=path)


def _identity_folder(source: Path) -> Path:
    """The folder `version/arch/hash` that holds the source; the source itself, or one above it."""
    source = source.absolute()
    try:
        for folder in (source, *source.parents):
            if HASH.fullmatch(folder.name) and folder.is_dir():
                return folder
    except OSError as cause:
        raise _unreadable(source, describe(cause)) from cause
    raise BundleError(
        f"{source}: neither a cache's folder (version/arch/hash) nor a file in one",
        hint="the warm-up's record names the file; or look below the cache root",
        reason="NO_CACHE",
    )


def _names(folder: Path) -> list[str]:
    """What a warm-up has written there: no other file, and none that a link brings in from elsewhere.

    A folder that cannot be listed raises: half of a cache would pass for the whole.
    """

    def refuse(cause: OSError) -> None:
        raise _unreadable(folder, describe(cause)) from cause

    found = [
        (Path(parent) / name).relative_to(folder).as_posix()
        for parent, _, names in os.walk(folder, onerror=refuse)
        for name in names
        if not os.path.islink(os.path.join(parent, name))
    ]
    return sorted(name for name in found if OURS.fullmatch(name) and name.endswith(".json") and "/." not in name)


def _read_text(path: Path) -> str:
    try:
        return read_regular(path).decode()
    except (OSError, UnicodeDecodeError) as cause:
        raise _unreadable(path, describe(cause) if isinstance(cause, OSError) else "not UTF-8") from cause


def _put(path: Path, data: bytes) -> None:
    """Replaces the file; a pipe or a device, such as /dev/stdout, is written to instead of being replaced."""
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, data)


def _unreadable(path: Path, detail: str) -> BundleError:
    return BundleError(f"{path}: cannot be read: {detail}", reason="UNREADABLE")
