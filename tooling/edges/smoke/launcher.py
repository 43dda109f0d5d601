"""A world that torchrun has made: rank 0 orchestrates, every other rank serves it and runs its part as a worker.

The ranks meet at the launcher's own key-value store. For each run of rank R, rank 0 starts a relay (`relay`), to the
orchestrator a worker like others, which passes order, steps and answer between it and the process that serves rank R.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from typing import Any

from tooling.errors import EdgeError, InputError

PREFIX = "tooling-smoke"
NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_PORT")
MEET_S = 120.0
SILENT_S = 30.0
"""After which one side of a relay takes the other for dead."""
LEAVE_S = 10.0
"""How long rank 0 stays at most for the others to hear that it is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """This process's place in the launcher's world."""

    rank: int
    ranks: int
    local_rank: int
    local_ranks: int
    address: str
    port: int
    agent_store: bool

    @property
    def one_host(self) -> bool:
        return self.ranks == self.local_ranks


def find_launched(environ: Mapping[str, str]) -> Launched | None:
    """The world in those variables; None without a launcher or in a world of one.

    Raises:
        InputError: some of a launcher's variables are missing, no numbers, or of no world that there can be.
    """
    if "RANK" not in environ or "WORLD_SIZE" not in environ:
        return None
    try:
        rank, ranks, local_rank, local_ranks, port = (int(environ[name]) for name in NAMES)
        address = environ["MASTER_ADDR"]
    except (KeyError, ValueError) as cause:
        raise InputError(
            f"RANK and WORLD_SIZE are set, and the launcher's other variables are not as torchrun sets them: {cause}",
            hint="start it with torchrun, or unset RANK and WORLD_SIZE",
            reason="BAD_WORLD",
        ) from cause
    if (rank, ranks) == (0, 1):
        return None
    if not (0 <= rank < ranks and 0 <= local_rank < local_ranks <= ranks and 0 < port < 65536 and address):
        told = ", ".join(f"{name}={environ[name]!r}" for name in (*NAMES, "MASTER_ADDR"))
        raise InputError(
            f"there can be no such place in a launcher's world: {told}",
            hint="start it with torchrun, or unset RANK and WORLD_SIZE",
            reason="BAD_WORLD",
        )
    return Launched(
        rank=rank,
        ranks=ranks,
        local_rank=local_rank,
        local_ranks=local_ranks,
        address=address,
        port=port,
        agent_store=environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True",
    )


def open_store(launched: Launched, *, hosts: bool = False) -> Any:
    """A connection to the launcher's store; `hosts`: this process may have to be its server.

    Raises:
        EdgeError: nobody answers there, or there is no torch.
    """
    try:
        dist = import_module("torch.distributed")
        store = dist.TCPStore(
            launched.address,
            launched.port,
            is_master=hosts and launched.rank == 0 and not launched.agent_store,
            timeout=timedelta(seconds=MEET_S),
            wait_for_workers=False,
        )
    except (ImportError, OSError) as cause:
        raise EdgeError(
            f"torch cannot be imported: {cause}", hint="install requirements/cuda.txt", reason="NO_TORCH"
        ) from cause
    except RuntimeError as cause:
        raise EdgeError(
            f"the launcher's store at {launched.address}:{launched.port} does not answer", reason="NO_STORE"
        ) from cause
    return dist.PrefixStore(PREFIX, store)


def say_done(store: Any, launched: Launched, exit_code: int) -> None:
    """Lets the other ranks end with that code. A store that ends with this process stays until they have heard it."""
    store.set("done", str(exit_code))
    until = time.monotonic() + LEAVE_S
    while not launched.agent_store and store.add("left", 0) < launched.ranks - 1 and time.monotonic() < until:
        time.sleep(0.1)


def hear_done(store: Any) -> int | None:
    """The code to end with, once rank 0 has said it; asked until then.

    Raises:
        EdgeError: the store is gone, and rank 0 with it.
    """
    try:
        if not store.check(["done"]):
            return None
        code = int(store.get("done"))
    except RuntimeError as cause:
        raise EdgeError("rank 0 has gone without a word", reason="NO_STORE") from cause
    with suppress(RuntimeError):
        store.add("left", 1)
    return code
