"""The behavioural half of `tooling probe`: runs the release's real tuner and compares it with what was read."""

from __future__ import annotations

import argparse

from tooling.capabilities.behaviour import check_behaviour, compare_behaviour
from tooling.commands.terminal import Terminal
from tooling.edges.behaviour.environment import observe as run_worker
from tooling.edges.behaviour.environment import throw_away
from tooling.edges.pip_config import load_index_settings
from tooling.edges.probing import Probed
from tooling.errors import InputError
from tooling.findings import Finding


def observe(args: argparse.Namespace, probed: Probed, terminal: Terminal) -> tuple[list[Finding], dict[str, object]]:
    """The findings and the `behaviour` field of the JSON.

    Raises:
        InputError: the release has no autotuner, or --from is not a wheel.
        EdgeError: no environment can be made, or the worker does not end.
    """
    facts = probed.derived.facts if probed.derived else {}
    if not facts or facts["autotuner"].value in {None, "none"}:
        raise InputError(f"{probed.release} has no autotuner that could be run", reason="NO_AUTOTUNER")
    requires = facts["requires"].value
    wheel = str(args.source.resolve()) if args.source is not None else str(probed.release)
    if args.source is not None and args.source.suffix != ".whl":
        raise InputError("--behaviour installs a release or a wheel; give one with --from", reason="BAD_ARGUMENTS")
    terminal.say(f"installing {probed.release} apart, to run its tuner …")
    with throw_away(
        wheel,
        torch=args.torch,
        requires=requires if isinstance(requires, tuple) else (),
        settings=load_index_settings(),
    ) as python:
        observed = run_worker(python)
    compared = compare_behaviour(facts, observed)
    for item in compared:
        mark = terminal.paint("as read", "green") if item.agrees else terminal.paint("CONTRADICTS", "red", "bold")
        terminal.say(f"  {item.fact:<28}{mark}")
    fields = {"observed": observed, "compared": [item.as_json() for item in compared]}
    return list(check_behaviour(probed.release, facts, observed)), {"behaviour": fields}
