"""Warms FlashInfer up on a GPU in every scenario, cold and warm, and says whether that is what the table promises.

Needs packaging, torch and flashinfer, nothing else. The record goes to evidence/smoke-ARCH.json.

Examples:
  tooling smoke                                     every scenario on the GPUs of this machine
  tooling smoke --jit-cache ~/.cache/smoke-jit      with kernels that an earlier run compiled
  tooling smoke --scenario one-rank two-ranks       some of them: shows something, and is no release's evidence
  tooling smoke --force-persistent                  as a diagnosis: the cache forced on where the table says off
  tooling smoke --image flashinfer-pin:cu130        in a container of that image, with all GPUs
  tooling smoke --root ../vllm --evidence out       against another tree's pins
  tooling smoke --explain evidence/smoke-sm90.json  what a record says, known cause first
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tooling.commands.argument_types import folder
from tooling.commands.recording import add_evidence_argument
from tooling.commands.report import Report
from tooling.commands.smoke_running import explain, run_here
from tooling.commands.terminal import Terminal
from tooling.edges.smoke.runs import DEADLINES
from tooling.errors import InputError
from tooling.smoke.orders import MAX_TOKENS
from tooling.smoke.scenarios import SCENARIOS, choose

MOST_TOKENS = 8192


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--scenario",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME",
        help=f"only these, of {', '.join(SCENARIOS)}",
    )
    parser.add_argument("--force-persistent", action="store_true", help="one more: the cache forced on, a diagnosis")
    parser.add_argument("--jit-cache", type=folder, metavar="DIR", help="keep and reuse compiled kernels there")
    parser.add_argument("--jit-image", metavar="ID", help="the image that the kernels in --jit-cache are compiled in")
    parser.add_argument(
        "--device", nargs="+", action="extend", type=int, default=[], metavar="N", help="only these GPUs, by number"
    )
    parser.add_argument("--ranks", type=int, default=2, metavar="N", help="ranks where there are several (default: 2)")
    parser.add_argument(
        "--max-tokens", type=int, default=MAX_TOKENS, metavar="N", help=f"largest token count (default: {MAX_TOKENS})"
    )
    parser.add_argument(
        "--no-progress-s",
        type=float,
        default=DEADLINES.no_progress_s,
        metavar="S",
        help=f"a silence this long is a hang (default: {DEADLINES.no_progress_s:g})",
    )
    parser.add_argument(
        "--scenario-timeout-s",
        type=float,
        default=DEADLINES.total_s,
        metavar="S",
        help=f"for a scenario, cold and warm together (default: {DEADLINES.total_s:g})",
    )
    parser.add_argument("--image", metavar="TAG", help="in a container of that image, with all GPUs and no network")
    parser.add_argument("--network", metavar="NAME", help="with --image: a network that the container is to have")
    parser.add_argument("--explain", type=Path, metavar="FILE", help="tell the story of a record, and run nothing")
    add_evidence_argument(parser)


def run(args: argparse.Namespace, terminal: Terminal) -> Report:
    """Exit 0: as the table says; 2: bad input; 3: no GPU or no answer; 4: it differs; 130: interrupted."""
    if args.explain is not None:
        return explain(args.explain, terminal)
    _check(args)
    scenarios = choose(args.scenario, force_persistent=args.force_persistent)
    if args.image is None:
        return run_here(args, terminal, scenarios)
    from tooling.commands.smoke_image import plan_inner, run_in_image  # noqa: PLC0415  # an image has no Docker SDK

    return run_in_image(args, terminal, plan_inner(args, scenarios))


def _check(args: argparse.Namespace) -> None:
    for name, value, least, most in (
        ("--ranks", args.ranks, 2, 1024),
        ("--max-tokens", args.max_tokens, 4, MOST_TOKENS),
        ("--no-progress-s", args.no_progress_s, 1, 86_400),
        ("--scenario-timeout-s", args.scenario_timeout_s, 1, 86_400),
    ):
        if not least <= value <= most:
            raise InputError(f"{name} {value}: expected {least} to {most}", reason="BAD_ARGUMENTS")
    if args.jit_image and args.jit_cache is None:
        raise InputError("--jit-image goes with --jit-cache", reason="BAD_ARGUMENTS")
    if args.network and args.image is None:
        raise InputError("--network goes with --image", reason="BAD_ARGUMENTS")
    if args.jit_cache is not None and args.jit_cache.exists() and not args.jit_cache.is_dir():
        raise InputError(f"--jit-cache {args.jit_cache}: found a file, expected a folder", reason="BAD_ARGUMENTS")
