"""GSM8K's files: the shipped ones, a folder's, or a URL's with pinned digests and a cache."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import requests

from tooling.edges.files.durable import make_private_folder, replace_file
from tooling.edges.packaged_data import DATA
from tooling.errors import EdgeError, InputError
from tooling.gsm8k.data_location import DataLocation
from tooling.gsm8k.results import RawData

MAX_SIZE_BYTES = 50_000_000
"""Ten times the published training file."""
_TIMEOUT_S = 30


def load_data(location: DataLocation, *, base: Path, cache: Path) -> RawData:
    """The two files' texts and digests. Relative folders are relative to `base`; downloads are kept in `cache`.

    Raises:
        InputError: a file is missing, not UTF-8 or has another digest than the pinned one.
        EdgeError: the URL does not answer, or the cache cannot be written.
    """
    if location.url is not None:
        source = location.url.rstrip("/")
        read = [
            _fetch(f"{source}/{name}", cache, str(pin))
            for name, pin in (("test.jsonl", location.test_sha256), ("train.jsonl", location.train_sha256))
        ]
    else:
        folder = base / location.folder if location.folder is not None else DATA / "gsm8k"
        source = location.folder or "shipped"
        read = [
            _load(folder / name, pin)
            for name, pin in (("test.jsonl", location.test_sha256), ("train.jsonl", location.train_sha256))
        ]
    (test, test_sha256), (train, train_sha256) = read
    return RawData(source=source, test=test, train=train, test_sha256=test_sha256, train_sha256=train_sha256)


def _load(path: Path, pin: str | None) -> tuple[str, str]:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_SIZE_BYTES + 1)
    except OSError as cause:
        raise InputError(f"{path}: cannot be read: {cause.strerror}", hint="see `data`", reason="MISSING") from cause
    return _check(raw, str(path), pin)


def _fetch(url: str, cache: Path, pin: str) -> tuple[str, str]:
    """From the cache if it holds what is pinned, else from the network into the cache."""
    kept = cache / f"{pin[:16]}-{url.rsplit('/', 1)[-1]}"
    if kept.is_file() and hashlib.sha256(kept.read_bytes()).hexdigest() == pin:
        return _load(kept, pin)
    raw = _download(url)
    text = _check(raw, url, pin)
    try:
        make_private_folder(cache)
        replace_file(kept, raw)
    except OSError as cause:
        raise EdgeError(f"{kept}: cannot be written: {cause.strerror}", reason="UNWRITABLE") from cause
    return text


def _download(url: str) -> bytes:
    try:
        with requests.get(url, stream=True, timeout=_TIMEOUT_S) as response:
            response.raise_for_status()
            raw = bytearray()
            for chunk in response.iter_content(65_536):
                raw += chunk
                if len(raw) > MAX_SIZE_BYTES:
                    break
    except requests.RequestException as cause:
        hint = "fetch the files yourself and give their folder"
        raise EdgeError(f"{url}: cannot be fetched: {cause}", hint=hint, reason="NO_DATA") from cause
    return bytes(raw)


def _check(raw: bytes, where: str, pin: str | None) -> tuple[str, str]:
    if len(raw) > MAX_SIZE_BYTES:
        raise InputError(f"{where}: found more than {MAX_SIZE_BYTES:,} bytes", reason="TOO_LARGE")
    found = hashlib.sha256(raw).hexdigest()
    if pin is not None and found != pin:
        raise InputError(f"{where}: found sha256 {found}, expected {pin}", reason="WRONG_DIGEST")
    try:
        return raw.decode(), found
    except UnicodeDecodeError as cause:
        raise InputError(f"{where}: byte {cause.start} is not UTF-8", reason="UNDECODABLE") from cause


def default_cache(environ_home: str | None) -> Path:
    """Where downloads are kept for all trees of one user: the XDG cache folder."""
    base = Path(environ_home) if environ_home else Path(os.path.expanduser("~")) / ".cache"
    return base / "flashinfer-pin-pipeline" / "gsm8k"
