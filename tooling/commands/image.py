"""Build the CUDA images from the versions file, and prove that the pin is what is inside.

Targets are those of the bake file, `release` and `nightly`; without one, all of them. Every target is built, read out
of the engine without starting it, compared with the pins, and recorded in evidence/image-TARGET.json.

Examples:
  tooling image                                      build and prove both targets
  tooling image release --plan                       what would be built; needs no engine
  tooling image --doctor                             is everything there that a build needs?
  tooling image --verify REGISTRY/NAME:TAG           prove any image that the engine has, also one that others built
  tooling image --index-config pip.conf --ca-bundle ca.pem --apt-mirror URL --base-image NAME
                                                     in a closed network
  tooling image --builder kube --platform linux/amd64,linux/arm64 --push --cache-to type=registry,ref=NAME
                                                     on builders elsewhere; pushed only after the proof
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tooling.commands.image_arguments import add_image_arguments
from tooling.commands.image_build import Job, build_target, push_target
from tooling.commands.image_inputs import (
    ImageInputs,
    check_names,
    is_derived,
    load_inputs,
    load_plan,
    make_options,
)
from tooling.commands.image_preflight import look, raise_problem, say_checks
from tooling.commands.recording import evidence_folder, load_pinned_tree, make_record, save_record
from tooling.commands.report import Report
from tooling.commands.terminal import Terminal
from tooling.edges import docker_engine
from tooling.edges.files.reading import check_root, load_text
from tooling.edges.files.tree import load_optional_text
from tooling.edges.image_layers import load_layers
from tooling.edges.packaged_data import load_library
from tooling.edges.private_files import private_folder
from tooling.errors import ExitCode, InputError, ToolingError
from tooling.evidence import Record, Status, seal
from tooling.findings import Finding, Severity, has_errors
from tooling.images.bake_command import BuildOptions, left_out_packages
from tooling.images.bake_static import evaluate_bake
from tooling.images.build_rules import check_bake, check_dockerfile
from tooling.images.checks import check_image, measured_versions
from tooling.images.facts import ImageFacts, read_facts
from tooling.images.labels import LEFT_OUT_LABEL, PINS_LABEL, REVISION_LABEL, labelled_target
from tooling.images.plan import BuildTarget, check_plan
from tooling.images.preflight import Check
from tooling.redaction import redact_text

_RANKS: dict[Status, int] = {"pass": 0, "not-run": 1, "fail": 2}
"""A release that is bad is worse news than one that nobody could look at."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_image_arguments(parser)


def run(args: argparse.Namespace, terminal: Terminal) -> Report:
    args.root = check_root(args.root)
    inputs = load_inputs(args, terminal)
    if args.verify is not None:
        return _verify(args, inputs, terminal)
    if args.lint:
        return _lint(args, inputs, terminal)
    with private_folder() as folder:
        options, config = make_options(args, folder, terminal)
        targets, source = load_plan(inputs, options, args.targets, terminal)
        findings = check_plan(targets, inputs.tree.variables, also_used_by=inputs.also_used_by)
        if args.plan or has_errors(findings):
            return _plan_report(terminal, targets, source, findings)
        checks = look(args, inputs, options, targets, config)
        if args.doctor:
            seen = list(checks)
            say_checks(terminal, seen)
            bad = any(check.outcome == "problem" for check in seen)
            return Report(command="image", status="fail" if bad else "pass",
                          exit_code=ExitCode.WORLD if bad else ExitCode.OK,
                          fields={"checks": [check.as_json() for check in seen], "records": []})  # fmt: skip
        job = Job(
            inputs=inputs, options=options, folder=folder, log_folder=evidence_folder(args), terminal=terminal
        )  # fmt: skip
        return _Run(args=args, job=job).build_all(targets, checks)


@dataclass(slots=True)
class _Run:
    """A build of several targets, one after the other; every target ends in a record, whatever happens."""

    args: argparse.Namespace
    job: Job
    records: list[Record] = field(default_factory=list)

    def build_all(self, targets: list[BuildTarget], checks: Iterator[Check]) -> Report:
        waiting = list(targets)
        try:
            say_checks(self.job.terminal, raise_problem(checks))
            while waiting:
                self._keep(self._build(waiting[0]))
                waiting.pop(0)
        except ToolingError as error:
            self._not_run(waiting, error.reason)
            return replace(_report(self.records, self.job.terminal), exit_code=error.exit_code, error=error)
        except KeyboardInterrupt:
            self._not_run(waiting, "INTERRUPTED")
            raise
        return _report(self.records, self.job.terminal)

    def _build(self, target: BuildTarget) -> Record:
        """Builds and proves the target, for several platforms one after the other, and pushes them together."""
        self.job.terminal.say(self.job.terminal.paint(f"building {target.name}: {', '.join(target.tags)}", "bold"))
        record = self._build_one(target, "")
        images: dict[str, str | None] = dict.fromkeys(self.job.options.platforms[:1], record.image_id)
        for platform in self.job.options.platforms[1:]:
            if record.status == "fail":
                break
            record = self._build_one(target, platform)
            images[platform] = record.image_id
        if len(images) > 1 and record.image_id is not None:
            record = replace(record, measurements={**record.measurements, "platform_images": images})
        if self.args.push and record.status == "pass":
            record = replace(record, manifest_digest=push_target(self.job, target))
        return record

    def _build_one(self, target: BuildTarget, platform: str) -> Record:
        built = build_target(self.job, target, platform or next(iter(self.job.options.platforms), ""))
        if built.image_id is None:
            self.job.terminal.say_findings(built.findings)
            return self._record(target, built.findings, built.measurements())
        facts = _facts(built.image_id, self.job.terminal)
        wanted = self.job.inputs.expectation(target=target.name, left_out=left_out_packages(target))
        findings = (*check_image(facts, wanted), *self._check_moved())
        self.job.terminal.say_findings(findings)
        measured = {
            **_image_measurements(facts), **built.measurements(), "versions": measured_versions(facts, wanted),
            "overrides": [redact_text(item) for item in self.job.options.overrides],
            "replaced": [redact_text(item) for item in self.job.options.replaced],
        }  # fmt: skip
        return self._record(target, findings, measured, image_id=built.image_id)

    def _check_moved(self) -> list[Finding]:
        """Pins that changed while the build ran: the record names those that it began with."""
        begun = self.job.inputs.tree
        now = load_pinned_tree(self.args.root, versions_file=self.job.inputs.files[1], commit=self.args.commit)
        if now.pins_sha256 == begun.pins_sha256:
            return []
        return [
            Finding(
                check="image-proof",
                severity=Severity.WARNING,
                detail="the pins changed during the build; the record names those that it began with "
                f"({begun.flashinfer_version}).",
                hint="build again for the new ones",
                reason="PINS_MOVED",
            )
        ]

    def _record(
        self, target: BuildTarget, findings: tuple[Finding, ...], measurements: dict[str, object], *,
        image_id: str | None = None,
    ) -> Record:  # fmt: skip
        return make_record(
            self.job.inputs.tree, stage="image", subject=target.name, status="fail" if has_errors(findings) else "pass",
            reason=_first_reason(findings), findings=findings, measurements=measurements, image_id=image_id,
        )  # fmt: skip

    def _keep(self, record: Record) -> None:
        self.job.terminal.say(f"recorded in {save_record(self.args, record)}")
        self.records.append(record)

    def _not_run(self, targets: list[BuildTarget], reason: str) -> None:
        for target in targets:
            record = make_record(
                self.job.inputs.tree, stage="image", subject=target.name, status="not-run", reason=reason
            )
            save_record(self.args, record)
            self.records.append(record)


def report_error(error: ToolingError) -> Report:
    """An error before any record was written."""
    return Report(command="image", status="error", exit_code=error.exit_code, error=error, fields={"records": []})


def _verify(args: argparse.Namespace, inputs: ImageInputs, terminal: Terminal) -> Report:
    """The proof alone. The target is the one named, else what the image's label says."""
    if len(args.targets) > 1:
        raise InputError("--verify takes one TARGET at most, whose rules hold for the image", reason="BAD_ARGUMENTS")
    if args.targets:
        check_names(args.targets, load_plan(inputs, BuildOptions(), args.targets, terminal)[0], path=inputs.files[0])
    facts = _facts(args.verify, terminal)
    labels = facts.config.labels
    target = args.targets[0] if args.targets else labelled_target(labels)
    ours = PINS_LABEL in labels
    wanted = inputs.expectation(target=target, left_out=frozenset(labels.get(LEFT_OUT_LABEL, "").split()), ours=ours)
    findings = tuple(check_image(facts, wanted))
    terminal.say_findings(findings)
    subject = target
    if not args.targets and is_derived(evidence_folder(args), target, facts.config):
        subject = None  # it only carries the labels of the image below it, whose record stays
        terminal.say(f"it was built from the image that is recorded as {target}, and is recorded as verified")
    record = make_record(
        inputs.tree, stage="image", subject=subject or "verified", status="fail" if has_errors(findings) else "pass",
        reason=_first_reason(findings), findings=findings, image_id=facts.config.image_id,
        measurements={
            **_image_measurements(facts), "verified": args.verify, "versions": measured_versions(facts, wanted),
            "revision": labels.get(REVISION_LABEL),
        },
    )  # fmt: skip
    save_record(args, record)
    return _report([record], terminal)


def _lint(args: argparse.Namespace, inputs: ImageInputs, terminal: Terminal) -> Report:
    """Our own rules, on our own reading of the bake file; no engine and no bake is asked."""
    variables, library = inputs.tree.variables, load_library()
    bake = load_text(inputs.root, inputs.files[0])
    targets = evaluate_bake(bake.text, variables, path=bake.path, environ={})
    check_names(args.targets, targets, path=bake.path)
    sources = [source for target in targets if (source := load_optional_text(inputs.root, target.dockerfile))]
    findings = check_bake(targets, path=bake.path, dockerfiles=[source.path for source in sources], variables=variables)
    for source in sources:
        findings += check_dockerfile(source, variables=variables, version_variable=library.variable)
    terminal.say_findings(findings)
    failed = has_errors(findings)
    return Report(
        command="image", status="fail" if failed else "pass", exit_code=ExitCode.FINDINGS if failed else ExitCode.OK,
        findings=tuple(findings), fields={"records": []},
    )  # fmt: skip


def _facts(name: str, terminal: Terminal) -> ImageFacts:
    terminal.say(
        f"reading {name[:19] if name.startswith('sha256:') else name} out of the engine; nothing of it is started"
    )
    with docker_engine.connect() as client:
        config = docker_engine.load_config(client, name)
        return read_facts(config, load_layers(client, config.image_id))


def _image_measurements(facts: ImageFacts) -> dict[str, object]:
    return {
        "size_bytes": facts.config.size_bytes,
        "layers": list(facts.config.layer_digests),
        "tags": list(facts.config.tags),
        "system": facts.system,
        "python": facts.python,
        "nvcc": facts.nvcc,
        "user": facts.user.name,
    }


def _plan_report(terminal: Terminal, targets: list[BuildTarget], source: str, findings: list[Finding]) -> Report:
    if source == "static":
        terminal.say("bake does not answer here; this is our own reading of the bake file (static)")
    for target in targets:
        terminal.say(terminal.paint(target.name, "bold"))
        terminal.say(f"  dockerfile  {target.dockerfile}" + (f", stage {target.stage}" if target.stage else ""))
        for tag in target.tags:
            terminal.say(f"  tag         {tag}")
        for name, value in sorted(target.args.items()):
            terminal.say(f"  arg         {name}={value}")
    terminal.say_findings(findings)
    failed = has_errors(findings)
    return Report(
        command="image", status="fail" if failed else "pass", exit_code=ExitCode.FINDINGS if failed else ExitCode.OK,
        findings=tuple(findings),
        fields={"plan": [target.as_json() for target in targets], "plan_source": source, "records": []},
    )  # fmt: skip


def _report(records: list[Record], terminal: Terminal) -> Report:
    worst = max((record.status for record in records), key=_RANKS.__getitem__, default="pass")
    for record in records:
        colour = "green" if record.status == "pass" else "red"
        terminal.say(
            f"{record.subject}: {terminal.paint(record.status, colour, 'bold')} {record.image_id or ''}".rstrip()
        )
    return Report(
        command="image", status=worst, exit_code=ExitCode.OK if worst == "pass" else ExitCode.FINDINGS,
        findings=tuple(finding for record in records for finding in record.findings),
        fields={"records": [seal(record) for record in records]},
    )  # fmt: skip


def _first_reason(findings: tuple[Finding, ...]) -> str | None:
    return next((finding.reason for finding in findings if finding.severity is Severity.ERROR), None)
