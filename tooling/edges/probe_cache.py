"""What was derived from a release's file, kept on disk by the file's hash. A cache that cannot be used is no cache.

An entry also names the code that derived it, so that a changed prober derives anew.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import tooling.capabilities
from tooling.capabilities.derive import Derived
from tooling.capabilities.table_text import facts_json, parse_found
from tooling.edges.environment import load_environment
from tooling.edges.files.durable import replace_file
from tooling.errors import InputError

DERIVING = (
    "derive",
    "disk_key",
    "distribution",
    "facts",
    "faults",
    "names",
    "operations",
    "runners",
    "source",
    "tuner",
)
"""The modules of `tooling.capabilities` whose change makes what was kept worthless; a test holds the list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeCache:
    """Entries in one folder, which only the user can enter."""

    folder: Path

    def load(self, sha256: str | None, *, with_operations: bool, release: str = "") -> Derived | None:
        """What is kept for the file with that hash, read as that release, if it holds what is asked for."""
        if sha256 is None:
            return None
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, InputError):
            body = json.loads(self._path(sha256).read_bytes())
            same = (body["code"], body["release"]) == (code_digest(), release)
            if same and (body["with_operations"] or not with_operations):
                facts, faults = parse_found(body["found"], path=sha256)
                return Derived(
                    facts=facts,
                    known_faults=faults,
                    problems=dict(body["problems"]),
                    with_operations=bool(body["with_operations"]),
                )
        return None

    def save(self, sha256: str | None, derived: Derived, *, release: str = "") -> None:
        """Keeps it, unless a better entry of the same code is there."""
        if sha256 is None:
            return
        if not derived.with_operations and self.load(sha256, with_operations=True, release=release):
            return
        body = {
            "code": code_digest(),
            "release": release,
            "with_operations": derived.with_operations,
            "found": facts_json(derived.facts, derived.known_faults),
            "problems": dict(derived.problems),
        }
        with suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self._path(sha256), json.dumps(body).encode())

    def _path(self, sha256: str) -> Path:
        return self.folder / f"{sha256}.json"


def default_probe_cache() -> ProbeCache:
    """The user's own, in `$XDG_CACHE_HOME` or `~/.cache`."""
    environ = load_environment()
    base = environ.get("XDG_CACHE_HOME") or os.path.join(environ.get("HOME") or str(Path.home()), ".cache")
    return ProbeCache(folder=Path(base) / "flashinfer-pin-pipeline" / "probe")


@cache
def code_digest() -> str:
    """A hash over the modules that derive facts: `derive` and what it imports of its own room."""
    digest = hashlib.sha256()
    room = Path(next(iter(tooling.capabilities.__path__)))
    for name in sorted(DERIVING):
        digest.update(name.encode() + b"\0" + (room / f"{name}.py").read_bytes())
    return digest.hexdigest()
