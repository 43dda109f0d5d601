"""Runs `python -m tooling` with a fault at its n-th rename: `python -m tests.commands.kill_at SIGKILL 3 bump 0.6.13`.

Not a test itself. The first rename of a bump is the record's own, the next ones the files', the last the evidence's.
"""

from __future__ import annotations

import runpy
import sys

from tests.edges.files.faults import Fault, Steps

if __name__ == "__main__":
    kind, number, *words = sys.argv[1:]
    sys.argv = ["tooling", *words]
    with Steps(Fault(kind=kind, when="after" if kind.startswith("SIG") else "before"), at=int(number), of="replace"):
        runpy.run_module("tooling", run_name="__main__", alter_sys=True)
