"""What a bump settles before it writes: the plan, whether the release is blocked or published, what was not asked."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from packaging.version import Version

from tooling.errors import InputError
from tooling.findings import Finding, has_errors
from tooling.pins.plan import BumpPlan, plan_bump
from tooling.pins.refusals import check_target
from tooling.pins.scan import Tree
from tooling.pins.settings import FILE


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A settled bump: the plan with every edit, the findings, lines to say, and further fields of the JSON object."""

    plan: BumpPlan
    findings: tuple[Finding, ...]
    lines: tuple[str, ...] = ()
    fields: Mapping[str, object] = field(default_factory=dict)


def add_release_arguments(parser: argparse.ArgumentParser) -> None:
    """Choices about packages that are elsewhere, and about companions."""
    cubin = parser.add_argument_group("packages that left the public index")
    cubin.add_argument("--add-index", action="store_true", help="add the library's own index to the requirements file")
    cubin.add_argument("--drop-cubin", action="store_true", help="take the cubin pin out; release.toml remembers it")
    cubin.add_argument("--restore-cubin", action="store_true", help="put a dropped cubin pin in again")
    cubin.add_argument("--skip-jit-cache", action="store_true", help="go on without a jit-cache build for this CUDA")
    companions = parser.add_argument_group("companions that the release contradicts").add_mutually_exclusive_group()
    companions.add_argument("--with-companions", action="store_true", help="move them in the same transaction")
    companions.add_argument("--keep-companions", action="store_true", help="leave them as they are")
    parser.add_argument("--allow-fresh", action="store_true", help="take a release that is younger than the cooldown")


def release_flags(args: argparse.Namespace) -> list[str]:
    """The options of `add_release_arguments` that were given, as they are typed."""
    names = ("add_index", "drop_cubin", "restore_cubin", "skip_jit_cache", "with_companions", "keep_companions")
    return [f"--{name.replace('_', '-')}" for name in (*names, "allow_fresh") if getattr(args, name)]


def check_arguments(args: argparse.Namespace) -> None:
    """Raises InputError on arguments that exclude each other."""
    if args.latest == (args.version is not None):
        raise InputError(
            "VERSION: expected a release or --latest, and not both",
            hint="such as `bump 0.6.13` or `bump --latest`",
            reason="BAD_ARGUMENTS",
        )
    if args.drop_cubin and (args.restore_cubin or args.add_index):
        raise InputError("--drop-cubin excludes --restore-cubin and --add-index", reason="BAD_ARGUMENTS")
    for flag in ("latest", "with_companions"):
        if args.offline and getattr(args, flag):
            name = flag.replace("_", "-")
            raise InputError(f"--{name} needs the index, and --offline forbids it", reason="BAD_ARGUMENTS")


def settle(args: argparse.Namespace, tree: Tree, to: Version | None) -> Outcome:
    """The bump to that release, or to the latest one (None). The index is asked only where something would change.

    Raises:
        EdgeError: an index does not answer.
    """
    if to is None:
        from tooling.commands.bump_release import settle_latest  # noqa: PLC0415  # costs half a second

        return settle_latest(args, tree)
    plan, findings = plan_checked(args, tree, to)
    if has_errors(findings) or not _has_more(args, tree, plan):
        return Outcome(plan=plan, findings=tuple(findings))
    from tooling.commands.bump_release import settle_release  # noqa: PLC0415  # costs half a second

    return settle_release(args, tree, plan, findings)


def plan_checked(args: argparse.Namespace, tree: Tree, to: Version) -> tuple[BumpPlan, list[Finding]]:
    """The plan, and what forbids it without asking anybody."""
    plan = plan_bump(tree, to, from_any=args.from_any)
    plan = replace(plan, refusals=(*plan.refusals, *_check_memory(args, tree)))
    findings = [*tree.unread, *plan.refusals]
    if not has_errors(findings):
        is_there = not plan.edits
        findings += check_target(
            to,
            tree.settings,
            allow_prerelease=args.allow_prerelease or is_there,
            allow_blocked=args.allow_blocked or is_there,
        )
    return plan, findings


def _check_memory(args: argparse.Namespace, tree: Tree) -> list[Finding]:
    """A pin that is dropped is remembered in release.toml; without one, it would be lost for good."""
    if tree.settings.is_configured or not args.drop_cubin:
        return []
    from tooling.releases.own_index import droppable  # noqa: PLC0415  # start-up counts

    lost = [site for site in tree.pins if site.package in droppable(tree)]
    if not lost:
        return []
    return [
        Finding(
            check="choice",
            path=lost[0].path,
            line=lost[0].line,
            detail=f"there is no {FILE} to remember what --drop-cubin takes out, so the pin would be lost for good.",
            hint="run `init` first, which writes one",
            reason="NO_MEMORY",
        )
    ]


def unchecked(args: argparse.Namespace, plan: BumpPlan) -> list[str]:
    """What `--offline` left out, in words."""
    if args.offline and plan.edits:
        return [
            f"whether {plan.to} is published and not yanked",
            "whether its companions fit, and the sha256 of its wheels",
        ]
    return []


def _has_more(args: argparse.Namespace, tree: Tree, plan: BumpPlan) -> bool:
    """False where nothing would move, or nothing but the pins would and nobody may be asked."""
    chosen = args.add_index or args.drop_cubin or args.restore_cubin or args.with_companions
    return chosen or (bool(plan.edits) and (not args.offline or bool(tree.settings.releases.sha256)))
