"""`tooling smoke --image TAG`: the smoke in a container of a built image with all GPUs, its evidence brought out."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from tooling.commands.recording import PinnedTree, evidence_folder, load_pinned_tree, make_record, save_record
from tooling.commands.report import Report
from tooling.commands.smoke_stage import NO_ARCH
from tooling.commands.terminal import Terminal
from tooling.edges import docker_engine, smoke_archive
from tooling.edges.environment import load_environment
from tooling.edges.evidence_files import prepare_folder
from tooling.edges.files.reading import check_root, load_bytes
from tooling.edges.private_files import private_folder
from tooling.edges.serving.signals import ending_politely
from tooling.edges.smoke.launcher import find_launched
from tooling.edges.smoke_container import Ended, FoundImage, RefusedError, SmokeContainer, look_up
from tooling.errors import EdgeError, ExitCode, InputError, ToolingError
from tooling.evidence import Record, Status, parse_record, seal
from tooling.findings import Finding
from tooling.images.image_names import is_image_name
from tooling.smoke import container_plan as plan
from tooling.smoke.container_errors import Cause, lacks, read_cuda_message, read_death, read_init_message
from tooling.smoke.scenarios import Scenario

if TYPE_CHECKING:
    from docker import DockerClient

NO_GPU = "NO_GPU"
"""The run's own word inside the container where CUDA shows it no device; the log may know why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerRun:
    """What the run inside is asked: the options passed on, how long all of it may take, and its end once it must."""

    options: Sequence[str]
    limit_s: float
    stop_s: int = plan.STOP_S
    network: str = "none"
    jit_cache: Path | None = None


def plan_inner(args: argparse.Namespace, scenarios: Sequence[Scenario]) -> InnerRun:
    """The command line's own options again, but those that mean something else inside. Every scenario may use its time.

    What the layouts need is prepared by runs of their own, for one rank and for several.
    """
    given = {
        "--scenario": args.scenario,
        "--device": args.device,
        "--ranks": [args.ranks],
        "--max-tokens": [args.max_tokens],
        "--no-progress-s": [args.no_progress_s],
        "--scenario-timeout-s": [args.scenario_timeout_s],
    }
    words = [word for name, values in given.items() if values for word in (name, *map(str, values))]
    return InnerRun(
        options=[*words, "--force-persistent"] if args.force_persistent else words,
        limit_s=plan.START_S + args.scenario_timeout_s * (len(scenarios) + 2),
        network=args.network or "none",
        jit_cache=args.jit_cache,
    )


def run_in_image(args: argparse.Namespace, terminal: Terminal, inner: InnerRun) -> Report:
    """The report of the run inside, with its records completed; a record says so if there was none.

    Raises:
        InputError: no root, or `--image` is no name of an image; nothing is written.
        EdgeError: the evidence folder cannot be written.
    """
    args.root = check_root(args.root)
    if not is_image_name(args.image):
        raise InputError(f"--image {args.image!r}: no image can have that name", reason="BAD_ARGUMENTS")
    if find_launched(load_environment()) is not None:
        raise InputError(
            "--image under torchrun: every rank would start a container of its own",
            hint="without torchrun, the run in the container starts its ranks itself",
            reason="BAD_ARGUMENTS",
        )
    tree = load_pinned_tree(args.root, commit=args.commit)
    prepare_folder(evidence_folder(args))
    stage = _Stage(args=args, terminal=terminal, tree=tree, inner=inner)
    try:
        with ending_politely():
            return stage.run()
    except KeyboardInterrupt:
        stage.record("not-run", "INTERRUPTED")
        raise


class _Stage:
    """One use of an image. `image` is known once the engine was asked, `records` once the container's came out."""

    def __init__(self, *, args: argparse.Namespace, terminal: Terminal, tree: PinnedTree, inner: InnerRun) -> None:
        self._args, self._terminal, self._tree, self._inner = args, terminal, tree, inner
        self._image: FoundImage | None = None
        self._records: list[Record] = []

    def run(self) -> Report:
        try:
            return self._conduct()
        except RefusedError as refused:
            return self._refuse(refused.cause)
        except EdgeError as error:
            return self._not_run(error, ExitCode.WORLD)

    def _conduct(self) -> Report:
        with docker_engine.connect() as client:
            image = self._image = look_up(client, self._args.image)
            self._terminal.say(f"smoke in a container of {self._args.image} ({image.image_id[:19]})")
            for python in plan.PYTHONS:
                ended = self._try(client, image.image_id, python)
                not_begun = None if ended.stdout else read_init_message(ended.log, exit_status=ended.exit_status)
                if not_begun is None:
                    return self._conclude(ended)
                if not_begun != lacks("python"):
                    return self._refuse(not_begun)
        return self._refuse(lacks("python"))

    def _try(self, client: DockerClient, image_id: str, python: str) -> Ended:
        """The run under that Python, in a container of its own."""
        jit_image = None if self._inner.jit_cache is None else image_id
        command = plan.plan_command(python, self._inner.options, jit_image=jit_image)
        with SmokeContainer(
            client, image_id, command, network=self._inner.network, environ=load_environment()
        ) as container:
            return self._follow(container)

    def _follow(self, container: SmokeContainer) -> Ended:
        """Runs it; whatever comes in between, what it wrote is brought out before it is removed."""
        jit = self._inner.jit_cache
        packers = [
            smoke_archive.source_files(plan.SOURCE),
            smoke_archive.texts(plan.TREE, self._load_pins()),
            smoke_archive.empty_folder(plan.EVIDENCE),
            *([smoke_archive.folder_files(plan.JIT, jit)] if jit is not None else []),
        ]
        with smoke_archive.packed(*packers) as archive:
            container.put(archive)
        try:
            ended = container.run(self._terminal.say, limit_s=self._inner.limit_s)
        except KeyboardInterrupt:
            container.stop(self._inner.stop_s)
            self._bring_out(container)
            raise
        if ended.exit_status is None:
            container.stop(self._inner.stop_s)
        self._bring_out(container)
        if jit is not None and ended.stdout:
            smoke_archive.unpack(container.take(plan.JIT), jit, keep=lambda _: True)
        return ended

    def _bring_out(self, container: SmokeContainer) -> None:
        """The evidence of the run inside; its records are completed with what only we know, and then written."""
        target = evidence_folder(self._args)
        with private_folder() as folder:
            for path in smoke_archive.unpack(container.take(plan.EVIDENCE), folder, keep=_is_evidence):
                if path.suffix == ".json" and path.parent == folder:
                    self._keep(self._complete(path))
                else:
                    smoke_archive.copy_out(path, target / path.relative_to(folder))

    def _complete(self, path: Path) -> Record:
        image, revision = self._image, self._tree.revision
        try:
            record = parse_record(path.read_text(encoding="utf-8"))
        except (InputError, UnicodeDecodeError) as cause:
            raise EdgeError(f"{path.name}: the container's record is broken: {cause}", reason="BAD_EVIDENCE") from cause
        if record.pins_sha256 != self._tree.pins_sha256:
            raise EdgeError("the pins changed while they were brought in", hint="try again", reason="PINS_MOVED")
        return replace(
            record,
            commit=revision.commit,
            dirty=revision.dirty,
            image_id=None if image is None else image.image_id,
            manifest_digest=None if image is None else image.manifest_digest,
        )

    def _keep(self, record: Record) -> None:
        save_record(self._args, record)
        self._records = [*(one for one in self._records if one.file_name != record.file_name), record]

    def _load_pins(self) -> dict[str, bytes]:
        root: Path = self._args.root
        listed = sorted(path.relative_to(root).as_posix() for path in (root / plan.PINS_FOLDER).glob("*.txt"))
        names = dict.fromkeys([*plan.PINS, *([own] if (own := self._tree.versions_file) else []), *listed])
        return {name: load_bytes(root, name) for name in names if (root / name).is_file()}

    def _conclude(self, ended: Ended) -> Report:
        answer = plan.parse_answer(ended.stdout, jit_folder=str(self._inner.jit_cache or plan.JIT))
        if answer is not None and answer.lacks:
            return self._refuse(lacks(answer.lacks, answer.found))
        if answer is None:
            return self._refuse(
                read_death(exit_status=ended.exit_status, out_of_memory=ended.out_of_memory, log=ended.log)
            )
        if answer.error is not None and answer.error.reason == NO_GPU:
            cause = read_cuda_message(f"{answer.error.message}\n{ended.log}")
            if cause is not None:
                return self._refuse(cause)
        if not self._records and answer.exit_code is not ExitCode.INPUT:
            error = answer.error or EdgeError("the run in the container left no record", reason="NO_EVIDENCE")
            return self._not_run(error, answer.exit_code if answer.error else ExitCode.WORLD)
        findings = [Finding.from_json(finding) for finding in answer.findings]
        return self._report(answer.status, answer.exit_code, findings, answer.error, fields=answer.fields)

    def _refuse(self, cause: Cause) -> Report:
        sentence = f"--image {self._args.image}: {cause.sentence}"
        if cause.exit_code is ExitCode.WORLD:
            return self._not_run(EdgeError(sentence, hint=cause.hint, reason=cause.reason), ExitCode.WORLD)
        finding = Finding(check="smoke-image", detail=sentence, hint=cause.hint, reason=cause.reason)
        self._terminal.say_findings([finding])
        self.record("fail", cause.reason, [finding])
        return self._report("fail", cause.exit_code, [finding])

    def _not_run(self, error: ToolingError, exit_code: ExitCode) -> Report:
        self.record("not-run", error.reason)
        return self._report("not-run", exit_code, error=error)

    def record(self, status: Status, reason: str, findings: Sequence[Finding] = ()) -> None:
        """What came out of the container stays, but nothing in it may pass; without any, a record of our own."""
        for record in [one for one in self._records if one.status != "fail"]:
            self._keep(replace(record, status=status, reason=reason, findings=(*record.findings, *findings)))
        if self._records:
            return
        image = self._image
        self._keep(
            make_record(
                self._tree,
                stage="smoke",
                subject=NO_ARCH,
                status=status,
                reason=reason,
                findings=findings,
                image_id=None if image is None else image.image_id,
                manifest_digest=None if image is None else image.manifest_digest,
            )
        )

    def _report(
        self,
        status: str,
        exit_code: ExitCode,
        findings: Sequence[Finding] = (),
        error: ToolingError | None = None,
        *,
        fields: Mapping[str, object] | None = None,
    ) -> Report:
        for record in self._records:
            self._terminal.say(f"recorded in {evidence_folder(self._args) / record.file_name}")
        return Report(
            command="smoke",
            status=status,
            exit_code=exit_code,
            findings=tuple(findings),
            error=error,
            fields={**(fields or {}), "records": [seal(record) for record in self._records]},
        )


def _is_evidence(name: PurePosixPath) -> bool:
    """What a smoke writes, of all that the container left: another stage's record is never replaced."""
    return name.parts[0].startswith("smoke")
