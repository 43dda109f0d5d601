"""What a cache file's bytes hold and whether they may be used here. Reading and writing files is `cache_file`'s.

FlashInfer's format (`AutoTuner.save_configs`, 0.6.7 on): one object; `_metadata` says which environment wrote it; other
keys that begin with an underscore are FlashInfer's bookkeeping (`_generation`, `_records` from 0.7 on); every other key
is an entry `[runner, tactic, ...]`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

METADATA = "_metadata"
ANY = "*"
"""FlashInfer's wildcard: the field counts as equal."""
INDETERMINATE = (None, "unknown")
"""What a writer records that could not tell its own environment."""
SET_FIELD = "warmup_set"
"""Our own field in the metadata, which FlashInfer ignores: the digest of all ranks' files written together."""
ENTRIES_FIELD = "warmup_entries"
"""Another: how many entries a whole file has at least."""
MISSES_FIELD = "warmup_misses"
"""Another: look-ups of each operation that miss even when all is tuned."""


class CacheKind(StrEnum):
    """Whether a file can be used, may be replaced, or belongs to somebody else."""

    ABSENT = "absent"
    VALID = "valid"
    MISS = "miss"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheFile:
    """A cache file that was understood: the writer's environment, FlashInfer's bookkeeping, and the entries."""

    metadata: Mapping[str, object] = field(default_factory=dict)
    bookkeeping: Mapping[str, object] = field(default_factory=dict)
    entries: Mapping[str, list[object]] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """`sha256:…` over runner and tactic of every entry: equal on ranks that would dispatch the same kernels."""
        return digest_entries(self.entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheState:
    """What is to be done with a file. `reason` is an upper-case word; `fields` are those of the metadata that differ.

    `wildcards` are fields that count as equal because the file says `*`.
    """

    kind: CacheKind
    reason: str = ""
    detail: str = ""
    fields: tuple[str, ...] = ()
    wildcards: tuple[str, ...] = ()
    digest: str = ""
    entries: int = 0

    def as_json(self) -> dict[str, object]:
        return {
            "kind": str(self.kind),
            "reason": self.reason,
            "detail": self.detail,
            "fields": list(self.fields),
            "wildcards": list(self.wildcards),
            "digest": self.digest,
            "entries": self.entries,
        }


ABSENT_STATE = CacheState(kind=CacheKind.ABSENT)


def judge(data: bytes | None, current: Mapping[str, str]) -> tuple[CacheState, CacheFile | None]:
    """What the bytes are worth in the current environment, and their content where it can be read.

    None is no file. Empty, cut off, malformed, without metadata, or of a writer that did not know its environment: a
    miss, to be replaced. A definite value that differs: foreign, never to be overwritten.
    """
    if data is None:
        return ABSENT_STATE, None
    if not data.strip():
        return _miss("EMPTY", "the file is empty"), None
    try:
        body = json.loads(data.decode())  # FlashInfer reads UTF-8 only, and no byte-order mark
    except (ValueError, RecursionError) as cause:
        return _miss("TRUNCATED", f"not JSON: {cause}"), None
    if not isinstance(body, dict):
        return _miss("NOT_A_CACHE", f"a JSON {type(body).__name__}, not an object"), None
    metadata = body.get(METADATA)
    if not isinstance(metadata, dict):
        return _miss("NO_METADATA", "nothing says which environment wrote it"), None
    file = CacheFile(
        metadata=metadata,
        bookkeeping={key: value for key, value in body.items() if key.startswith("_") and key != METADATA},
        entries={key: value for key, value in body.items() if not key.startswith("_")},
    )
    writable = is_writable(body)
    return _judge_metadata(file, current, writable=writable), file if writable else None


def _judge_metadata(file: CacheFile, current: Mapping[str, str], *, writable: bool) -> CacheState:
    hard, soft = compare(file.metadata, current)
    wildcards = tuple(sorted(name for name in current if file.metadata.get(name) == ANY))
    if hard:
        detail = "; ".join(f"{name}: {file.metadata[name]!r} there, {current[name]!r} here" for name in hard)
        return CacheState(kind=CacheKind.FOREIGN, reason="FOREIGN", detail=detail, fields=hard, wildcards=wildcards)
    if soft:
        detail = f"the writer did not record {', '.join(soft)}"
        return replace(_miss("UNKNOWN_METADATA", detail), fields=soft, wildcards=wildcards)
    if bad := next((key for key, value in file.entries.items() if not is_entry(value)), None):
        return _miss("BAD_ENTRY", f"{bad!r} is not [runner, tactic]")
    if not writable:
        return _miss("BAD_ENTRY", "something in it cannot be written as UTF-8, such as half of a surrogate pair")
    if not file.entries:
        return _miss("NO_ENTRIES", "the file holds no entry")
    noted = file.metadata.get(ENTRIES_FIELD)
    if isinstance(noted, int) and len(file.entries) < noted:
        return _miss("INCOMPLETE", f"{len(file.entries)} entries, of {noted} that were written")
    return CacheState(kind=CacheKind.VALID, wildcards=wildcards, digest=file.digest, entries=len(file.entries))


def compare(metadata: Mapping[str, object], current: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Fields that definitely differ, and fields that the writer left out or did not know."""
    differing = [name for name in sorted(current) if metadata.get(name) not in (current[name], ANY)]
    soft = tuple(name for name in differing if metadata.get(name) in INDETERMINATE)
    return tuple(name for name in differing if name not in soft), soft


def merge(files: Iterable[CacheFile]) -> CacheFile:
    """The union of the entries; the first file that has a key decides, and gives metadata and bookkeeping."""
    files = list(files)
    entries: dict[str, list[object]] = {}
    for file in reversed(files):
        entries |= file.entries
    return replace(files[0], entries=entries) if files else CacheFile()


def render(file: CacheFile) -> bytes:
    """The bytes that FlashInfer's `load_configs` reads: metadata first, entries sorted."""
    body: dict[str, object] = {METADATA: dict(file.metadata), **dict(sorted(file.bookkeeping.items()))}
    body |= {key: file.entries[key] for key in sorted(file.entries)}
    return (json.dumps(body, indent=2, ensure_ascii=False) + "\n").encode()


def digest_entries(entries: Mapping[str, list[object]]) -> str:
    chosen = {key: value[:2] for key, value in entries.items()}
    text = json.dumps(chosen, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def with_notes(file: CacheFile, misses: Mapping[str, int], **more: object) -> CacheFile:
    """The file with our notes in its metadata, for the next start to judge by."""
    notes = {ENTRIES_FIELD: len(file.entries), MISSES_FIELD: dict(misses), **more}
    return replace(file, metadata={**file.metadata, **notes})


def noted_misses(metadata: Mapping[str, object]) -> dict[str, int] | None:
    """The misses that are expected, or None where nobody noted any: then it is not known what the file covers."""
    noted = metadata.get(MISSES_FIELD)
    if not isinstance(noted, dict):
        return None
    return {str(name): count for name, count in noted.items() if isinstance(count, int)}


def set_digest(digests: Iterable[str]) -> str:
    """The mark that files of all ranks carry when they were written together, in the order of ranks."""
    return "sha256:" + hashlib.sha256("\n".join(digests).encode()).hexdigest()


def first_difference(entries: Iterable[Mapping[str, list[object]]]) -> str:
    """The first key on which two ranks chose otherwise, or "". Keys that only one rank has do not count."""
    seen: dict[str, list[object]] = {}
    different: set[str] = set()
    for one in entries:
        for key, value in one.items():
            if seen.setdefault(key, value)[:2] != value[:2]:
                different.add(key)
    return min(different, default="")


def is_entry(value: object) -> bool:
    """Whether it is `[runner, tactic, ...]`."""
    return isinstance(value, list) and len(value) >= 2 and isinstance(value[0], str)


def is_writable(value: object) -> bool:
    """Whether parsed JSON can be written again as UTF-8: a lone surrogate can be read but not written."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        return False
    return True


def _miss(reason: str, detail: str) -> CacheState:
    return CacheState(kind=CacheKind.MISS, reason=reason, detail=detail)
