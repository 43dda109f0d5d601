"""Environment variables of the warm-up, sensible and nonsensical."""

from __future__ import annotations

from pathlib import Path

import pytest

from tooling.warmup.runtime import load_settings
from tooling.warmup.settings import parse_settings, parse_skip_ops

HOME = {"HOME": "/home/me"}


@pytest.mark.parametrize(
    ("text", "operations"),
    [
        (None, None),
        ("", frozenset()),
        ("fp4_gemm", {"fp4_gemm"}),
        ("fp4_gemm, trtllm_fp4_block_scale_moe", {"fp4_gemm", "trtllm_fp4_block_scale_moe"}),
        (" a ,, a,b ", {"a", "b"}),
        (",", frozenset()),
    ],
    ids=["unset", "empty", "one name, not its letters", "two", "trimmed and each once", "only a comma"],
)
def test_skip_ops_are_a_trimmed_set_of_names(text: str | None, operations: set[str] | None) -> None:
    assert parse_skip_ops(text) == operations


@pytest.mark.parametrize(
    ("environment", "root"),
    [
        ({"VLLM_FLASHINFER_AUTOTUNE_CACHE_DIR": "/c", "VLLM_CACHE_ROOT": "/r"}, "/c"),
        ({"VLLM_FLASHINFER_AUTOTUNE_CACHE_DIR": "~/c"}, "/home/me/c"),
        ({"VLLM_CACHE_ROOT": "/r"}, "/r/flashinfer_autotune_cache"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/vllm/flashinfer_autotune_cache"),
        ({}, "/home/me/.cache/vllm/flashinfer_autotune_cache"),
        ({"VLLM_FLASHINFER_AUTOTUNE_CACHE_DIR": "", "VLLM_CACHE_ROOT": "/r"}, "/r/flashinfer_autotune_cache"),
        ({"VLLM_CACHE_ROOT": "", "XDG_CACHE_HOME": ""}, "/home/me/.cache/vllm/flashinfer_autotune_cache"),
        ({"VLLM_FLASHINFER_AUTOTUNE_CACHE_DIR": "~"}, "/home/me"),
        ({"VLLM_CACHE_ROOT": "~"}, "/home/me/flashinfer_autotune_cache"),
        ({"VLLM_FLASHINFER_AUTOTUNE_CACHE_DIR": "caches/here"}, "caches/here"),
        ({"VLLM_FLASHINFER_AUTOTUNE_CACHE_DIR": "/with space "}, "/with space "),
    ],
)
def test_the_cache_root_is_the_first_that_is_named(environment: dict[str, str], root: str) -> None:
    settings = parse_settings(HOME | environment)
    assert settings.cache_root == Path(root)
    assert settings.problems == ()


@pytest.mark.parametrize(
    ("environment", "root", "problem"),
    [
        ({"VLLM_FLASHINFER_AUTOTUNE_CACHE_DIR": " \t"}, "/home/me/.cache/vllm/flashinfer_autotune_cache", "is blank"),
        ({"VLLM_CACHE_ROOT": " "}, "/home/me/.cache/vllm/flashinfer_autotune_cache", "is blank"),
        ({"XDG_CACHE_HOME": "x"}, "/home/me/.cache/vllm/flashinfer_autotune_cache", "is not absolute"),
        ({"VLLM_FLASHINFER_AUTOTUNE_CACHE_DIR": "~you/c"}, None, "another user's home"),
        ({"VLLM_CACHE_ROOT": "~you"}, None, "another user's home"),
    ],
)
def test_a_folder_that_makes_no_sense_is_named_with_what_is_done_instead(
    environment: dict[str, str], root: str | None, problem: str
) -> None:
    settings = parse_settings(HOME | environment)
    assert settings.cache_root == (root and Path(root))
    (said,) = settings.problems
    assert next(iter(environment)) in said
    assert problem in said


def test_a_relative_folder_is_one_below_where_the_process_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    monkeypatch.setenv("VLLM_FLASHINFER_AUTOTUNE_CACHE_DIR", "caches")
    assert load_settings().cache_root == tmp_path / "gone" / "caches"
    (tmp_path / "gone").rmdir()
    assert load_settings().cache_root == Path("caches"), "no crash where the folder itself is gone"
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "environment",
    [{}, {"VLLM_CACHE_ROOT": "~/x"}, {"HOME": " "}],
    ids=["no HOME", "a tilde without HOME", "a blank HOME"],
)
def test_without_a_home_there_is_no_cache_and_it_is_said(environment: dict[str, str]) -> None:
    settings = parse_settings(environment)
    assert settings.cache_root is None
    assert "no cache is kept" in settings.problems[0]


@pytest.mark.parametrize(
    ("text", "off", "problems"),
    [("1", True, 0), ("true", True, 0), ("0", False, 0), ("", False, 0), ("perhaps", True, 1), ("2", True, 1)],
)
def test_a_word_that_is_neither_on_nor_off_keeps_the_cache_off(text: str, off: bool, problems: int) -> None:
    settings = parse_settings({**HOME, "VLLM_DISABLE_FLASHINFER_AUTOTUNE_CACHE": text})
    assert settings.cache_off is off
    assert len(settings.problems) == problems


@pytest.mark.parametrize(
    ("text", "no_progress_s", "total_s", "problems"),
    [
        ("", 300, 1200, 0),
        ("60", 60, 60, 0),
        ("3600", 300, 3600, 0),
        ("soon", 300, 1200, 1),
        ("-1", 300, 1200, 1),
        ("0.001", 300, 1200, 1),
        ("1", 1, 1, 0),
        ("nan", 300, 1200, 1),
        ("inf", 300, 1200, 1),
        ("1e308", 300, 2_592_000, 1),
        ("2592000", 300, 2_592_000, 0),
    ],
)
def test_deadlines_come_from_one_variable(text: str, no_progress_s: float, total_s: float, problems: int) -> None:
    settings = parse_settings({**HOME, "FLASHINFER_WARMUP_TIMEOUT_S": text})
    assert (settings.deadlines.no_progress_s, settings.deadlines.total_s) == (no_progress_s, total_s)
    assert len(settings.problems) == problems
