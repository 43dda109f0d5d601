"""What a passing image record shows beside its status: what is installed, and what the operator overrode."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tooling.evidence import Record
from tooling.gate.policy import Channel
from tooling.gate.remarks import Remark, contradiction, note, public

MAIN_PACKAGE = "flashinfer-python"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_HARMLESS = {"labels", "tags", "annotations", "cache-from", "cache-to", "no-cache", "pull", "output"}
"""Keys of a bake target that do not change what is built."""

COMPANIONS = ("flashinfer-cubin", "flashinfer-jit-cache")


def check_image_record(record: Record, channel: Channel) -> Iterator[Remark]:
    """A pass without an image, or with another release inside, contradicts itself; overrides count by policy."""
    if record.image_id is None:
        yield contradiction("the image passes its proof and has no digest")
    layers = record.measurements.get("layers")
    if not isinstance(layers, list) or not layers:
        yield contradiction("the image passes its proof and has no layers")
    elif not all(isinstance(layer, str) and _DIGEST.fullmatch(layer) for layer in layers):
        yield contradiction("the image passes its proof and its layers are no digests")
    versions = record.measurements.get("versions")
    installed = dict(versions) if isinstance(versions, Mapping) else {}
    if MAIN_PACKAGE not in installed:
        yield contradiction(f"the image passes its proof and the record lists no {MAIN_PACKAGE}")
    for name in (MAIN_PACKAGE, *COMPANIONS):
        found = installed.get(name)
        if found is not None and public(str(found)) != public(record.flashinfer_version or ""):
            yield contradiction(f"the image passes at {record.flashinfer_version} and holds {name} {found}")
    yield from _overrides(record, channel)


def _overrides(record: Record, channel: Channel) -> Iterator[Remark]:
    """`--set TARGET.KEY=VALUE` of the build: it wins over the bake file and over the pins."""
    overrides = record.measurements.get("overrides", [] if "verified" in record.measurements else None)
    if not isinstance(overrides, list):
        yield contradiction("the image passes its proof and the record does not tell what its build was told")
        return
    for item in map(str, overrides):
        _, _, key = item.partition("=")[0].partition(".")
        if key.partition(".")[0] in _HARMLESS:
            continue
        detail = f"the build was told `--set {item}`, which wins over versions.json"
        yield note("OVERRIDE", detail) if channel.allows("overrides") else Remark(word="OVERRIDE", detail=detail)
