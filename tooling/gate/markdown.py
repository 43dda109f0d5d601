"""The verdict as GitHub's Markdown, for a job summary or a pull request: bounded in size, and inert.

Every text is escaped with character references, which never act as Markdown. In prose `@` and `#` are parted from what
follows, so that nobody is mentioned and nothing is linked. Sections stand in the order of urgency.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tooling.gate import charts, told
from tooling.gate.accuracy import scores
from tooling.gate.escaping import one_line
from tooling.gate.start_up import Took, start_ups
from tooling.gate.values import EvidenceFile, Outcome, Reason, Verdict

MAX_BYTES = 1_000_000
"""GitHub refuses a job summary above 1 MiB. A pull request's body holds 65,536 characters."""
_BOUNDS = ((300, 600), (100, 300), (40, 200), (15, 120), (5, 80), (2, 40))
"""Rows of a list and characters of a text; the first that fit are taken."""
_SPECIAL = re.compile(
    r"[\\`*\[\]<>|~&$@]"  # what acts wherever it stands
    r"|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])"  # inside a word it does not
    r"|:(?=\S)|(?<=www)\.",  # addresses and emoji
    re.IGNORECASE,
)
_PARTED = re.compile(r"([@#]|\bGH-)(?=\w)", re.IGNORECASE)
_ALERTS = {Outcome.PASS: "TIP", Outcome.INCOMPLETE: "WARNING", Outcome.FAIL: "CAUTION"}
_NOWHERE = "—"


def render_markdown(verdict: Verdict, *, limit_bytes: int = MAX_BYTES) -> str:
    """The summary, with a final newline. What does not fit in `limit_bytes` is left out with a count."""
    text = ""
    for rows, characters in _BOUNDS:
        text = _Page(verdict, rows=rows, characters=characters).render()
        if len(text.encode()) <= limit_bytes:
            break
    return text


def escape(text: str) -> str:
    """The text on one line without anything that acts as Markdown or HTML, in cells of tables too."""
    # A comment behind `@` keeps addresses of mail from becoming links, and is not copied.
    return _refer(one_line(text)).replace("&#64;", "&#64;<!-- -->")


def escape_prose(text: str) -> str:
    """As `escape`, and it mentions nobody and refers to no issue; with zero-width spaces, so not for what is copied."""
    # NUL marks the place: `one_line` has left none.
    return _refer(_PARTED.sub("\\1\x00", one_line(text))).replace("\x00", "&#8203;")


def _refer(text: str) -> str:
    return _SPECIAL.sub(lambda found: f"&#{ord(found.group())};", text)


@dataclass(frozen=True, slots=True)
class _Page:
    verdict: Verdict
    rows: int
    characters: int

    def render(self) -> str:
        blocks = [*self._head(), *self._requirements(), *self._reasons(), *self._errands(), *self._findings(),
                  *self._bump(), *self._start_up(), *self._accuracy(), *self._records()]  # fmt: skip
        return "\n\n".join(blocks) + "\n"

    def _head(self) -> Iterator[str]:
        verdict = self.verdict
        yield f"## Release gate: {verdict.outcome}"
        causes = told.grouped(told.causes(verdict))
        first = (
            self._cause(causes[0], causes[0][0].path, "First cause: ")
            if causes
            else f"{told.outcomes(verdict.requirements)}."
        )
        yield "\n".join(f"> {line}" for line in (f"[!{_ALERTS[verdict.outcome]}]", *first.split("\n")))
        version = self._code(verdict.flashinfer_version) if verdict.flashinfer_version else "not told"
        commit = f", commit {self._code(told.short(verdict.commit))}" if verdict.commit else ""
        yield (
            f"FlashInfer {version}, channel {self._code(verdict.channel)}{commit}, as of "
            f"{told.render_time(verdict.as_of)}: {told.HEADLINES[verdict.outcome]}."
        )

    def _cause(self, group: Sequence[Reason], path: str | None, label: str = "") -> str:
        reason = group[0]
        lines = [f"{label}**{self._code(reason.word)}** {self._text(told.sentence(reason))}"]
        lines += [f"and: {self._text(other.detail)}" for other in group[1 : self.rows]]
        lines += self._more(len(group))
        if path:
            lines.append(f"File: {self._code(path)}")
        if reason.command:
            where = f" on {self._text(reason.machine)}" if reason.machine else ""
            lines.append(f"Run{where}: {self._code(reason.command)}")
        elif reason.machine:
            lines.append(f"On {self._text(reason.machine)}.")
        return "<br>\n".join(lines)

    def _requirements(self) -> Iterator[str]:
        verdict = self.verdict
        yield f"### Requirements\n\n{told.outcomes(verdict.requirements)}."
        rows = [
            (f"**{item.outcome}**", self._text(item.title),
             self._text("; ".join(reason.detail for reason in item.reasons)),
             self._code(item.file.path) if item.file else "no record", told.render_age(item.file, verdict.as_of))
            for item in sorted(verdict.requirements, key=lambda item: item.outcome is Outcome.PASS)[: self.rows]
        ]  # fmt: skip
        yield from self._table(("Outcome", "Requirement", "Why", "Record", "Age"), rows, len(verdict.requirements))

    def _reasons(self) -> Iterator[str]:
        for heading, groups in (
            ("Why else", told.grouped(told.causes(self.verdict))[1:]),
            ("Also to know", told.grouped(told.remarks(self.verdict))),
        ):
            if groups:
                shown = [self._cause(group, told.further_path(self.verdict, group[0])) for group in groups[: self.rows]]
                listed = [f"- {cause}".replace("\n", "\n  ") for cause in shown]
                yield f"### {heading}\n\n" + "\n".join([*listed, *self._more(len(groups), bullet="- ")])

    def _errands(self) -> Iterator[str]:
        errands = told.errands(self.verdict)
        if not errands:
            return
        lines = []
        for errand in errands[: self.rows]:
            where = f"  # {one_line(errand.machine, self.characters)}" if errand.machine else ""
            lines.append(one_line(errand.command, self.characters) + where)
        longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
        fence = "`" * max(3, longest + 1)
        yield "### Still to run\n\n" + "\n".join([f"{fence}console", *lines, fence])
        yield from self._more(len(errands))

    def _findings(self) -> Iterator[str]:
        findings = told.ordered_findings(self.verdict)
        if not findings:
            return
        yield f"### Findings\n\n{told.count(len(findings), 'finding')}, errors first."
        rows = [
            (f"{finding.severity}", self._code(finding.where) if finding.where else _NOWHERE,
             self._text(" ".join(filter(None, (finding.detail, finding.hint and f"(hint: {finding.hint})")))),
             self._code(finding.check), self._code(file.path))
            for file, finding in findings[: self.rows]
        ]  # fmt: skip
        yield from self._table(("Severity", "Place", "What was found", "Check", "Record"), rows, len(findings))

    def _bump(self) -> Iterator[str]:
        bump = self.verdict.bump
        if bump is None:
            return
        before, after = self._code(bump.before or "not told"), self._code(bump.after or "not told")
        yield f"### What this bump changes\n\n{before} to {after}"
        changes = [
            f"- **{self._text(str(change.get('effect')))}** {self._text(str(change.get('text')))}"
            for change in bump.changes[: self.rows]
        ]
        if changes:
            yield "\n".join([*changes, *self._more(len(bump.changes), bullet="- ")])
        faults = bump.row_after.known_faults if bump.row_after else ()
        if faults:
            listed = [f"- {self._code(fault.id)} {self._text(fault.effect)}" for fault in faults[: self.rows]]
            yield "Known faults:\n\n" + "\n".join([*listed, *self._more(len(faults), bullet="- ")])
        rows = [
            (self._code(name), self._code(before) if before else "not there", self._code(after) if after else "gone")
            for name, (before, after) in sorted(bump.companions.items())
        ]
        yield from self._table(("Companion", "Before", "After"), rows[: self.rows], len(rows))

    def _start_up(self) -> Iterator[str]:
        shown = start_ups(self.verdict)
        for one in shown[: self.rows]:
            before = self._text(one.release_before) if one.release_before else "release before"
            rows = [
                (self._code(times.scenario), self._time(times.cold, times.why_not),
                 self._time(times.warm, times.why_not), charts.took(times.cold_before), charts.took(times.warm_before))
                for times in one.times[: self.rows]
            ]  # fmt: skip
            yield f"### Start-up time, {self._text(one.subject)}"
            heads = ("Scenario", "Cold", "Warm", f"Cold, {before}", f"Warm, {before}")
            yield from self._table(heads, rows, len(one.times))
            if compared := one.compared:
                yield self._text(compared)

    def _time(self, value: Took | None, why_not: str) -> str:
        return self._text(why_not) if value is None and why_not else charts.took(value)

    def _accuracy(self) -> Iterator[str]:
        found = scores(self.verdict)
        rows = [
            (self._text(score.subject), self._text(one.name), self._text(charts.accuracy_words(one)))
            for score in found
            for one in score.evaluations
        ]
        pairs = [
            (self._text(score.subject), self._text(pair.against),
             f"{pair.accuracy_before:.3f} to {pair.accuracy_after:.3f}", str(pair.lost), str(pair.gained),
             _NOWHERE if pair.p_value is None else f"{pair.p_value:.2g}")
            for score in found
            for pair in score.pairs
        ]  # fmt: skip
        if rows:
            yield "### Accuracy"
            yield from self._table(("Evaluation", "Run", "Accuracy (95 % interval)"), rows[: self.rows], len(rows))
        heads = ("Evaluation", "Against", "Accuracy", "Lost", "Gained", "McNemar's p")
        yield from self._table(heads, pairs[: self.rows], len(pairs))

    def _records(self) -> Iterator[str]:
        files = (*self.verdict.files, *self.verdict.earlier)
        if not files:
            return
        table = "\n\n".join(self._table(("Record", "Status", "Age", "sha256", "Image", "Commit"),
                                        [self._record(file) for file in files[: self.rows]], len(files)))  # fmt: skip
        yield f"<details><summary>{told.count(len(files), 'record')}</summary>\n\n{table}\n\n</details>"

    def _record(self, file: EvidenceFile) -> Sequence[str]:
        record = file.record
        status = record.status if record else file.reason or "no record"
        image, commit = (told.short(record.image_id), told.short(record.commit)) if record else ("", "")
        return (self._code(file.path), self._text(status), told.render_age(file, self.verdict.as_of) or _NOWHERE,
                self._code(file.sha256), self._code(image) if image else _NOWHERE,
                self._code(commit) if commit else _NOWHERE)  # fmt: skip

    def _table(self, heads: Sequence[str], rows: Sequence[Sequence[str]], number: int) -> Iterator[str]:
        if not rows:
            return
        lines = [heads, ["---"] * len(heads), *rows]
        yield "\n".join(f"| {' | '.join(cell or ' ' for cell in line)} |" for line in lines)
        yield from self._more(number)

    def _more(self, number: int, bullet: str = "") -> Iterator[str]:
        if number > self.rows:
            yield f"{bullet}… and {number - self.rows:,} more."

    def _text(self, text: str) -> str:
        return escape_prose(one_line(text, self.characters))

    def _code(self, text: str) -> str:
        """In `<code>`, where GitHub mentions nobody; a code span cannot hold every text inside a table."""
        return f"<code>{escape(one_line(text, self.characters))}</code>"
