"""Faults that a worker brings about on purpose, by name: `who:when`, such as `die-1:host_fp16`."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any

NAP_S = 1.0
AT_BARRIER = "at-barrier"
"""A file that rank 0 makes in the run's folder when it waits there; a nap begins no sooner."""
NOBODY = 65534


def before_layer(fault: str, rank: int, folder: Path) -> Callable[[str], None] | None:
    """What happens before a layer runs on that rank: it dies, hangs, raises, or naps while rank 0 waits for it."""
    name, _, label = fault.partition(":")
    kind, _, who = name.partition("-")
    if kind == "builds":
        return building(label)
    if kind not in {"die", "hang", "nap", "raise"} or int(who) != rank:
        return None

    def strike(at: str) -> None:
        if at != label:
            return
        if kind == "die":
            os._exit(9)
        if kind == "hang":
            time.sleep(600)
        if kind == "nap":
            while not (folder / AT_BARRIER).exists():
                time.sleep(0.01)
            time.sleep(NAP_S)
            return
        raise RuntimeError("this layer is broken on purpose")

    return strike


def building(label: str) -> Callable[[str], None]:
    """Before that layer a kernel is built, once in this process: FlashInfer's own spec, whatever `ninja` is."""
    from flashinfer.jit import core

    names = {"sources": [], "extra_cflags": None, "extra_cuda_cflags": None, "extra_ldflags": None}
    spec = getattr(core, "JitSpecNvcc", core.JitSpec)(name="slow", extra_include_dirs=None, **names)
    spec.write_ninja = lambda: None  # it asks where nvcc is
    spec.ninja_path.parent.mkdir(parents=True, exist_ok=True)
    spec.ninja_path.touch()
    waiting = [True]

    def build(at: str) -> None:
        if at == label and waiting:
            waiting.clear()
            spec.build(**({"verbose": False} if "verbose" in signature(spec.build).parameters else {}))

    return build


def inject(fault: str, rank: int) -> None:
    """What is broken around the warm-up: locks that the file system refuses, a rank that goes before the broadcast."""
    if fault == "no-locks":

        def refuse(*_: object) -> None:
            raise OSError(errno.ENOLCK, "No locks available")

        fcntl.flock = refuse
    if fault == "leader-gone" and rank == 0:
        from tooling.warmup.work import Work

        Work.save = lambda self: os._exit(9)
    before_it_begins(fault, rank)
    if fault == "absent" and rank == 1:
        from tooling.warmup.ranks import Group

        Group._collective = lambda *_: time.sleep(600)
    if fault == "slow-writer":
        delay_writing(0.5 if rank == 1 else 0.0)
    if fault == "impatient":
        from tooling.warmup import locks

        locks.LOCK_PATIENCE_S = 0.1
    if fault == "uncovered" or (fault == "other-release" and rank == 1):
        from tooling.warmup import runtime

        found = runtime.load_installed

        def other() -> Any:
            from dataclasses import replace

            return replace(found(), release="0.0.1")

        runtime.load_installed = other


def before_it_begins(fault: str, rank: int) -> None:
    """A rank that never comes to the warm-up, or ranks of another user than the cache's."""
    if fault == "other-user":
        os.seteuid(NOBODY)
    if fault == "away" and rank == 1:
        time.sleep(600)
    if fault == "gone" and rank == 1:
        os._exit(9)


def delay_writing(seconds: float) -> None:
    """A rank that is late with its file, after the others have written theirs."""
    from tooling.warmup.work import Work

    write = Work.write

    def late(self: Work, content: Any, *, merged: bool) -> Any:
        time.sleep(seconds)
        return write(self, content, merged=merged)

    Work.write = late


class FlashInferCuteDslNvFp4LinearKernel:
    """Stands for an engine's class of that name, which is all that the rule looks at."""


class Derived(FlashInferCuteDslNvFp4LinearKernel):
    """The name is anywhere in the bases."""


def give_slow_kernel(model: Any, where: str) -> None:
    """Gives the model a module with `quant_method.kernel` or `scheme.kernel` of that class."""
    import torch

    module = torch.nn.Module()
    setattr(module, where, SimpleNamespace(kernel=Derived()))
    model.add_module("slow", module)
