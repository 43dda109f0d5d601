"""What a passing image record shows beside its status: what is installed, and what the operator overrode."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tooling.evidence import Record
from tooling.gate.policy import Channel
from tooling.gate.remarks import Remark, contradiction, note, public

MAIN_PACKAGE = "flashinfer-python"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_HARMLESS = {"labels", "tags", "annotations", "cache-from", "cache-to", "no-cache", "pull"}
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
    yield from _told(record)


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


def _told(record: Record) -> Iterator[Remark]:
    """What everybody should know of how the image came about, and what the proof does not tell."""
    replaced = record.measurements.get("replaced")
    for item in map(str, replaced if isinstance(replaced, list) else ()):
        yield note("OVERRIDE", f"the build was told `{item}`, in place of what the Dockerfile names")
    if "verified" in record.measurements:
        revision = record.measurements.get("revision")
        built = f"; its label says that it was built from commit {str(revision)[:12]}" if revision else ""
        yield note("VERIFIED", f"the image was proved and not built here{built}")
