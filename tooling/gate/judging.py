"""One record against what a channel asks: whose it is, how old, in what state, whether it contradicts itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from packaging.version import Version

from tooling.capabilities.table import Row
from tooling.evidence import COMMIT, Record
from tooling.findings import Severity
from tooling.gate.candidate import Candidate
from tooling.gate.gsm8k_rules import check_gsm8k
from tooling.gate.image_rules import check_image_record
from tooling.gate.policy import Channel
from tooling.gate.remarks import Remark, contradiction, failure, note, public, same_commit, shown_time
from tooling.gate.smoke_rules import check_smoke_record

CLOCK_SKEW = timedelta(minutes=5)
"""How far two machines' clocks may differ before a record counts as from the future."""

_NO_VERSIONS = "make a versions file, name it in release.toml ([pins] versions_file), and run it again"

_OTHERS = {"FOREIGN", "NO_PINS", "STALE"}
"""What such a record measured is not of this release."""

_SHA256 = re.compile(r"[0-9a-f]{64}")
_COMMIT = re.compile(COMMIT)
_IMAGE_ID = re.compile(r"sha256:[0-9a-f]{64}")
_WORD = re.compile(r"[A-Z][A-Z0-9_]*")


def judge_record(
    record: Record, channel: Channel, candidate: Candidate, *, as_of: datetime, row: Row | None
) -> tuple[Remark, ...]:
    """Everything that is to be said of a record; it counts if no remark's outcome is worse than PASS.

    `row` is the capabilities table's of the candidate's release, None where it has none.
    """
    remarks = [*_form(record), *_status(record)]
    if record.status != "not-run":
        remarks += [*_identity(record, channel, candidate), *_times(record, channel, as_of), *_state(record, channel)]
    if record.status == "pass" and not _OTHERS & {remark.word for remark in remarks}:
        remarks += _measured(record, channel, row, as_of)
    return tuple(remarks)


def _form(record: Record) -> Iterator[Remark]:
    """What the schema asks beyond types; the digest is over whatever was written."""
    for name, value, pattern in (
        ("pins_sha256", record.pins_sha256, _SHA256),
        ("image_id", record.image_id, _IMAGE_ID),
        ("manifest_digest", record.manifest_digest, _IMAGE_ID),
        ("commit", record.commit, _COMMIT),
        ("reason", record.reason, _WORD),
    ):
        if value is not None and not pattern.fullmatch(value):
            yield _malformed(f"{name} is {value!r}, expected {pattern.pattern}")
    for name, text in (("tool_version", record.tool_version), ("flashinfer_version", record.flashinfer_version)):
        if text is not None and not _is_version(text):
            yield _malformed(f"{name} is {text!r}, which is no version")


def _status(record: Record) -> Iterator[Remark]:
    errors = [finding for finding in record.findings if finding.severity is Severity.ERROR]
    if record.status == "not-run":
        yield Remark(word="NOT_RUN", detail=f"the stage did not run ({record.reason or 'no reason given'})")
    elif record.status == "fail" and errors:
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        where = f"{errors[0].where}: " if errors[0].where else ""
        yield failure(record.reason or errors[0].reason or "FAILED", f"{where}{errors[0].detail}{more}")
    elif record.status == "fail":
        yield contradiction("the record says fail and names no error")
    elif errors:
        yield contradiction(f"the record says pass and holds an error: {errors[0].detail}")
    elif record.reason is not None:
        yield contradiction(f"the record says pass and gives a reason not to: {record.reason}")


def _identity(record: Record, channel: Channel, candidate: Candidate) -> Iterator[Remark]:
    """Same pins, same release, same commit, same configuration, same image."""
    if record.pins_sha256 is None:
        yield Remark(word="NO_PINS", detail=f"the record names no pins: {_NO_VERSIONS}")
    elif record.pins_sha256 != candidate.pins_sha256:
        yield _foreign("pins", record.pins_sha256[:12], (candidate.pins_sha256 or "none")[:12])
    if record.flashinfer_version is None or candidate.flashinfer_version is None:
        yield Remark(word="NO_PINS", detail=f"the record names no FlashInfer release: {_NO_VERSIONS}")
    elif record.flashinfer_version != candidate.flashinfer_version:
        yield _foreign("FlashInfer", record.flashinfer_version, candidate.flashinfer_version)
    yield from _commit(record, channel, candidate)
    if record.stage == "gsm8k":
        yield from _configuration(record, candidate)
    if record.stage in {"smoke", "gsm8k"}:
        yield from _image(record, channel, candidate)
    elif record.stage == "image":
        yield from _target(record, candidate)


def _commit(record: Record, channel: Channel, candidate: Candidate) -> Iterator[Remark]:
    if record.commit is None:
        if not channel.allows("no-commit"):
            yield Remark(word="NO_COMMIT", detail="the record names no commit (`--commit SHA` gives one without git)")
    elif candidate.commit is not None and not same_commit(record.commit, candidate.commit):
        yield _foreign("commit", record.commit[:12], candidate.commit[:12])


def _image(record: Record, channel: Channel, candidate: Candidate) -> Iterator[Remark]:
    if record.image_id is None:
        if not channel.allows("no-image"):
            yield Remark(word="NO_IMAGE", detail="the stage did not run in an image")
    elif candidate.tested is None:
        yield Remark(word="UNPROVEN_IMAGE", detail=f"nothing proves its image {record.image_id[:19]}")
    elif record.image_id != candidate.tested:
        if candidate.derives(record.image_id):
            yield note("DERIVED_IMAGE", f"it ran in {record.image_id[:19]}, built from {candidate.tested[:19]}")
        else:
            yield Remark(word="FOREIGN", detail=_other_image(record.image_id, candidate.tested, candidate))


def _other_image(found: str, tested: str, candidate: Candidate) -> str:
    detail = f"the record is of another image: {found[:19]}, expected {tested[:19]}"
    platform = candidate.platforms.get(found)
    if platform is not None:
        return f"{detail}; it is the same build's for {platform}: build with `--platform {platform}` alone"
    return f"{detail}, or one built FROM it that `nox -s image -- --verify NAME` has proved"


def _target(record: Record, candidate: Candidate) -> Iterator[Remark]:
    """The newest image of its target, and of no other: a build makes one image for each target."""
    newest = candidate.images.get(record.subject or "")
    if newest is not None and record.image_id != newest:
        yield Remark(word="SUPERSEDED", detail=f"the image of this target is {newest[:19]}")
    same = [name for name, image in candidate.images.items() if name != record.subject and image == record.image_id]
    if newest is not None and same and "verified" in record.measurements:
        detail = f"the image is that of {', '.join(sorted(same))} as well; build one for each target"
        yield Remark(word="ONE_IMAGE", detail=detail)


def _configuration(record: Record, candidate: Candidate) -> Iterator[Remark]:
    """A file of the same name elsewhere may ask for less: the tree's own is the one that the channel means."""
    wanted, config = candidate.configs.get(record.subject or ""), record.measurements.get("config")
    found = config.get("sha256") if isinstance(config, Mapping) else None
    if wanted is not None and found != wanted:
        yield _foreign("configuration", str(found)[:12], wanted[:12] or "none: the tree has no such file")


def _times(record: Record, channel: Channel, as_of: datetime) -> Iterator[Remark]:
    age, limit_h = as_of - record.ended, channel.max_age(record.stage)
    if record.ended < record.started:
        yield Remark(word="BAD_TIME", detail="the record ends before it starts")
    if max(record.ended, record.started) - as_of > CLOCK_SKEW:
        yield Remark(word="FUTURE", detail=f"the record is from the future: {shown_time(record.ended)}")
    elif age > timedelta(hours=limit_h):
        detail = f"the record is {age.total_seconds() / 3600:.0f} h old; {channel.name} takes {limit_h:g} h"
        yield Remark(word="STALE", detail=detail)


def _state(record: Record, channel: Channel) -> Iterator[Remark]:
    if record.dirty is False or channel.allows("dirty"):
        return
    if record.dirty:
        yield Remark(word="DIRTY", detail="the tree had changes that no commit holds; commit them first")
    elif record.commit is not None:
        yield Remark(word="DIRTY", detail="whether the tree had changes could not be told")


def _measured(record: Record, channel: Channel, row: Row | None, as_of: datetime) -> Iterator[Remark]:
    """What the measurements of a passing record show."""
    if record.stage == "check":
        yield from _check_sites(record)
    elif record.stage == "image":
        yield from check_image_record(record, channel)
    elif record.stage == "smoke":
        yield from check_smoke_record(record, channel, row=row, as_of=as_of)
    elif record.stage == "gsm8k":
        yield from check_gsm8k(record, channel)


def _check_sites(record: Record) -> Iterator[Remark]:
    sites = record.measurements.get("sites")
    if not isinstance(sites, list) or not sites:
        yield contradiction("a check that passes has seen pins, and the record lists none")
        return
    for site in sites:
        found = site.get("version") if isinstance(site, dict) else None
        if not isinstance(found, str) or public(found) != public(record.flashinfer_version or ""):
            yield contradiction(f"the check passes at {record.flashinfer_version} and saw a pin at {found}")
            return


def _foreign(what: str, found: str, expected: str) -> Remark:
    return Remark(word="FOREIGN", detail=f"the record is of another {what}: {found}, expected {expected}")


def _malformed(detail: str) -> Remark:
    return Remark(word="MALFORMED", detail=detail)


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except ValueError:  # InvalidVersion, and a number with more digits than Python reads
        return False
    return True
