"""`python -m tests.smoke.workers.drive JSON WORDS…`: the command without a GPU, under an interpreter with FlashInfer.

The JSON has `table` and `rehearsal`, which no flag of the command can give. Prints the command's JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from tooling.commands import smoke
from tooling.commands.report import render_json
from tooling.commands.smoke_running import run_here
from tooling.commands.terminal import make_terminal
from tooling.smoke.orders import Rehearsal
from tooling.smoke.scenarios import choose


def main(options: str, words: list[str]) -> int:
    given = json.loads(options)
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, default=Path())
    smoke.add_arguments(parser)
    args = parser.parse_args(words)
    report = run_here(
        args,
        make_terminal(sys.stderr, os.environ),
        choose(args.scenario, force_persistent=args.force_persistent),
        rehearsal=Rehearsal(**given["rehearsal"]),
        table=Path(given["table"]) if given.get("table") else None,
    )
    print(render_json(report))
    return int(report.exit_code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
