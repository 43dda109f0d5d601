"""The options of `image`, each refused where it cannot be meant. What they do is up to the command's other modules.

An empty text is an unset variable in somebody's script. It is refused: without the option, something else would run.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from tooling.commands.recording import add_evidence_argument
from tooling.images.image_names import is_image_name
from tooling.images.preflight import DEFAULT_DISK_GB


def add_image_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "targets", nargs="*", type=_text, metavar="TARGET", help="targets of the bake file (default: all)"
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--plan", action="store_true", help="print the effective build and build nothing")
    mode.add_argument("--doctor", action="store_true", help="only look whether a build could start")
    mode.add_argument("--lint", action="store_true", help="only check the Dockerfiles and the bake file")
    mode.add_argument("--verify", type=_image_name, metavar="TAG", help="prove an image that is there already")
    parser.add_argument("--bake-file", type=_text, metavar="FILE", help="default: docker/docker-bake.hcl")
    parser.add_argument("--disk-gb", type=_gigabytes, default=DEFAULT_DISK_GB, metavar="N",
                        help="free space that a build needs (default: %(default)s)")  # fmt: skip
    parser.add_argument("--offline", action="store_true", help="ask no registry and no index before the build")
    parser.add_argument(
        "--base-image", type=_image_name, metavar="NAME", help="build on this image instead of the CUDA base"
    )
    parser.add_argument(
        "--build-context", type=_text, action="append", default=[], metavar="NAME=PATH", help="as buildx has it"
    )
    parser.add_argument("--index-config", type=_file, metavar="FILE", help="pip.conf or uv.toml, mounted as a secret")
    parser.add_argument("--ca-bundle", type=_file, metavar="FILE", help="certificates (PEM), mounted as a secret")
    parser.add_argument("--apt-mirror", type=_text, metavar="URL", help="take the distribution's packages from here")
    parser.add_argument(
        "--set", type=_text, action="append", default=[], metavar="TARGET.KEY=VALUE", help="bake's own override"
    )
    parser.add_argument("--no-cache", action="store_true", help="run every step anew")
    parser.add_argument("--push", action="store_true", help="push each image once it is proved")
    parser.add_argument("--platform", type=_names, action="extend", default=[], metavar="NAMES",
                        help="such as linux/amd64,linux/arm64")  # fmt: skip
    parser.add_argument("--builder", type=_text, metavar="NAME", help="a buildx builder, remote or in Kubernetes")
    parser.add_argument("--cache-to", type=_text, action="append", default=[], metavar="SPEC", help="as buildx has it")
    parser.add_argument(
        "--cache-from", type=_text, action="append", default=[], metavar="SPEC", help="as buildx has it"
    )
    parser.add_argument("--provenance", type=_text, metavar="SPEC", help="attestation, as buildx has it")
    parser.add_argument("--sbom", type=_text, metavar="SPEC", help="attestation, as buildx has it")
    add_evidence_argument(parser)


def _text(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("found an empty text")
    return text


def _file(text: str) -> Path:
    return Path(_text(text))


def _names(text: str) -> list[str]:
    return [_text(part) for part in text.split(",")]


def _image_name(text: str) -> str:
    if not is_image_name(_text(text)):
        raise argparse.ArgumentTypeError(f"found {text!r}, expected an image such as REGISTRY/NAME:TAG in lower case")
    return text


def _gigabytes(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a number of gigabytes, 0 or more")
    return number
