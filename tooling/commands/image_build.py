"""One target's build: labels, the run with its progress, the image that came out, the push once it is proved."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tooling.commands.image_inputs import ImageInputs
from tooling.commands.terminal import Terminal
from tooling.edges import buildx, docker_engine, git
from tooling.edges.files.durable import make_private_folder
from tooling.edges.files.reading import load_text
from tooling.edges.packaged_data import load_library
from tooling.errors import EdgeError
from tooling.findings import Finding
from tooling.images.bake_command import BuildOptions, build_command, left_out_packages
from tooling.images.build_log import Steps, classify_failure, parse_steps
from tooling.images.labels import make_labels
from tooling.images.plan import BuildTarget, base_images
from tooling.releases.addresses import split_credentials

_SHOWN = ("[", "DONE", "CACHED", "ERROR", "exporting", "naming")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What all builds of one call share. `folder` is private and holds secrets and what builds report."""

    inputs: ImageInputs
    options: BuildOptions
    folder: Path
    log_folder: Path
    terminal: Terminal


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A build that ended: the image, or why there is none."""

    image_id: str | None
    findings: tuple[Finding, ...]
    seconds: float
    steps: Steps
    log: Path

    def measurements(self) -> dict[str, object]:
        return {
            "build_seconds": round(self.seconds, 1),
            "steps_cached": self.steps.cached,
            "steps_run": self.steps.run,
            "step_seconds": self.steps.seconds,
            "log": self.log.name,
        }


def build_target(job: Job, target: BuildTarget, platform: str = "") -> Built:
    """Builds and loads the image for one platform; empty is the builder's own.

    Raises:
        EdgeError: the world failed (disk, engine, network); a build that cannot succeed is a finding instead.
        KeyboardInterrupt: after the build was cancelled and its names were given back to the images that had them.
    """
    log = job.log_folder / f"image-{target.name}.log"
    make_private_folder(log.parent)
    words = build_command(
        target, job.options, files=job.inputs.files, variables=job.inputs.tree.variables, labels=_labels(job, target),
        metadata_file=job.folder / "metadata.json", platforms=[platform] if platform else (),
    )  # fmt: skip
    with docker_engine.connect() as client:
        before = {tag: docker_engine.find_image(client, tag) for tag in target.tags}
    started = time.monotonic()
    try:
        status = _run(words, job, log)
    except KeyboardInterrupt:
        with docker_engine.connect() as client:
            for tag in docker_engine.restore_tags(client, before):
                job.terminal.say(f"{tag} was given back to the image that had it before")
        raise
    seconds = time.monotonic() - started
    lines = log.read_text(encoding="utf-8").splitlines()
    return Built(
        image_id=_image_id(job.folder, target) if status == 0 else None,
        findings=() if status == 0 else (_failure(lines, log),),
        seconds=seconds,
        steps=parse_steps(lines),
        log=log,
    )


def push_target(job: Job, target: BuildTarget) -> str | None:
    """Pushes what was built and proved, all platforms together; returns the manifest's digest.

    Raises:
        EdgeError: the registry, the builder or the network failed.
    """
    log = job.log_folder / f"image-{target.name}-push.log"
    words = build_command(
        target, job.options, files=job.inputs.files, variables=job.inputs.tree.variables, labels=_labels(job, target),
        metadata_file=job.folder / "pushed.json", push=True, platforms=job.options.platforms,
    )  # fmt: skip
    if _run(words, job, log) != 0:
        cause = classify_failure(log.read_text(encoding="utf-8").splitlines())
        raise EdgeError(f"{target.name} was not pushed: {cause.line}", hint=f"see {log}", reason="PUSH_FAILED")
    digest = _metadata(job.folder / "pushed.json", target).get("containerimage.digest")
    return None if digest is None else str(digest)


def _run(words: list[str], job: Job, log: Path) -> int:
    """On a terminal every line is shown, elsewhere the steps only; the log has all of them."""
    terminal = job.terminal
    is_whole = terminal.stream.isatty()

    def show(line: str) -> None:
        rest = line.partition(" ")[2]
        if is_whole or not line.startswith("#") or rest.startswith(_SHOWN):
            terminal.say(terminal.paint(line, "dim"))

    return buildx.build(words, root=job.inputs.root, environ=job.inputs.environ, log=log, show=show)


def _failure(lines: list[str], log: Path) -> Finding:
    cause = classify_failure(lines)
    if cause.kind == "world":
        raise EdgeError(
            f"{cause.sentence}: {cause.line}", hint=f"{cause.hint}; the whole log is {log}", reason=cause.reason
        )
    return Finding(
        check="image-build",
        detail=f"{cause.sentence}: {cause.line}",
        hint=f"{cause.hint}; the whole log is {log}",
        reason=cause.reason,
    )


def _labels(job: Job, target: BuildTarget) -> dict[str, str]:
    root, tree = job.inputs.root, job.inputs.tree
    origin = git.load_origin(root)
    bases = base_images(load_text(root, target.dockerfile).text, target, contexts=job.options.context_names)
    return make_labels(
        tree.variables,
        load_library(),
        target=target.name,
        pins_sha256=tree.pins_sha256,
        commit=tree.revision.commit,
        source=None if origin is None else split_credentials(origin)[0],
        created=git.load_commit_time(root),
        base_image=bases[-1] if bases else None,
        left_out=" ".join(sorted(left_out_packages(target))),
    )


def _image_id(folder: Path, target: BuildTarget) -> str:
    """The config digest that the builder reports; builders that do not are asked by the image's name.

    Raises:
        EdgeError: the build said that it succeeded, and the engine has no image of it.
    """
    reported = _metadata(folder / "metadata.json", target).get("containerimage.config.digest")
    with docker_engine.connect() as client:
        for name in (*([str(reported)] if reported else []), *target.tags):
            found = docker_engine.find_image(client, name)
            if found is not None:
                return found
    raise EdgeError(
        f"{target.name} was built, and the engine has no image of it",
        hint="a builder of its own must be able to load images into this engine",
        reason="NO_IMAGE",
    )


def _metadata(path: Path, target: BuildTarget) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_text()).get(target.name, {})
    except (OSError, ValueError, AttributeError):
        return {}
    return found if isinstance(found, dict) else {}
