"""A world that torchrun has made: rank 0 orchestrates, every other rank serves it and runs its part as a worker.

The ranks meet at the launcher's own key-value store. For each run of rank R, rank 0 starts a relay (`relay`), to the
orchestrator a worker like others, which passes order, steps and answer between it and the process that serves rank R.
"""

from __future__ import annotations

from collections.abc import Mapping
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
        InputError: some of a launcher's variables are missing or no numbers.
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
    if ranks == 1:
        return None
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
    except ImportError as cause:
        raise EdgeError(
            f"torch cannot be imported: {cause}", hint="install requirements/cuda.txt", reason="NO_TORCH"
        ) from cause
    except RuntimeError as cause:
        raise EdgeError(
            f"the launcher's store at {launched.address}:{launched.port} does not answer", reason="NO_STORE"
        ) from cause
    return dist.PrefixStore(PREFIX, store)


def say_done(store: Any, exit_code: int) -> None:
    """Lets the other ranks end with that code."""
    store.set("done", str(exit_code))
