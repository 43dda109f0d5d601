"""One rank of one run, a process of its own: `python -m tooling.edges.smoke.worker ORDER`.

It imports, says that it is ready, waits for the word to go, and at the end puts its answer where its order says, whole
or not at all. Steps go to what was stdout, everything else to `ORDER.log`.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tooling.edges.files.durable import replace_file
from tooling.edges.smoke.audit import Audit
from tooling.edges.smoke.channel import Channel, open_channel
from tooling.edges.smoke.witness import Witness
from tooling.smoke.observations import RankSeen
from tooling.smoke.orders import Order

if TYPE_CHECKING:
    from tooling.edges.smoke.rank import Work


def main(path: str) -> None:
    order = Order.from_json(json.loads(Path(path).read_text()))
    channel = open_channel(f"{path}.log")
    channel.listen()
    audit = Audit(order.cache_root)
    audit.install()
    channel.at("import")
    body = _answer(order, channel, audit)
    replace_file(Path(order.answer), json.dumps(body).encode())
    channel.at("end")
    os._exit(0)  # torch's own goodbye waits for peers that may be gone


def _answer(order: Order, channel: Channel, audit: Audit) -> dict[str, Any]:
    """The rank's answer: what it saw, or what it raised with what was seen until then."""
    witness, work = Witness(), None
    try:
        for name in ("torch", "torch.distributed", "flashinfer"):
            import_module(name)
        witness.install()
        work = import_module("tooling.edges.smoke.rank").Work(order, channel, witness)
        if order.rehearsal:
            import_module(order.rehearsal["module"]).prepare(order, channel)
        channel.at("ready")
        channel.wait_for_go()
        work.conduct()
        return _body(order, channel, witness, audit, work)
    except Exception as error:  # noqa: BLE001  # what a rank ends with is its answer
        traceback.print_exc()
        reason = getattr(error, "reason", "")
        why = f"{type(error).__name__}{f' [{reason}]' if reason else ''}: {error}"
        return _body(order, channel, witness, audit, work, why=why)


def _body(
    order: Order, channel: Channel, witness: Witness, audit: Audit, work: Work | None, *, why: str = ""
) -> dict[str, Any]:
    found = work.found if work else {}
    seen = RankSeen(
        rank=order.rank,
        end="error" if why else "ended",
        step=channel.step,
        why=why,
        exit_status=0,
        passed=witness.passed,
        out_of_memory=tuple(witness.lines.out_of_memory),
        skipped_tactics=tuple(witness.lines.skipped_tactics),
        downloads=tuple(audit.downloads),
        **{"jit_s": witness.jit_s, "tuning_s": witness.tuning_s, **found},
    )
    extra = work.extra if work else {}
    return {"seen": seen.as_json(), "opened": sorted(audit.opened), "profiles": channel.profiles, **extra}


if __name__ == "__main__":
    main(sys.argv[1])
