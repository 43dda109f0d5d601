"""Settles a bump with the indexes' answers: packages, companions, who serves what, and the whole transaction."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

from packaging.version import Version

from tooling.commands.bump_checks import Outcome, plan_checked
from tooling.commands.bump_index import ask, make_client
from tooling.commands.progress import waiting
from tooling.edges import clock
from tooling.edges.files.tree import load_optional_text
from tooling.edges.index import IndexClient
from tooling.errors import InputError
from tooling.findings import Finding, Severity, has_errors
from tooling.pins.plan import BumpPlan
from tooling.pins.scan import Tree
from tooling.pins.settings import FILE
from tooling.releases.assessment import Answers, check_going_back, check_packages, describe_packages
from tooling.releases.companions import check_companions
from tooling.releases.latest import candidates, newest_final
from tooling.releases.serving import find_serving
from tooling.releases.transaction import Choices, Transaction, plan_transaction


def read_choices(args: argparse.Namespace) -> Choices:
    return Choices(
        add_index=args.add_index,
        drop=args.drop_cubin,
        restore=args.restore_cubin,
        with_companions=args.with_companions,
    )


def settle_release(
    args: argparse.Namespace,
    tree: Tree,
    plan: BumpPlan,
    findings: Sequence[Finding],
    client: IndexClient | None = None,
) -> Outcome:
    """One release, asked about unless `--offline`, with every edit that the choices bring."""
    choices = read_choices(args)
    if args.offline:
        return _combine(args, tree, plan, [*findings], None)
    with waiting(f"asking the package index about {plan.to}"):
        client = client or make_client(tree, choices)
        answers = ask(client, tree, plan.to, choices, skip_cuda=args.skip_jit_cache, briefly=args.latest)
    found = [*findings, *_judge(args, tree, plan, answers)]
    if args.latest and has_errors(found):
        return Outcome(plan=plan, findings=tuple(found))
    return _combine(args, tree, plan, found, answers)


def settle_latest(args: argparse.Namespace, tree: Tree) -> Outcome:
    """The newest final that can be installed as chosen; the newer ones that cannot are said, each with its reason."""
    choices = read_choices(args)
    client = make_client(tree, choices)
    with waiting("asking the package index for releases"):
        pages = client.fetch_project(tree.library.main_package)
    newest, skipped = newest_final(pages), list[tuple[Version, str]]()
    for version in candidates(pages, tree.settings, current=tree.truth):
        plan, findings = plan_checked(args, tree, version)
        if plan.refusals and has_errors(plan.refusals):
            return Outcome(plan=plan, findings=tuple(findings))
        outcome = settle_release(args, tree, plan, findings, client)
        if version == tree.truth or not has_errors(outcome.findings):
            return _latest(tree, outcome, skipped, newest)
        skipped.append((version, _first_error(outcome.findings)))
    raise InputError(
        f"no release of {tree.library.main_package} from {tree.truth} on can be installed; the newest is {newest}",
        hint=" ".join(_passed_over(skipped)),
        reason="NO_RELEASE",
    )


def _latest(tree: Tree, outcome: Outcome, skipped: Sequence[tuple[Version, str]], newest: Version | None) -> Outcome:
    """Where the tree holds the best release already, nothing is judged anew."""
    lines = tuple(_passed_over(skipped))
    fields = {
        **outcome.fields,
        "newest": None if newest is None else str(newest),
        "passed_over": [{"release": str(version), "why": why} for version, why in skipped],
    }
    if outcome.plan.to == tree.truth and not outcome.plan.moves_anything:
        plan = replace(outcome.plan, edits=())
        return Outcome(plan=plan, findings=tuple(tree.unread), lines=lines, fields=fields)
    return replace(outcome, lines=(*lines, *outcome.lines), fields=fields)


def _passed_over(skipped: Sequence[tuple[Version, str]]) -> list[str]:
    """One line for neighbours that lack the same, with the reason of the newest of them."""
    groups: list[list[tuple[Version, str]]] = []
    for version, why in skipped:
        same = groups and why.replace(str(version), "") == groups[-1][0][1].replace(str(groups[-1][0][0]), "")
        if same:
            groups[-1].append((version, why))
        else:
            groups.append([(version, why)])
    return [f"passed over {', '.join(str(version) for version, _ in group)}: {group[0][1]}" for group in groups]


def _judge(args: argparse.Namespace, tree: Tree, plan: BumpPlan, answers: Answers) -> list[Finding]:
    release = f"{tree.library.main_package} {plan.to}"
    findings = list(
        check_packages(
            tree,
            plan.to,
            answers,
            now=clock.now(),
            index_chosen=args.add_index,
            fresh_allowed=args.allow_fresh,
        )
    )
    if answers.contradictions is None:
        findings.append(
            Finding(
                check="companion",
                severity=Severity.WARNING,
                detail=f"{release} has no wheel to read its requirements from: companions were not compared.",
            )
        )
    findings += check_companions(
        release, answers.contradictions or (), moving=args.with_companions, keeping=args.keep_companions
    )
    return [*findings, *check_going_back(tree, plan.to, answers)]


def _combine(
    args: argparse.Namespace, tree: Tree, plan: BumpPlan, findings: Sequence[Finding], answers: Answers | None
) -> Outcome:
    done = plan_transaction(
        tree,
        plan,
        read_choices(args),
        settings_text=load_optional_text(args.root, FILE),
        contradictions=(answers.contradictions or ()) if answers else (),
        sha256=answers.sha256(plan.to) if answers else None,
    )
    return Outcome(
        plan=done.plan,
        findings=(*findings, *done.refusals),
        lines=_lines(plan.to, answers, done),
        fields={**_choice_fields(done), **(_answer_fields(plan.to, answers) if answers else {})},
    )


def _lines(version: Version, answers: Answers | None, done: Transaction) -> tuple[str, ...]:
    """What people read: who serves which package, and what else is done."""
    served = [] if answers is None else [find_serving(name, version, pages) for name, pages in answers.pages.items()]
    return (
        *(serving.render() for serving in served if serving.pip),
        *(f"{pin.path}: {pin.package} is taken out (--restore-cubin puts it in again)" for pin in done.dropped),
        *(f"{pin.path}: {pin.package} is put in again" for pin in done.restored),
        *(f"{path}: the library's own index is added" for path in done.index_added),
        *(f"{item.path}: {item.package} moves from {item.was} to {item.now}" for item in done.companions),
    )


def _choice_fields(done: Transaction) -> dict[str, object]:
    return {
        "dropped": [pin.package for pin in done.dropped],
        "restored": [pin.package for pin in done.restored],
        "index_added": list(done.index_added),
        "companions_moved": [
            {"package": item.package, "path": item.path, "before": item.was, "after": item.now}
            for item in done.companions
        ],
    }


def _answer_fields(version: Version, answers: Answers) -> dict[str, object]:
    return {
        "packages": describe_packages(version, answers),
        "companions": [item.as_json() for item in answers.contradictions or ()],
        "sha256": answers.sha256(version),
    }


def _first_error(findings: Sequence[Finding]) -> str:
    return next((item.detail for item in findings if item.severity is Severity.ERROR), "")
