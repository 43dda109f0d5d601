"""What `image` works on, loaded once at its start: pins, bake file, effective build, options with their secrets."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tooling.commands.recording import REQUIREMENTS, PinnedTree, load_pinned_tree
from tooling.commands.terminal import Terminal
from tooling.edges import buildx
from tooling.edges.environment import load_environment
from tooling.edges.evidence_files import load_record
from tooling.edges.files.reading import load_text
from tooling.edges.files.tree import load_optional_text, load_settings
from tooling.edges.packaged_data import load_library
from tooling.edges.private_files import write_private
from tooling.errors import InputError
from tooling.gate.candidate import extends
from tooling.images.bake_command import BuildOptions, settings
from tooling.images.bake_static import evaluate_bake
from tooling.images.checks import Expectation
from tooling.images.facts import ImageConfig
from tooling.images.index_config import IndexConfig, parse_index_config, render_pip_config, render_uv_config
from tooling.images.plan import BuildTarget, PlanSource, parse_bake_print, shadowing_variables
from tooling.images.recorded import parse_recorded_hashes
from tooling.pins.requirements import RequirementLine, parse_requirements
from tooling.pins.settings import FILE, VERSIONS_FILES

BAKE_FILES = ("docker/docker-bake.hcl", "docker-bake.hcl")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageInputs:
    """The tree's side of a build. `environ` is docker's, without variables that would win over the pins."""

    root: Path
    tree: PinnedTree
    requirements: list[RequirementLine]
    hashes: Mapping[str, str]
    files: tuple[str, ...]
    also_used_by: tuple[str, ...]
    environ: Mapping[str, str]

    def expectation(
        self, *, target: str | None, left_out: frozenset[str] = frozenset(), ours: bool = True
    ) -> Expectation:
        """What an image must hold; the target named `nightly` takes its torch as it comes."""
        return Expectation(
            library=load_library(),
            variables=self.tree.variables,
            requirements=self.requirements,
            pins_sha256=self.tree.pins_sha256,
            is_nightly=target is not None and "nightly" in target,
            is_ours=ours,
            left_out=left_out,
            hashes=self.hashes,
        )


def load_inputs(args: argparse.Namespace, terminal: Terminal) -> ImageInputs:
    """Reads the tree. Says which variables of the environment were taken out.

    Raises:
        InputError: no versions file or no bake file, or one that cannot be read.
    """
    root = args.root
    chosen = load_settings(root)
    found = [
        path for path in ([chosen.versions_file] if chosen.versions_file else VERSIONS_FILES) if (root / path).exists()
    ]
    if not found:
        raise InputError(f"{root}: no versions file, expected {VERSIONS_FILES[0]}", reason="MISSING")
    tree = load_pinned_tree(root, versions_file=found[0], commit=args.commit)
    requirements = load_optional_text(root, REQUIREMENTS)
    release_toml = load_optional_text(root, FILE)
    return ImageInputs(
        root=root,
        tree=tree,
        requirements=[] if requirements is None else parse_requirements(requirements.text),
        hashes={} if release_toml is None else parse_recorded_hashes(release_toml.text, library=load_library().name),
        files=(_bake_file(args), found[0]),
        also_used_by=tuple(chosen.also_used_by),
        environ=_environment(tree, terminal),
    )


def load_plan(
    inputs: ImageInputs, options: BuildOptions, names: list[str], terminal: Terminal
) -> tuple[list[BuildTarget], PlanSource]:
    """The targets asked for, as bake evaluates them; where bake does not answer, by our own reading (`static`).

    A client that hangs is said to the terminal.

    Raises:
        InputError: a target that the bake file does not have, or a bake file that cannot be evaluated.
    """
    words = ["buildx", "bake", "--print", *(word for file in inputs.files for word in ("--file", file))]
    words += settings(options, "*", inputs.tree.variables)
    answer = buildx.ask([*words, *names], root=inputs.root, environ=inputs.environ, timeout_s=buildx.LOCAL_TIMEOUT_S)
    if answer.text is not None:
        return parse_bake_print(answer.text), "bake"
    if answer.is_late:
        terminal.say(answer.complaint)
    text = load_text(inputs.root, inputs.files[0]).text
    targets = evaluate_bake(text, inputs.tree.variables, path=inputs.files[0], environ=inputs.environ)
    check_names(names, targets, path=inputs.files[0])
    return [target for target in targets if not names or target.name in names], "static"


def check_names(names: Sequence[str], targets: Sequence[BuildTarget], *, path: str) -> None:
    """Raises InputError for a name that is no target of the bake file at `path`."""
    known = [target.name for target in targets]
    for name in names:
        if name not in known:
            raise InputError(f"{path}: no target {name}; there are {', '.join(known)}", reason="NO_TARGET")


def is_derived(folder: Path, target: str | None, image: ImageConfig) -> bool:
    """Whether the folder's record of the target is of an image that this one was built from: it keeps its record."""
    if target is None:
        return False
    try:
        record = load_record(folder / f"image-{target}.json")
    except InputError:
        return False
    below = record.measurements.get("layers")
    return isinstance(below, list) and extends(image.layer_digests, tuple(map(str, below)))


def make_options(args: argparse.Namespace, folder: Path, terminal: Terminal) -> tuple[BuildOptions, IndexConfig | None]:
    """The caller's options; index settings and certificates become secret files in `folder`.

    Raises:
        InputError: a file that is missing or not what it should be.
    """
    secrets: dict[str, Path] = {}
    config = None
    if args.index_config is not None:
        config = parse_index_config(_read(args.index_config, "--index-config"), path=str(args.index_config))
        secrets["pip_config"] = write_private(folder / "pip.conf", render_pip_config(config))
        secrets["uv_config"] = write_private(folder / "uv.toml", render_uv_config(config))
        if config.needs_best_match:
            terminal.say("several indexes: the best version of all of them is taken, as pip does")
        for address in config.left_out:
            terminal.say(f"{args.index_config}: {address} lies on this machine's disk and is left out of the build")
    if args.ca_bundle is not None:
        if "-----BEGIN CERTIFICATE-----" not in _read(args.ca_bundle, "--ca-bundle"):
            raise InputError(f"--ca-bundle {args.ca_bundle}: holds no PEM certificate", reason="BAD_CA_BUNDLE")
        secrets["ca_bundle"] = args.ca_bundle.resolve()
    options = BuildOptions(
        base_image=args.base_image, build_contexts=tuple(args.build_context), apt_mirror=args.apt_mirror,
        builder=args.builder, platforms=tuple(args.platform),
        cache_to=tuple(args.cache_to), cache_from=tuple(args.cache_from), provenance=args.provenance, sbom=args.sbom,
        overrides=tuple(args.set), no_cache=args.no_cache, secrets=secrets,
    )  # fmt: skip
    return options, config


def _bake_file(args: argparse.Namespace) -> str:
    for path in [args.bake_file] if args.bake_file else BAKE_FILES:
        if (args.root / path).is_file():
            return str(path)
    raise InputError(
        f"{args.root}: no bake file, expected {args.bake_file or BAKE_FILES[0]}",
        hint="name it with --bake-file FILE",
        reason="MISSING",
    )


def _environment(tree: PinnedTree, terminal: Terminal) -> dict[str, str]:
    environ = load_environment()
    for name in shadowing_variables(tree.variables, environ):
        terminal.say(f"the environment's {name}={environ[name]} is taken out; the pin is {tree.variables[name]}")
    return buildx.environment_without(tree.variables, environ)


def _read(path: Path, option: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        said = cause.strerror if isinstance(cause, OSError) else "it is not UTF-8 text"
        raise InputError(f"{option} {path}: cannot be read: {said}", reason="UNREADABLE") from cause
