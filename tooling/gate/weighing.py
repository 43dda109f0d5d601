"""All records of one stage and subject, weighed into one requirement: which counts, and what stands against it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tooling.evidence import Record
from tooling.gate.remarks import Remark, note, shown_time
from tooling.gate.values import EvidenceFile, Outcome, Reason, Requirement

WEIGHT: Mapping[Outcome, int] = {Outcome.PASS: 0, Outcome.INCOMPLETE: 1, Outcome.FAIL: 2}
SHOWN = 5
"""How many records that did not count are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A file with its record, and what was said of it. `ours`: it is of the candidate's pins."""

    file: EvidenceFile
    record: Record
    remarks: tuple[Remark, ...]
    ours: bool

    @property
    def counts(self) -> bool:
        return self.record.status == "pass" and worst(remark.outcome for remark in self.remarks) is Outcome.PASS

    @property
    def blocks(self) -> bool:
        """It stands against the release whatever other records say."""
        return self.record.status == "fail" or any(remark.blocks for remark in self.remarks)

    @property
    def age(self) -> tuple[object, ...]:
        """Orders records from old to new, equal ones by their content."""
        return (self.record.ended, self.record.started, self.file.sha256, self.file.path)


MakeReason = Callable[[Remark, EvidenceFile | None], Reason]


def worst(outcomes: Iterator[Outcome] | Sequence[Outcome]) -> Outcome:
    return max(outcomes, key=WEIGHT.__getitem__, default=Outcome.PASS)


def weigh(
    stage: str, subject: str | None, judged: Sequence[Judged], *, missing: Remark, reason: MakeReason
) -> Requirement:
    """The newest record that counts is taken. One that failed is never hidden by it: no newer pass, no other folder.

    A record that does not count does no harm beside one that does, unless it failed or contradicts itself.
    """
    newest = sorted(judged, key=lambda item: item.age, reverse=True)
    taken = next((item for item in newest if item.counts), None)
    blocking = [item for item in newest if item.blocks]
    if taken is None and not blocking:
        return _without(stage, subject, newest, missing=missing, reason=reason)
    reasons = [reason(remark, item.file) for item in blocking for remark in against(item, taken)]
    shown = taken or next((item for item in blocking if item.ours), blocking[0])
    if taken is not None:
        reasons += [reason(remark, taken.file) for remark in taken.remarks]
        others = [item for item in newest if item is not taken and not item.blocks and not item.counts]
        reasons += [reason(remark, None) for remark in _others(others)]
    return _requirement(stage, subject, shown.file, reasons)


def against(item: Judged, taken: Judged | None) -> tuple[Remark, ...]:
    """What a record that blocks says beside the one that was taken."""
    told = tuple(remark for remark in item.remarks if remark.outcome is not Outcome.PASS)
    if not item.ours:
        foreign = tuple(remark for remark in told if remark.word in {"FOREIGN", "NO_PINS"})
        failed = f"the record failed ({item.record.reason or 'no reason given'}) and is not of this release"
        return foreign or (Remark(word="FOREIGN", detail=failed),)
    if taken is None or item.age > taken.age:
        return told
    failed, passed = shown_time(item.record.ended), shown_time(taken.record.ended)
    why = told[0].detail if told else "no reason given"
    both = f"it failed at {failed} and passed at {passed} on the same pins: {why}"
    detail = f"{both}; run it again and hand over that record alone"
    return (Remark(word="CONTRADICTORY", detail=detail),)


def _without(
    stage: str, subject: str | None, newest: Sequence[Judged], *, missing: Remark, reason: MakeReason
) -> Requirement:
    """No record counts: what stands in the way of the one that comes nearest, a pass of these pins before all."""
    if not newest:
        return _requirement(stage, subject, None, [reason(missing, None)])
    nearest = max(newest, key=lambda item: (item.ours, item.record.status == "pass", item.age))
    return _requirement(stage, subject, nearest.file, [reason(remark, nearest.file) for remark in nearest.remarks])


def _others(items: Sequence[Judged]) -> Iterator[Remark]:
    if items:
        named = [f"{item.file.path} ({_words(item)})" for item in items[:SHOWN]]
        more = [f"and {len(items) - SHOWN} more"] if len(items) > SHOWN else []
        yield note("NOT_COUNTED", f"other records did not count: {', '.join([*named, *more])}")


def _words(item: Judged) -> str:
    words = dict.fromkeys(remark.word for remark in item.remarks if remark.outcome is not Outcome.PASS)
    return ", ".join(words)


def _requirement(stage: str, subject: str | None, file: EvidenceFile | None, reasons: Sequence[Reason]) -> Requirement:
    return Requirement(
        stage=stage,
        subject=subject,
        outcome=worst([item.outcome for item in reasons]),
        file=file,
        reasons=tuple(sorted(reasons, key=lambda item: -WEIGHT[item.outcome])),
    )
