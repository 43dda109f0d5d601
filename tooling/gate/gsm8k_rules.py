"""What a passing gsm8k record shows beside its status: enough questions, a baseline, the score that it claims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tooling.evidence import Record
from tooling.gate.policy import Channel
from tooling.gate.remarks import Remark, contradiction, note, public
from tooling.gsm8k.statistics import ALPHA, mcnemar_exact


def check_gsm8k(record: Record, channel: Channel) -> Iterator[Remark]:
    """A record whose measurements have another shape contradicts its pass."""
    try:
        yield from _runs(record.measurements)
        yield from _server(record, record.measurements["server"], channel)  # type: ignore[arg-type]
        yield from _rules(record.measurements, channel)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, ArithmeticError, RecursionError) as cause:
        yield contradiction(f"the record says pass and its measurements are not those of an evaluation: {cause!r}")


def _runs(measured: Mapping[str, Any]) -> Iterator[Remark]:
    config = measured["config"]
    floor = config["accuracy_threshold"] - config["tolerance"]
    if not measured["runs"]:
        yield contradiction("the record says pass and nothing was evaluated")
    for run in measured["runs"]:
        if run["reason"] is not None:
            yield contradiction(f"the record says pass and a run ended with {run['reason']}")
        elif run["accuracy"] is None or run["accuracy"] < floor - 1e-9:
            yield contradiction(f"the record says pass at an accuracy of {run['accuracy']}; {floor:.3f} is expected")
    if len(measured["verdicts"]) != measured["data"]["asked"]:
        asked, told = measured["data"]["asked"], len(measured["verdicts"])
        yield contradiction(f"{asked} questions were asked and the record has {told} verdicts")
    yield from _counts(measured)


def _counts(measured: Mapping[str, Any]) -> Iterator[Remark]:
    """The first run's accuracy against the verdicts of its questions, and whether these make a valid result."""
    if not measured["runs"] or measured["runs"][0]["accuracy"] is None:
        return
    verdicts, claimed = list(measured["verdicts"].values()), measured["runs"][0]["accuracy"]
    replied = [item for item in verdicts if item not in {"failed", "timeout", "not-asked"}]
    if not replied:
        yield contradiction(f"the accuracy is given as {claimed:.4f}; no question has a reply")
        return
    share = replied.count("correct") / len(replied)
    if abs(share - claimed) > 0.0005:
        yield contradiction(f"the accuracy is given as {claimed:.4f}; its verdicts give {share:.4f}")
    config, lost = measured["config"], len(verdicts) - len(replied)
    if lost > int(config["max_failed_rate"] * len(verdicts) + 1e-9):
        yield contradiction(f"the record says pass and {lost} of {len(verdicts)} questions brought no reply")
    without = sum(item in {"unparsable", "empty"} for item in replied)
    if without / len(replied) > config["max_unparsable_rate"]:
        yield contradiction(f"the record says pass and {without} of {len(replied)} replies hold no number")


def _server(record: Record, server: Mapping[str, Any], channel: Channel) -> Iterator[Remark]:
    found, pinned = server["flashinfer_version"], record.flashinfer_version
    if found is not None and pinned is not None and public(found) != public(pinned):
        yield contradiction(f"the record says pass for {pinned} and the server has FlashInfer {found}")
    if server["image_id"] != record.image_id:
        yield contradiction("the record names one image and its server another")
    silenced = {name: value for name, value in server["env"].items() if name == "FLASHINFER_DISABLE_VERSION_CHECK"}
    for name, value in silenced.items():
        detail = f"the server was started with {name}={value}"
        yield note("BYPASS", detail) if channel.allows("bypasses") else Remark(word="BYPASS", detail=detail)


def _rules(measured: Mapping[str, Any], channel: Channel) -> Iterator[Remark]:
    rules, asked, baseline = channel.gsm8k, measured["data"]["asked"], measured["baseline"]
    if asked < rules.min_questions:
        detail = f"{asked} questions were asked; {channel.name} wants {rules.min_questions}"
        yield Remark(word="FEW_QUESTIONS", detail=detail)
    if baseline is None:
        if rules.baseline:
            detail = "it was not compared with an earlier release (`--baseline RECORD`)"
            yield Remark(word="NO_BASELINE", detail=detail)
    else:
        yield from _compared(baseline, asked=len(measured["verdicts"]))


def _compared(baseline: Mapping[str, Any], *, asked: int) -> Iterator[Remark]:
    """The comparison's own judgement, made again from its counts."""
    counts = [baseline["lost"], baseline["gained"], baseline["paired"]]
    if any(type(count) is not int or count < 0 for count in counts):
        yield contradiction("the record says pass and the counts of its comparison are none")
        return
    lost, gained, paired = counts
    if not 0 < paired <= asked or lost + gained > paired:
        yield contradiction(f"the record says pass and its comparison is over {paired} of {asked} questions")
    elif mcnemar_exact(lost, gained) < ALPHA and lost > gained:
        yield contradiction(f"the record says pass and {lost} questions were lost against the baseline")
