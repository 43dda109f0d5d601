"""Reads releases: opens each file, takes the members that are needed, derives, remembers. Several at a time."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field

from packaging.version import InvalidVersion, Version

from tooling.capabilities.derive import Derived, all_members, derive, tuner_members
from tooling.capabilities.distribution import metadata_version
from tooling.capabilities.source import Source
from tooling.edges.archives import Archive
from tooling.edges.index_http import HttpReader
from tooling.edges.probe_cache import ProbeCache
from tooling.edges.ranged_archive import open_release_file
from tooling.errors import InputError, ToolingError
from tooling.releases.files import ReleaseFile

PARALLEL = 3
"""Releases read at once, each over a few connections of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """One release that was read. Bytes count what came over the network or from disk; `seconds` is the wall's.

    `tuner_bytes` is what metadata and the tuner's facts took, `operation_bytes` what came on top of that.
    """

    release: Version
    derived: Derived | None
    file: str
    size_bytes: int
    sha256: str | None
    tuner_bytes: int = 0
    operation_bytes: int = 0
    tuner_seconds: float = 0.0
    seconds: float = 0.0
    from_cache: bool = False
    notes: tuple[str, ...] = ()
    error: ToolingError | None = None


@dataclass(slots=True, kw_only=True)
class Prober:
    """Reads releases with one HTTP client and one cache (None: no cache)."""

    http: Callable[[], HttpReader]
    cache: ProbeCache | None
    with_operations: bool
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def probe(self, release: Version, file: ReleaseFile) -> Probed:
        """The release out of its file on the index.

        Raises:
            EdgeError: the server does not answer, or what it sends is no archive.
            InputError: it says that it is another release.
        """
        kept = None
        if self.cache:
            kept = self.cache.load(file.sha256, with_operations=self.with_operations, release=str(release))
        if kept is not None:
            return Probed(
                release=release,
                derived=kept,
                file=file.filename,
                size_bytes=file.size_bytes or 0,
                sha256=file.sha256,
                from_cache=True,
            )
        with self._lock:
            http = self.http()
        started = time.monotonic()
        archive = open_release_file(http, file)
        try:
            return self.read(release, archive, started=started)
        finally:
            archive.close()

    def read(self, release: Version, archive: Archive, *, started: float | None = None) -> Probed:
        """The release out of an open archive.

        Raises:
            InputError: it says that it is another release.
        """
        started = time.monotonic() if started is None else started
        with _no_collection():
            archive.prefetch(tuner_members(archive.names))
            _check_release(archive, release)
            derived = derive(archive.names, archive.read, with_operations=False)
            tuner_bytes, tuner_seconds = archive.bytes_read(), time.monotonic() - started
            if self.with_operations:
                archive.prefetch(all_members(archive.names))
                derived = derive(archive.names, archive.read, with_operations=True)
        if self.cache:
            self.cache.save(archive.sha256, derived, release=str(release))
        return Probed(
            release=release,
            derived=derived,
            file=archive.label,
            size_bytes=archive.size_bytes,
            sha256=archive.sha256,
            tuner_bytes=tuner_bytes,
            operation_bytes=archive.bytes_read() - tuner_bytes,
            tuner_seconds=tuner_seconds,
            seconds=time.monotonic() - started,
            notes=tuple(archive.notes),
        )

    def probe_many(self, wanted: Sequence[tuple[Version, ReleaseFile]]) -> Iterator[Probed]:
        """Each release as soon as it is read; one that failed has its `error`."""
        with ThreadPoolExecutor(PARALLEL) as pool:
            jobs = {pool.submit(self._probe_or_say, release, file): release for release, file in wanted}
            try:
                for job in as_completed(jobs):
                    yield job.result()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def _probe_or_say(self, release: Version, file: ReleaseFile) -> Probed:
        try:
            return self.probe(release, file)
        except ToolingError as cause:
            return Probed(
                release=release, derived=None, file=file.filename, size_bytes=0, sha256=file.sha256, error=cause
            )


def _check_release(archive: Archive, release: Version) -> None:
    """Refuses an archive whose own metadata names another release; a file's name proves nothing, a label counts not."""
    wanted = frozenset(tuner_members(archive.names))
    found = metadata_version(Source(names=wanted, read=archive.read))
    if found is None:
        return
    try:
        differs = Version(Version(found).public) != Version(release.public)
    except InvalidVersion as cause:
        raise InputError(
            f"{archive.label} says that it is {found!r}, which is no version; expected {release}", reason="BAD_METADATA"
        ) from cause
    if differs:
        raise InputError(
            f"{archive.label} says that it is {found}, not {release}",
            hint="take the release from another source",
            reason="OTHER_RELEASE",
        )


@contextmanager
def _no_collection() -> Iterator[None]:
    """Without cyclic garbage collection: syntax trees of a release have millions of nodes and no garbage."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
