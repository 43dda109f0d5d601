"""What the bytes of a cache file are worth."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tooling.warmup.cache_text import (
    CacheFile,
    CacheKind,
    first_difference,
    judge,
    merge,
    render,
    with_notes,
)

HERE = {"flashinfer_version": "0.6.13", "gpu": "NVIDIA H200", "cudnn_frontend_version": "unknown"}


def file(entries: dict[str, Any] | None = None, **metadata: Any) -> bytes:
    chosen = {"k": ["Runner", 1]} if entries is None else entries
    return json.dumps({"_metadata": {**HERE, **metadata}, **chosen}).encode()


CASES: dict[str, tuple[bytes | None, CacheKind, str]] = {
    "absent": (None, CacheKind.ABSENT, ""),
    "valid": (file(), CacheKind.VALID, ""),
    "valid with a policy": (file({"k": ["R", [1, 2], [3]]}), CacheKind.VALID, ""),
    "wildcard": (file(gpu="*"), CacheKind.VALID, ""),
    "a field more": (file(warmup_set="x", engine="y"), CacheKind.VALID, ""),
    "empty": (b"", CacheKind.MISS, "EMPTY"),
    "blank": (b" \n", CacheKind.MISS, "EMPTY"),
    "cut off": (file()[:-5], CacheKind.MISS, "TRUNCATED"),
    "no UTF-8": (b"\xff\xfe\xff", CacheKind.MISS, "TRUNCATED"),
    "a byte-order mark": (b"\xef\xbb\xbf" + file(), CacheKind.MISS, "TRUNCATED"),
    "UTF-16": (file().decode().encode("utf-16"), CacheKind.MISS, "TRUNCATED"),
    "nested too deep": (b"[" * 100_000, CacheKind.MISS, "TRUNCATED"),
    "a list": (b"[]", CacheKind.MISS, "NOT_A_CACHE"),
    "no metadata": (b'{"k": ["R", 1]}', CacheKind.MISS, "NO_METADATA"),
    "metadata is text": (b'{"_metadata": "x", "k": ["R", 1]}', CacheKind.MISS, "NO_METADATA"),
    "unknown GPU": (file(gpu="unknown"), CacheKind.MISS, "UNKNOWN_METADATA"),
    "field missing": (b'{"_metadata": {}, "k": ["R", 1]}', CacheKind.MISS, "UNKNOWN_METADATA"),
    "no entry": (file({}), CacheKind.MISS, "NO_ENTRIES"),
    "entry is text": (file({"k": "R"}), CacheKind.MISS, "BAD_ENTRY"),
    "entry lacks its tactic": (file({"k": ["R"]}), CacheKind.MISS, "BAD_ENTRY"),
    "half a surrogate in a key": (file({"\ud800": ["R", 1]}), CacheKind.MISS, "BAD_ENTRY"),
    "half a surrogate in a tactic": (file({"k": ["R", ["\udfff"]]}), CacheKind.MISS, "BAD_ENTRY"),
    "half a surrogate in the notes": (file(warmup_misses={"\ud800": 1}), CacheKind.MISS, "BAD_ENTRY"),
    "foreign with half a surrogate": (file({"\ud800": ["R", 1]}, gpu="\ud800"), CacheKind.FOREIGN, "FOREIGN"),
    "entries lost": (file(warmup_entries=2), CacheKind.MISS, "INCOMPLETE"),
    "another GPU": (file(gpu="NVIDIA B200"), CacheKind.FOREIGN, "FOREIGN"),
    "known there, unknown here": (file(cudnn_frontend_version="1.19"), CacheKind.FOREIGN, "FOREIGN"),
    "foreign although a field is missing": (file(gpu=None, flashinfer_version="0.6.18"), CacheKind.FOREIGN, "FOREIGN"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_file_is_valid_a_miss_or_foreign(case: str) -> None:
    data, kind, reason = CASES[case]
    state, _ = judge(data, HERE)
    assert (state.kind, state.reason) == (kind, reason)


def test_the_fields_that_differ_are_named_with_both_sides() -> None:
    state, _ = judge(file(gpu="NVIDIA B200", flashinfer_version="0.6.18"), HERE)
    assert state.fields == ("flashinfer_version", "gpu")
    assert "gpu: 'NVIDIA B200' there, 'NVIDIA H200' here" in state.detail


def test_wildcards_are_reported() -> None:
    assert judge(file(gpu="*"), HERE)[0].wildcards == ("gpu",)


def test_what_is_rendered_reads_the_same() -> None:
    data = file({"b": ["R", [1, 2]], "a": ["é", -1], "_generation": "x"})
    _, content = judge(data, HERE)
    assert content is not None
    assert judge(render(content), HERE) == judge(data, HERE)
    assert render(content) == render(content)


def test_the_first_file_decides_and_no_entry_is_lost() -> None:
    merged = merge([CacheFile(entries={"a": ["R", 1]}), CacheFile(entries={"a": ["R", 2], "b": ["R", 3]})])
    assert merged.entries == {"a": ["R", 1], "b": ["R", 3]}


def test_the_digest_is_over_tactics_not_over_how_they_were_timed() -> None:
    plain, timed = CacheFile(entries={"a": ["R", 1]}), CacheFile(entries={"a": ["R", 1, ["policy"]]})
    assert plain.digest == timed.digest == with_notes(plain, {"x": 1}).digest
    assert plain.digest != CacheFile(entries={"a": ["R", 2]}).digest


def test_the_first_difference_is_among_keys_that_two_ranks_have() -> None:
    assert first_difference([{"a": ["R", 1], "b": ["R", 1]}, {"b": ["R", 1], "c": ["R", 9]}]) == ""
    assert first_difference([{"b": ["R", 1], "c": ["R", 2]}, {"c": ["R", 3], "b": ["R", 2]}]) == "b"
