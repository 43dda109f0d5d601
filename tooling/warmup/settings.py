"""What the operator asked for: the environment variables of the warm-up as values. Reading them is `runtime`'s."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

CACHE_OFF = "VLLM_DISABLE_FLASHINFER_AUTOTUNE_CACHE"
SKIP_OPS = "VLLM_FLASHINFER_AUTOTUNE_SKIP_OPS"
CACHE_DIR = "VLLM_FLASHINFER_AUTOTUNE_CACHE_DIR"
CACHE_ROOT = "VLLM_CACHE_ROOT"
XDG_CACHE = "XDG_CACHE_HOME"
TIMEOUT = "FLASHINFER_WARMUP_TIMEOUT_S"
FOLDER = "flashinfer_autotune_cache"
"""The folder of this cache below an engine's cache root."""

MIN_TIMEOUT_S = 1.0
"""Ranks do not even meet in less."""
MAX_TIMEOUT_S = 30 * 24 * 3600.0
"""Thirty days; what waits for ranks cannot count much longer."""

ON, OFF = {"1", "true", "yes", "on"}, {"", "0", "false", "no", "off"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """Seconds without any progress, and seconds in all, after which a wait raises."""

    no_progress_s: float = 300.0
    total_s: float = 1200.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The operator's wishes. `skip_ops` None: look at the model. `cache_root` None: there is nowhere to put a cache; a
    relative one is below the folder that the process starts in.

    `problems` has one sentence for each variable that holds nonsense, with what is done instead.
    """

    cache_off: bool = False
    skip_ops: frozenset[str] | None = None
    cache_root: Path | None = None
    deadlines: Deadlines = Deadlines()
    problems: tuple[str, ...] = ()


def parse_settings(environment: Mapping[str, str]) -> Settings:
    """The settings in those variables. Nonsense never raises: it becomes a problem and the careful reading."""
    problems: list[str] = []
    return Settings(
        cache_off=_cache_off(environment.get(CACHE_OFF, ""), problems),
        skip_ops=parse_skip_ops(environment.get(SKIP_OPS)),
        cache_root=_cache_root(environment, problems),
        deadlines=_deadlines(environment.get(TIMEOUT, ""), problems),
        problems=tuple(problems),
    )


def parse_skip_ops(text: str | None) -> frozenset[str] | None:
    """Unset is None (look at the model), empty is the empty set (skip nothing), else the comma list, trimmed."""
    if text is None:
        return None
    return frozenset(name.strip() for name in text.split(",") if name.strip())


def _cache_off(text: str, problems: list[str]) -> bool:
    word = text.strip().lower()
    if word in ON | OFF:
        return word in ON
    problems.append(f"{CACHE_OFF}={text!r} is neither 1 nor 0; the cache stays off")
    return True


def _cache_root(environment: Mapping[str, str], problems: list[str]) -> Path | None:
    if directory := _told(CACHE_DIR, environment, problems):
        return _expanded(CACHE_DIR, directory, environment, problems)
    if root := _told(CACHE_ROOT, environment, problems):
        expanded = _expanded(CACHE_ROOT, root, environment, problems)
        return expanded and expanded / FOLDER
    if base := _told(XDG_CACHE, environment, problems):
        if Path(base).is_absolute():
            return Path(base) / "vllm" / FOLDER
        problems.append(f"{XDG_CACHE}={base!r} is not absolute, and is left out of account")
    if home := environment.get("HOME", "").strip():
        return Path(home) / ".cache" / "vllm" / FOLDER
    problems.append(f"none of {CACHE_DIR}, {CACHE_ROOT}, XDG_CACHE_HOME and HOME is set; no cache is kept")
    return None


def _told(name: str, environment: Mapping[str, str], problems: list[str]) -> str:
    """The variable's text, "" where it is not set, empty or blank."""
    text = environment.get(name, "")
    if text and not text.strip():
        problems.append(f"{name}={text!r} is blank, and is left out of account")
    return text if text.strip() else ""


def _expanded(name: str, text: str, environment: Mapping[str, str], problems: list[str]) -> Path | None:
    if not text.startswith("~"):
        return Path(text)
    home = environment.get("HOME", "").strip()
    if home and (text == "~" or text.startswith("~/")):
        return Path(home) / text[2:]
    lacks = "names another user's home, which is not looked up" if home else "needs HOME, which is not set"
    problems.append(f"{name}={text!r} {lacks}; no cache is kept")
    return None


def _deadlines(text: str, problems: list[str]) -> Deadlines:
    default = Deadlines()
    if not text.strip():
        return default
    try:
        total = float(text)
    except ValueError:
        total = 0.0
    if not MIN_TIMEOUT_S <= total < float("inf"):
        problems.append(f"{TIMEOUT}={text!r} is no number of seconds from 1 on; {default.total_s:.0f} is used")
        return default
    if total > MAX_TIMEOUT_S:
        problems.append(f"{TIMEOUT}={text!r} is more than 30 days; {MAX_TIMEOUT_S:.0f} is used")
        total = MAX_TIMEOUT_S
    return Deadlines(no_progress_s=min(default.no_progress_s, total), total_s=total)
