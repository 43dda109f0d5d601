"""Labels of an image: OCI's own annotations (image-spec, annotations.md) and the hash of the pins. Sets nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from tooling.pins.library import Library

VERSION_LABEL = "org.opencontainers.image.version"
REVISION_LABEL = "org.opencontainers.image.revision"
PINS_LABEL = "io.flashinfer-pin-pipeline.pins-sha256"
TARGET_LABEL = "io.flashinfer-pin-pipeline.target"
LEFT_OUT_LABEL = "io.flashinfer-pin-pipeline.left-out"


_TARGET = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


def labelled_target(labels: Mapping[str, str]) -> str | None:
    """The target that the image says it is; None without one. A record's file is named after it, so it is one word."""
    found = labels.get(TARGET_LABEL, "")
    return found if _TARGET.fullmatch(found) else None


def version_label(variables: Mapping[str, str], library: Library) -> str:
    """What the image's tag carries as well: `0.6.13-cu13.0.2`."""
    cuda = variables.get("CUDA_VERSION")
    return variables.get(library.variable, "") + (f"-cu{cuda}" if cuda else "")


def make_labels(
    variables: Mapping[str, str],
    library: Library,
    *,
    target: str,
    pins_sha256: str | None,
    commit: str | None,
    source: str | None,
    created: datetime | None,
    base_image: str | None,
    left_out: str = "",
) -> dict[str, str]:
    """The labels by name; facts that are not known, such as a commit without git, give none."""
    labels = {
        VERSION_LABEL: version_label(variables, library),
        REVISION_LABEL: commit,
        "org.opencontainers.image.source": source,
        "org.opencontainers.image.created": created and created.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "org.opencontainers.image.base.name": base_image,
        PINS_LABEL: pins_sha256,
        TARGET_LABEL: target,
        LEFT_OUT_LABEL: left_out,
    }
    return {name: value for name, value in labels.items() if value}
