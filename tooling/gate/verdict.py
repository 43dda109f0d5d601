"""The verdict of a channel over all records: every requirement weighed, everything else looked at, the cause on top."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from tooling.capabilities.table import Row, Table
from tooling.evidence import Record, title
from tooling.gate.bump_change import find_change, find_row
from tooling.gate.candidate import Candidate, Given, find_candidate
from tooling.gate.judging import judge_record
from tooling.gate.missing import command_for
from tooling.gate.policy import STAGES, Channel
from tooling.gate.remarks import Remark, note, same_commit
from tooling.gate.values import EvidenceFile, Outcome, Reason, Requirement, Verdict
from tooling.gate.weighing import WEIGHT, Judged, MakeReason, against, weigh, worst

_AFTER_IMAGE = {"smoke", "gsm8k"}
"""Stages that need the image: without it, what they lack follows from that."""


def judge(
    files: Sequence[EvidenceFile],
    channel: Channel,
    *,
    as_of: datetime,
    table: Table,
    given: Given | None = None,
    earlier: Sequence[EvidenceFile] = (),
) -> Verdict:
    """The verdict; the order of `files` does not count. `earlier` are shown beside it and never judged."""
    files, earlier = _in_order(files), _in_order(earlier)
    candidate = find_candidate(_records(files), channel, given or Given())
    release, pins = candidate.flashinfer_version, candidate.pins_sha256
    bench = _Bench(channel=channel, candidate=candidate, as_of=as_of, row=find_row(table, release), earlier=earlier)
    requirements, reasons = bench.weigh(files)
    return Verdict(
        outcome=worst([reason.outcome for reason in reasons]),
        channel=channel.name,
        as_of=as_of,
        policy_sha256=channel.sha256,
        flashinfer_version=release,
        pins_sha256=pins,
        commit=candidate.commit,
        images=candidate.images,
        requirements=requirements,
        reasons=reasons,
        files=files,
        earlier=earlier,
        row=bench.row,
        bump=find_change(_records(files), _records(earlier), after=release, pins=pins, table=table),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bench:
    """What every record is held against."""

    channel: Channel
    candidate: Candidate
    as_of: datetime
    row: Row | None
    earlier: Sequence[EvidenceFile]

    def weigh(self, files: Sequence[EvidenceFile]) -> tuple[tuple[Requirement, ...], tuple[Reason, ...]]:
        """Every requirement, and every reason in order of weight."""
        judged = [self._judge(file, file.record) for file in files if file.record is not None]
        requirements = self._weigh_all(judged)
        reasons = [
            *self._unread(files, requirements),
            *(reason for item in requirements for reason in item.reasons),
            *self._unasked(judged, requirements),
            *self._elsewhere(),
        ]
        return requirements, tuple(sorted(reasons, key=_order))

    def _judge(self, file: EvidenceFile, record: Record) -> Judged:
        remarks = judge_record(record, self.channel, self.candidate, as_of=self.as_of, row=self.row)
        return Judged(file=file, record=record, remarks=remarks, ours=record.pins_sha256 == self.candidate.pins_sha256)

    def _weigh_all(self, judged: Sequence[Judged]) -> tuple[Requirement, ...]:
        """Every requirement in the order of the stages; what follows from the image is said to."""
        found: list[Requirement] = []
        for stage, subject in self.channel.required:
            of_it = [item for item in judged if (item.record.stage, item.record.subject) == (stage, subject)]
            missing = Remark(word="MISSING", detail="there is no record" + self._consequence(stage, found))
            found.append(weigh(stage, subject, of_it, missing=missing, reason=self._reason(stage, subject, found)))
        return tuple(found)

    def _unread(self, files: Sequence[EvidenceFile], found: Sequence[Requirement]) -> Iterator[Reason]:
        """Files that are no record: nobody knows what they would have said, so they never let a release pass."""
        for file in files:
            if file.record is None:
                stage, subject = _named(file.path)
                yield self._reason(stage, subject, found)(Remark(word=file.reason, detail=file.problem), file)

    def _unasked(self, judged: Sequence[Judged], found: Sequence[Requirement]) -> Iterator[Reason]:
        """Records that nothing asks for. A failing one still stands against the release, unless it only informs."""
        for item in judged:
            record, asked = item.record, self.channel.required
            if (record.stage, record.subject) in asked or not item.blocks:
                continue
            reason = self._reason(record.stage, record.subject, found)
            if self._informs(record):
                told = f"it says {record.status} ({record.reason or 'no reason given'}); it only informs"
                yield reason(note("INFORMS", told), item.file)
            else:
                yield from (reason(remark, item.file) for remark in against(item, None))

    def _elsewhere(self) -> Iterator[Reason]:
        """Where the tree has moved on since the records were made, a pass is easily taken for one of the tree."""
        head, commit = self.candidate.head, self.candidate.commit
        if head is not None and commit is not None and not same_commit(head, commit):
            told = f"the tree is at commit {head[:12]}, and this is of {commit[:12]}; `--commit` asks for other records"
            yield self._reason(None, None, ())(note("OTHER_COMMIT", told), None)

    def _informs(self, record: Record) -> bool:
        return record.stage == "bump" or title(record.stage, record.subject) in self.channel.informs

    def _consequence(self, stage: str, found: Sequence[Requirement]) -> str:
        """What the missing record follows from, if the image that it needs is not there."""
        tested = self._tested(found)
        if stage not in _AFTER_IMAGE or tested is None or tested.outcome is Outcome.PASS:
            return ""
        return f"; {tested.title} comes first, and it is {tested.outcome}"

    def _tested(self, found: Sequence[Requirement]) -> Requirement | None:
        return next((one for one in found if (one.stage, one.subject) == ("image", self.channel.image.tested)), None)

    def _image(self, found: Sequence[Requirement]) -> str | None:
        """What to run smoke and gsm8k in: the proved image, or the name of the one that is still to be built."""
        tested, candidate = self._tested(found), self.candidate
        if candidate.tested is None and self.channel.allows("no-image"):
            return None
        is_to_be_built = tested is not None and tested.outcome is not Outcome.PASS
        return (None if is_to_be_built else candidate.tested) or candidate.tag or "TAG"

    def _baseline(self, subject: str | None) -> str | None:
        """The newest passing record of that evaluation of the release before."""
        told = [(file.record, file.path) for file in self.earlier if file.record and file.record.status == "pass"]
        found = [(one.ended, path) for one, path in told if (one.stage, one.subject) == ("gsm8k", subject)]
        return max(found)[1] if found else None

    def _reason(self, stage: str | None, subject: str | None, found: Sequence[Requirement]) -> MakeReason:
        baseline = self._baseline(subject) if stage == "gsm8k" else None  # of all records, which may be many
        command, machine = command_for(
            stage or "", subject, self.channel,
            version=self.candidate.flashinfer_version, image=self._image(found), baseline=baseline,
        )  # fmt: skip

        def make(remark: Remark, file: EvidenceFile | None) -> Reason:
            helps = remark.outcome is Outcome.INCOMPLETE
            return Reason(
                outcome=remark.outcome,
                word=remark.word,
                detail=remark.detail,
                stage=stage,
                subject=subject,
                path=None if file is None else file.path,
                command=command if helps else "",
                machine=machine if helps else "",
            )

        return make


def _in_order(files: Sequence[EvidenceFile]) -> tuple[EvidenceFile, ...]:
    return tuple(sorted(files, key=lambda file: (file.path, file.sha256)))


def _records(files: Sequence[EvidenceFile]) -> list[Record]:
    return [file.record for file in files if file.record is not None]


def _named(path: str) -> tuple[str | None, str | None]:
    """Stage and subject that a file's name tells."""
    name = path.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".json")
    stage, _, subject = name.partition("-")
    return (stage, subject or None) if stage in {*STAGES, "bump"} else (None, None)


def _order(reason: Reason) -> tuple[object, ...]:
    """Heaviest first; of one weight, an earlier stage is the cause of a later one."""
    place = STAGES.index(reason.stage) if reason.stage in STAGES else len(STAGES)
    return (-WEIGHT[reason.outcome], place, reason.subject or "", reason.path or "", reason.word, reason.detail)
