"""FlashInfer's tuner as the warm-up uses it: tune, save to bytes, load from bytes, and what is in memory."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from tooling.warmup.locks import describe

SCRATCH_FALLBACK = "/dev/shm"  # noqa: S108  # a place that is writable in read-only containers


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEntry:
    """One tuned entry in memory. `file_keys` are the keys under which a file may hold it, the likeliest first."""

    file_keys: tuple[str, ...]
    runner: str
    tactic: object

    @property
    def operation(self) -> str:
        return self.file_keys[0].split("'")[1] if "'" in self.file_keys[0] else self.file_keys[0]


class ScratchError(Exception):
    """FlashInfer saves to and loads from paths only, and there is no writable folder at all."""


@dataclass(frozen=True, slots=True)
class Tuner:
    """The process's one AutoTuner, with the module that it came from."""

    module: Any
    instance: Any

    @property
    def parameters(self) -> frozenset[str]:
        """What the installed `autotune` takes."""
        return frozenset(inspect.signature(self.module.autotune).parameters)

    def tuning(self, skip_ops: frozenset[str]) -> AbstractContextManager[object]:
        """Tunes inside. The set goes along on every path, and never to a release without the parameter."""
        return self.module.autotune(True, **self._skip(skip_ops))  # type: ignore[no-any-return]

    def managed(self, root: Path, skip_ops: frozenset[str], *, mode: str) -> AbstractContextManager[object]:
        """FlashInfer's own store below that root: `tune` into it, or `replay` it. Look-ups find it afterwards too."""
        autotune_v2 = import_module("flashinfer.autotune_cache").autotune_v2
        name = "cache_root" if "cache_root" in inspect.signature(autotune_v2).parameters else "root"
        return autotune_v2(mode, **{name: root}, **self._skip(skip_ops))  # type: ignore[no-any-return]

    @contextlib.contextmanager
    def synchronized(self, group: Any, skip_ops: frozenset[str]) -> Iterator[None]:
        """Tunes inside with timings averaged over that process group."""
        self.module.set_autotune_process_group(group)
        try:
            with self.tuning(skip_ops):
                yield
        finally:
            self.module.set_autotune_process_group(None)

    def save(self) -> bytes | None:
        """What FlashInfer would write: loaded entries and those in memory. None if there are none.

        Raises:
            ScratchError: no folder to save to.
        """
        if not self.instance.profiling_cache and not getattr(self.instance, "_file_configs", {}):
            return None
        with _scratch() as folder:
            path = folder / "saved.json"
            self.instance.save_configs(str(path))
            return path.read_bytes() if path.exists() else None

    def load(self, data: bytes) -> bool:
        """Whether FlashInfer took the entries in those bytes. Entries in memory go before loaded ones.

        Raises:
            ScratchError: no folder to load from.
        """
        with _scratch() as folder:
            path = folder / "loaded.json"
            path.write_bytes(data)
            return bool(self.instance.load_configs(str(path)))

    def clear(self) -> None:
        """Forgets all tuned and loaded entries."""
        self.instance.clear_cache()

    def memory(self) -> list[MemoryEntry]:
        """Every tuned entry in memory, those of FlashInfer's own store too; not the loaded ones."""
        partitions = [self.instance.profiling_cache, *getattr(self.instance, "_winner_partitions", {}).values()]
        return [self._entry(key, value) for partition in partitions for key, value in partition.items()]

    def loaded_keys(self) -> frozenset[str] | None:
        """The keys that were loaded from files, or None if this release does not tell."""
        loaded = getattr(self.instance, "_file_configs", None)
        return None if loaded is None else frozenset(loaded)

    def _entry(self, key: Any, value: tuple[Any, ...]) -> MemoryEntry:
        """Keys are pairs of tuples at first (0.2.6), tuples up to 0.6.15 (with extras where there are any), and carry
        their own `file_key` since.
        """
        plain = self._plain(value[1] if len(value) == 3 else value[0])
        if hasattr(key, "file_key"):
            return MemoryEntry(file_keys=(key.file_key,), runner=key.runner_class_name, tactic=plain)
        if isinstance(key[0], tuple):
            (operation, runner), rest = key
            return MemoryEntry(file_keys=(str((operation, runner, rest)),), runner=runner, tactic=plain)
        keys = (str((key[0], key[1], *key[3:])), str((key[0], key[1], key[3])))
        return MemoryEntry(file_keys=keys, runner=key[1], tactic=plain)

    def _plain(self, tactic: Any) -> object:
        """The tactic as JSON has it; what JSON cannot hold, and FlashInfer never writes, in words."""
        spelled: object = getattr(self.module, "_tactic_to_json", _listed)(tactic)
        try:
            json.dumps(spelled)
        except (TypeError, ValueError):
            return repr(spelled)
        return spelled

    def _skip(self, skip_ops: frozenset[str]) -> dict[str, set[str]]:
        return {"skip_ops": set(skip_ops)} if "skip_ops" in self.parameters else {}


def _listed(tactic: Any) -> Any:
    """Tuples as lists: releases before 0.6.7 write no files, and have no spelling of their own."""
    return [_listed(one) for one in tactic] if isinstance(tactic, list | tuple) else tactic


def open_tuner() -> Tuner:
    """The installed FlashInfer's tuner. Raises ImportError or AttributeError where there is none."""
    module = import_module("flashinfer.autotuner")
    return Tuner(module, module.AutoTuner.get())


def missing_api(names: tuple[str, ...]) -> list[str]:
    """Those names that are lacking: of the tuner's module, `AutoTuner.` ones, or `autotune_v2` of the package."""
    try:
        tuner = open_tuner()
    except Exception:  # noqa: BLE001  # whatever is wrong with it, it offers nothing
        return list(names)
    homes = {"autotune_v2": import_module("flashinfer")}
    found = {
        name: hasattr(tuner.module.AutoTuner, name.removeprefix("AutoTuner."))
        if name.startswith("AutoTuner.")
        else hasattr(homes.get(name, tuner.module), name)
        for name in names
    }
    return [name for name, there in found.items() if not there]


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    """A folder of our own, in memory if no disk is writable."""
    try:
        folder = tempfile.TemporaryDirectory(prefix="flashinfer-warmup-")
    except OSError as cause:
        if not os.access(SCRATCH_FALLBACK, os.W_OK):
            raise ScratchError(f"no temporary folder: {describe(cause)}") from cause
        folder = tempfile.TemporaryDirectory(prefix="flashinfer-warmup-", dir=SCRATCH_FALLBACK)
    with folder as name:
        yield Path(name)
