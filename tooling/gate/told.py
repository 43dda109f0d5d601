"""What every rendering says in the same words: the headline, the first cause, ages, places, what is still to run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from tooling.findings import Finding, Severity
from tooling.gate.values import EvidenceFile, Outcome, Reason, Requirement, Verdict

HEADLINES = {
    Outcome.PASS: "everything that the channel requires is proved",
    Outcome.INCOMPLETE: "evidence is missing or does not count",
    Outcome.FAIL: "something that was tested is not good enough",
}
SEVERITIES = list(Severity)


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """A command that is still to run, where ("" is anywhere), and the requirements that wait for it."""

    command: str
    machine: str
    titles: tuple[str, ...]


def causes(verdict: Verdict) -> tuple[Reason, ...]:
    """The reasons why the verdict is not PASS, the first cause first."""
    return tuple(reason for reason in verdict.reasons if reason.outcome is not Outcome.PASS)


def grouped(reasons: Iterable[Reason]) -> tuple[tuple[Reason, ...], ...]:
    """Reasons that differ in their detail alone stand together, where the first of them stood."""
    groups: dict[Reason, list[Reason]] = {}
    for reason in reasons:
        groups.setdefault(replace(reason, detail=""), []).append(reason)
    return tuple(map(tuple, groups.values()))


def further_path(verdict: Verdict, reason: Reason) -> str | None:
    """The reason's file, unless it is the record that stands beside the requirement anyway."""
    beside = {(item.stage, item.subject, item.file.path) for item in verdict.requirements if item.file is not None}
    return None if (reason.stage, reason.subject, reason.path) in beside else reason.path


def remarks(verdict: Verdict) -> tuple[Reason, ...]:
    """What everybody should see although it passes."""
    return tuple(reason for reason in verdict.reasons if reason.outcome is Outcome.PASS)


def errands(verdict: Verdict) -> tuple[Errand, ...]:
    """Every command that a reason names, once, in the reasons' order."""
    waiting: dict[tuple[str, str], dict[str, None]] = {}
    for reason in causes(verdict):
        if reason.command:
            waiting.setdefault((reason.command, reason.machine), {})[title(reason)] = None
    return tuple(
        Errand(command=command, machine=machine, titles=tuple(name for name in titles if name))
        for (command, machine), titles in waiting.items()
    )


def title(reason: Reason) -> str:
    """What the reason is about: `smoke sm90`, `check`, or nothing where it is about the whole."""
    return " ".join(part for part in (reason.stage, reason.subject) if part)


def sentence(reason: Reason) -> str:
    """The reason's detail with what it is about in front."""
    about = title(reason)
    return f"{about}: {reason.detail}" if about else reason.detail


def ordered_findings(verdict: Verdict) -> list[tuple[EvidenceFile, Finding]]:
    """Every finding of the records that count, errors first."""
    return sorted(verdict.findings, key=lambda pair: SEVERITIES.index(pair[1].severity))


def render_time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def render_age(file: EvidenceFile | None, as_of: datetime) -> str:
    """How old the record was at that time: `20 minutes`, `5 hours`, `3 days`; "" without a record."""
    if file is None or file.record is None:
        return ""
    age = as_of - file.record.ended
    if age <= -timedelta(minutes=1):  # the moment of a verdict has no fractions of a second
        return "from the future"
    for unit, name in ((timedelta(days=1), "day"), (timedelta(hours=1), "hour"), (timedelta(minutes=1), "minute")):
        if age >= (unit * 2 if name == "day" else unit):
            return count(age // unit, name)
    return "under a minute"


def count(number: int, noun: str) -> str:
    """`1 finding`, `2,000 findings`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def short(digest: str | None, length: int = 12) -> str:
    """The beginning of a digest or commit, without `sha256:`."""
    return "" if digest is None else digest.removeprefix("sha256:")[:length]


def record_words(requirement: Requirement) -> str:
    """What stands for the requirement: the record's path, or that there is none."""
    return "no record" if requirement.file is None else requirement.file.path


def facts(verdict: Verdict) -> tuple[tuple[str, str], ...]:
    """What the verdict is about, as pairs of words and value; images last, with what their registry calls them."""
    pairs = [
        ("channel", verdict.channel),
        ("FlashInfer", verdict.flashinfer_version or "not told"),
        ("commit", verdict.commit or "not told"),
        ("as of", render_time(verdict.as_of)),
        ("pins", verdict.pins_sha256 or "not told"),
        ("policy", verdict.policy_sha256),
    ]
    for target, image_id in sorted(verdict.images.items()):
        pairs.append((f"image {target}", image_id))
        if (manifest := verdict.manifest_digest(target)) is not None:
            pairs.append((f"manifest {target}", manifest))
    return tuple(pairs)


def outcomes(requirements: Iterable[Requirement]) -> str:
    """`5 of 8 requirements are met`."""
    listed = tuple(requirements)
    met = sum(item.outcome is Outcome.PASS for item in listed)
    if not listed:
        return "nothing is required"
    return f"{met} of {count(len(listed), 'requirement')} {'is' if 1 in {met, len(listed)} else 'are'} met"
