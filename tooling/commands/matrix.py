"""Say what CI builds and on which GPUs it runs, as JSON for GitHub's fromJSON.

Images are the bake file's targets that the channel asks for, on the platforms of release.toml; GPUs are the
architectures that the channel asks for. Each entry has the labels of its runner.

Examples:
  tooling matrix --channel release                       all matrices, one object
  tooling matrix --channel release --kind gpu            one matrix, as `strategy: matrix:` takes it
  tooling matrix --channel release --github              into $GITHUB_OUTPUT, one output a matrix
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

from tooling.commands.recording import load_pinned_tree
from tooling.commands.report import Report
from tooling.commands.terminal import Terminal
from tooling.edges.environment import load_environment
from tooling.edges.files.reading import check_root, load_text
from tooling.edges.files.tree import load_settings
from tooling.errors import EdgeError, ExitCode, InputError
from tooling.gate.matrix import KINDS, parse_runners, plan_build, plan_gpu, plan_gsm8k, plan_publish
from tooling.gate.policy import Channel
from tooling.gate.policy_text import parse_policy
from tooling.images.bake_static import evaluate_bake
from tooling.images.plan import BuildTarget
from tooling.pins.settings import FILE

BAKE_FILE = "docker/docker-bake.hcl"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--channel", metavar="NAME", help="the channel of release.toml (default: its own default)")
    parser.add_argument("--kind", choices=KINDS, help="only this matrix (default: all, by name)")
    parser.add_argument("--platform", action="append", default=[], metavar="NAME",
                        help="only this platform of release.toml; may be repeated")  # fmt: skip
    parser.add_argument("--bake-file", default=BAKE_FILE, metavar="FILE", help="default: %(default)s")
    parser.add_argument("--github", action="store_true", help="write outputs of these names to $GITHUB_OUTPUT")


def run(args: argparse.Namespace, terminal: Terminal) -> Report:
    root = args.root = check_root(args.root)
    settings, text = load_settings(root), load_text(root, FILE).text
    channel = parse_policy(text, path=FILE).channel(args.channel, path=FILE)
    runners = parse_runners(text, path=FILE)
    platforms = _platforms(args.platform, settings.releases.platforms)
    targets = _targets(root, args, channel, settings.versions_file)
    jobs = {
        "build": plan_build(channel, targets, platforms, runners),
        "gpu": plan_gpu(channel, runners),
        "gsm8k": plan_gsm8k(channel, runners),
        "publish": plan_publish(channel, targets, platforms, several=len(settings.releases.platforms) > 1),
    }
    matrices = {kind: {"include": jobs[kind]} for kind in KINDS if args.kind in {None, kind}}
    if args.github:
        _write_outputs(matrices)
    terminal.say(_compact(matrices if args.kind is None else matrices[args.kind]))
    return Report(command="matrix", status="shown", exit_code=ExitCode.OK,
                  fields={"channel": channel.name, **matrices})  # fmt: skip


def _targets(root: Path, args: argparse.Namespace, channel: Channel, versions_file: str | None) -> list[BuildTarget]:
    """The bake file's default group by our own reading, which needs no engine; none where no image is asked for."""
    if not channel.image.targets and not any(title.startswith("image ") for title in channel.informs):
        return []
    tree = load_pinned_tree(root, versions_file=versions_file)
    bake = load_text(root, args.bake_file)
    return evaluate_bake(bake.text, tree.variables, path=bake.path, environ={})


def _platforms(asked: list[str], known: tuple[str, ...]) -> list[str]:
    unknown = [name for name in asked if name not in known]
    if unknown:
        raise InputError(
            f"--platform {', '.join(map(repr, unknown))}: {FILE} builds for {', '.join(known)}",
            hint="add it to [releases] platforms",
            reason="NO_PLATFORM",
        )
    return [name for name in known if not asked or name in asked]


def _write_outputs(matrices: Mapping[str, object]) -> None:
    """One line a matrix; JSON on one line can hold no second output."""
    path = load_environment().get("GITHUB_OUTPUT")
    if not path:
        raise InputError(
            "--github: GITHUB_OUTPUT is not set",
            hint="it is set inside a step of a workflow",
            reason="NO_GITHUB_OUTPUT",
        )
    lines = "".join(f"{kind}={_compact(matrix)}\n" for kind, matrix in matrices.items())
    try:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(lines)
    except OSError as cause:
        raise EdgeError(f"{path}: cannot be written: {cause.strerror}", reason="OUTPUT_FAILED") from cause


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
