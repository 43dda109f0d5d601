"""Looks at the world before a build: client, buildx, engine, disk, base images, indexes. `images.preflight` judges."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from tooling.commands.image_inputs import ImageInputs
from tooling.commands.terminal import Terminal
from tooling.edges import buildx, docker_engine
from tooling.edges.files.reading import load_text
from tooling.edges.index import IndexClient
from tooling.edges.packaged_data import load_library
from tooling.edges.pip_config import make_settings
from tooling.errors import EdgeError, InputError, ToolingError
from tooling.images.bake_command import BuildOptions
from tooling.images.index_config import IndexConfig
from tooling.images.plan import BuildTarget, base_images
from tooling.images.preflight import Check, judge_base, judge_buildx, judge_disk, not_checked, problem
from tooling.releases.index_options import IndexOptions


def look(
    args: argparse.Namespace,
    inputs: ImageInputs,
    options: BuildOptions,
    targets: Sequence[BuildTarget],
    config: IndexConfig | None,
) -> Iterator[Check]:
    """Every check in the order in which a build needs it, each made when it is asked for."""
    if not buildx.has_client():
        yield problem("docker", "TOOL_MISSING", "there is no program `docker` on the PATH.", "install Docker's client")
        return
    answer = buildx.ask(
        ["buildx", "version"], root=inputs.root, environ=inputs.environ, timeout_s=buildx.LOCAL_TIMEOUT_S
    )
    yield judge_buildx(answer.text, answer.complaint, is_late=answer.is_late)
    yield from _look_at_engine(args, inputs, options, targets, has_buildx=answer.text is not None)
    yield _look_at_index(args, config)


def say_checks(terminal: Terminal, checks: Sequence[Check]) -> None:
    """One line a check."""
    colours = {"ok": "green", "problem": "red", "not checked": "yellow"}
    for check in checks:
        mark = terminal.paint(f"{check.outcome:<12}", colours[check.outcome])
        terminal.say(f"{mark}{check.name}: {check.detail.removeprefix('not checked: ')}")
        if check.hint:
            terminal.say(f"{'':<12}{terminal.paint('hint:', 'blue')} {check.hint}")


def raise_problem(checks: Iterator[Check]) -> list[Check]:
    """All checks if none is a problem; the first problem as an error, without looking further."""
    passed = []
    for check in checks:
        if check.outcome == "problem":
            raise EdgeError(check.detail, hint=check.hint, reason=check.reason)
        passed.append(check)
    return passed


def _look_at_engine(
    args: argparse.Namespace, inputs: ImageInputs, options: BuildOptions, targets: Sequence[BuildTarget], *,
    has_buildx: bool,
) -> Iterator[Check]:  # fmt: skip
    images = _bases(inputs, options, targets)
    try:
        with docker_engine.connect() as client:
            yield Check(name="engine", outcome="ok", detail=f"Docker engine {docker_engine.engine_version(client)}")
            if options.builder:
                yield not_checked("disk", f"the builder {options.builder} has its own")
            else:
                yield judge_disk(*docker_engine.free_disk(client), args.disk_gb)
            local = {image for image in images if docker_engine.find_image(client, image) is not None}
    except EdgeError as error:
        yield problem("engine", error.reason, error.message, error.hint)
        return
    for image in images:
        if image not in local and not has_buildx:
            yield not_checked(f"base {image}", "the engine does not have it, and only buildx could ask its registry")
        else:
            yield _look_at_base(args, inputs, image, is_local=image in local)


def _look_at_base(args: argparse.Namespace, inputs: ImageInputs, image: str, *, is_local: bool) -> Check:
    if is_local:
        return judge_base(image, is_local=True, registry_answer=None, complaint="")
    if args.offline:
        return not_checked(f"base {image}", "--offline, and the engine does not have it")
    answer = buildx.ask(
        ["buildx", "imagetools", "inspect", image], root=inputs.root, environ=inputs.environ,
        timeout_s=buildx.REGISTRY_TIMEOUT_S,
    )  # fmt: skip
    return judge_base(image, is_local=False, registry_answer=answer.text, complaint=answer.complaint)


def _bases(inputs: ImageInputs, options: BuildOptions, targets: Sequence[BuildTarget]) -> list[str]:
    found: dict[str, None] = {}
    for target in targets:
        text = load_text(inputs.root, target.dockerfile).text
        found |= dict.fromkeys(base_images(text, target, contexts=options.context_names))
    return list(found)


def _look_at_index(args: argparse.Namespace, config: IndexConfig | None) -> Check:
    """Asks the indexes of the build for the library. A 404 says that one has no such package: no fault."""
    name = "index"
    if args.offline:
        return not_checked(name, "--offline")
    listed = {
        "index-url": (config.index_url if config else None) or "",
        "extra-index-url": " ".join(config.extra_index_urls) if config else "",
        "find-links": " ".join(config.find_links) if config else "",
        "no-index": "true" if config and config.no_index else "no",
        "trusted-host": " ".join(config.trusted_hosts) if config else "",
        "cert": "" if args.ca_bundle is None else str(args.ca_bundle),
    }
    settings = make_settings({key: value for key, value in listed.items() if value}, IndexOptions(), (), {})
    try:
        with IndexClient(settings) as client:
            found = client.fetch_project(load_library().main_package)
    except (EdgeError, InputError) as error:
        return problem(name, "INDEX_NOT_ANSWERING", f"an index does not answer: {error.message}", _index_hint(error))
    return Check(name=name, outcome="ok", detail=", ".join(f"{page.index} answers" for page in found))


def _index_hint(error: ToolingError) -> str:
    """What to do about an index, in this command's own options where the index's hint speaks of another's."""
    if error.reason not in {"UNREACHABLE", "TIMEOUT"}:
        return error.hint
    return "is the address right, and the network up? --index-config FILE names another index, --offline asks none"
