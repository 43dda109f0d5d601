"""Runs first in a container, under the image's own Python: says what the image lacks, else becomes `python -m tooling`.

Any Python 3 can read this file, so that one which is too old is told from one that is broken.
"""

import importlib.util
import json
import os
import runpy
import sys

OLDEST = (3, 11)
NEEDED = ("packaging", "torch", "flashinfer")


def main() -> None:
    source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    # A script's own folder stands first, and modules there have names of the standard library's kind.
    sys.path[0] = source
    lacking = _find_lack()
    if lacking:
        print(json.dumps(lacking))  # noqa: T201  # the answer, as a command's own JSON object would be
        return
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = source + os.pathsep + inherited if inherited else source
    runpy.run_module("tooling", run_name="__main__", alter_sys=True)


def _find_lack() -> "dict[str, str]":
    """What is missing, as the answer's fields; empty if nothing is. Imports none of it."""
    if sys.version_info[:2] < OLDEST:
        oldest, found = (".".join(map(str, numbers)) for numbers in (OLDEST, sys.version_info[:3]))
        return {"lacks": "python>=" + oldest, "found": found}
    for name in NEEDED:
        if importlib.util.find_spec(name) is None:
            return {"lacks": name}
    return {}


if __name__ == "__main__":
    main()
