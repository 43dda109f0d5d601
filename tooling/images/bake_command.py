"""The words of a `docker buildx bake` call for one target. Running it is `edges.buildx`.

Options are those of the buildx bake reference; what the caller gives for builder, cache and attestations goes through.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tooling.errors import InputError
from tooling.images.credentials import find_credentials
from tooling.images.plan import BuildTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions:
    """What the caller asks for beside the pins. `overrides` are bake's own `TARGET.KEY=VALUE`."""

    base_image: str | None = None
    build_contexts: tuple[str, ...] = ()
    apt_mirror: str | None = None
    builder: str | None = None
    platforms: tuple[str, ...] = ()
    cache_to: tuple[str, ...] = ()
    cache_from: tuple[str, ...] = ()
    provenance: str | None = None
    sbom: str | None = None
    overrides: tuple[str, ...] = ()
    no_cache: bool = False
    secrets: Mapping[str, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.apt_mirror and any(find_credentials(self.apt_mirror)):
            raise InputError(
                "--apt-mirror holds credentials, and arguments stay in the image's history",
                hint="use a mirror that needs none, or one that knows the builder's address",
                reason="CREDENTIALS",
            )
        for item in self.build_contexts:
            if not all(item.partition("=")[::2]):
                raise InputError(f"--build-context {item}: expected NAME=PATH or NAME=URL", reason="BAD_ARGUMENTS")
        for item in self.overrides:
            if not item.partition("=")[1] or "." not in item.partition("=")[0]:
                raise InputError(f"--set {item}: expected TARGET.KEY=VALUE", reason="BAD_ARGUMENTS")

    @property
    def replaced(self) -> tuple[str, ...]:
        """What is taken in place of what the Dockerfile names, as the command line says it."""
        base = (f"--base-image {self.base_image}",) if self.base_image else ()
        return (*base, *(f"--build-context {item}" for item in self.build_contexts))

    @property
    def context_names(self) -> tuple[str, ...]:
        return tuple(item.partition("=")[0] for item in self.build_contexts)


def settings(options: BuildOptions, target: str, variables: Mapping[str, str]) -> list[str]:
    """The `--set` words: pins by value, so that neither the environment nor a later edit of a file gets in between."""
    pairs = [f"{target}.args.{name}={value}" for name, value in variables.items()]
    pairs += [f"{target}.args.BASE_IMAGE={options.base_image}"] if options.base_image else []
    pairs += [f"{target}.args.APT_MIRROR={options.apt_mirror}"] if options.apt_mirror else []
    pairs += [f"{target}.contexts.{item}" for item in options.build_contexts]
    pairs += list(options.overrides)
    return [word for pair in pairs for word in ("--set", pair)]


def build_command(
    target: BuildTarget,
    options: BuildOptions,
    *,
    files: Sequence[str],
    variables: Mapping[str, str],
    labels: Mapping[str, str],
    metadata_file: Path,
    push: bool = False,
    platforms: Sequence[str] = (),
) -> list[str]:
    """The words after `docker`: loads the image into the engine, or pushes it.

    `platforms` is empty for the builder's own; only a push can take several at once.
    """
    words = ["buildx", "bake", "--progress", "plain", "--metadata-file", str(metadata_file)]
    words += [word for file in files for word in ("--file", file)]
    words += ["--builder", options.builder] if options.builder else []
    words += ["--push"] if push else ["--load"]
    words += ["--no-cache"] if options.no_cache else []
    words += [f"--provenance={options.provenance}"] if options.provenance else []
    words += [f"--sbom={options.sbom}"] if options.sbom else []
    words += settings(options, target.name, variables)
    pairs = [f"labels.{name}={value}" for name, value in labels.items()]
    pairs += [f"secrets=id={name},src={path}" for name, path in options.secrets.items()]
    pairs += [f"platform={','.join(platforms)}"] if platforms else []
    words += [word for pair in pairs for word in ("--set", f"{target.name}.{pair}")]
    words += [word for value in options.cache_to for word in ("--set", f"{target.name}.cache-to={value}")]
    words += [word for value in options.cache_from for word in ("--set", f"{target.name}.cache-from={value}")]
    return [*words, target.name]


def left_out_packages(target: BuildTarget) -> frozenset[str]:
    """Packages that the Dockerfile's WITHOUT_PACKAGES leaves out."""
    return frozenset(target.args.get("WITHOUT_PACKAGES", "").replace(",", " ").split())
