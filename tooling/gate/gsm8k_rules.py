"""What a passing gsm8k record shows beside its status: enough questions, a baseline, the score that it claims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tooling.evidence import Record
from tooling.gate.policy import Channel
from tooling.gate.remarks import Remark, contradiction, note, public, same_commit
from tooling.gsm8k.data_location import PUBLIC_TEST_SHA256, PUBLIC_TRAIN_SHA256
from tooling.gsm8k.statistics import ALPHA, mcnemar_exact


def check_gsm8k(record: Record, channel: Channel) -> Iterator[Remark]:
    """A record whose measurements have another shape contradicts its pass."""
    try:
        yield from _runs(record.measurements)
        yield from _server(record, record.measurements["server"], channel)  # type: ignore[arg-type]
        yield from _questions(record, record.measurements, channel)
        yield from _baseline(record, record.measurements, channel)
        yield from _warm(record.measurements)
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
    if found is None and not (record.image_id and {"image", "smoke"} & set(channel.stages)):
        detail = "nobody knows which FlashInfer the server had: it does not say, and no other stage looked at its image"
        yield Remark(word="UNKNOWN_RELEASE", detail=detail)
    if found is not None and pinned is not None and public(found) != public(pinned):
        yield contradiction(f"the record says pass for {pinned} and the server has FlashInfer {found}")
    if server["image_id"] != record.image_id:
        yield contradiction("the record names one image and its server another")
    silenced = {name: value for name, value in server["env"].items() if name == "FLASHINFER_DISABLE_VERSION_CHECK"}
    for name, value in silenced.items():
        detail = f"the server was started with {name}={value}"
        yield note("BYPASS", detail) if channel.allows("bypasses") else Remark(word="BYPASS", detail=detail)


def _questions(record: Record, measured: Mapping[str, Any], channel: Channel) -> Iterator[Remark]:
    """As many as the channel asks for, else as many as the configuration does; and of nobody's own choice."""
    data, least = measured["data"], channel.gsm8k.min_questions
    asked = data["asked"]
    fewer = next((item.detail for item in record.findings if item.reason == "FEWER_QUESTIONS"), "")
    own = "; give GSM8K's own files (`--data DIR`)" if data["source"] == "shipped" else ""
    if asked < least:
        yield Remark(word="FEW_QUESTIONS", detail=f"{asked} questions were asked; {channel.name} wants {least}{own}")
    elif fewer and not least:
        yield Remark(word="FEW_QUESTIONS", detail=fewer + own)
    found = (data["test_sha256"], data["train_sha256"])
    if data.get("overridden") and found != (PUBLIC_TEST_SHA256, PUBLIC_TRAIN_SHA256):
        told = "`--data` gave other problems than GSM8K's published ones; name them in the configuration (`data`)"
        yield note("OVERRIDE", told) if channel.allows("overrides") else Remark(word="OVERRIDE", detail=told)


def _baseline(record: Record, measured: Mapping[str, Any], channel: Channel) -> Iterator[Remark]:
    baseline = measured["baseline"]
    if baseline is not None:
        yield from _compared(baseline, asked=len(measured["verdicts"]))
    if not channel.gsm8k.baseline:
        return
    if baseline is None:
        detail = "it was not compared with an earlier release (`--baseline RECORD`)"
        yield Remark(word="NO_BASELINE", detail=detail)
    else:
        yield from _earlier(record, baseline.get("of") or {})


def _earlier(record: Record, of: Mapping[str, Any]) -> Iterator[Remark]:
    """A release that is compared with itself never got worse. Another build of its pins may be what is replaced."""
    pins, image, commit = of.get("pins_sha256"), of.get("image_id"), of.get("commit")
    same_pins = pins is not None and pins == record.pins_sha256
    if pins is None and image is None:
        detail = "the record does not say whose record it was compared with (`--baseline RECORD`)"
        yield Remark(word="NO_BASELINE", detail=detail)
    elif image is not None and image == record.image_id:
        detail = "it was compared with a record of its own image; give an earlier release's (`--baseline RECORD`)"
        yield Remark(word="NO_BASELINE", detail=detail)
    elif same_pins and (commit is None or record.commit is None or same_commit(commit, record.commit)):
        detail = "it was compared with a record of its own commit; give an earlier release's (`--baseline RECORD`)"
        yield Remark(word="NO_BASELINE", detail=detail)
    elif same_pins:
        yield note("SAME_PINS", f"it was compared with another build of the same pins, commit {str(commit)[:12]}")


def _warm(measured: Mapping[str, Any]) -> Iterator[Remark]:
    """A second run over the warm cache was compared with the first, and changed nothing in either direction."""
    warm = measured["warm_against_cold"]
    if warm is not None:
        yield from _compared(warm, asked=len(measured["verdicts"]), against="the cold run", both_ways=True)
    elif len(measured["runs"]) > 1:
        yield contradiction("the record says pass and its second run was not compared with the first")


def _compared(
    baseline: Mapping[str, Any], *, asked: int, against: str = "the baseline", both_ways: bool = False
) -> Iterator[Remark]:
    """The comparison's own judgement, made again from its counts."""
    counts = [baseline["lost"], baseline["gained"], baseline["paired"]]
    if any(type(count) is not int or count < 0 for count in counts):
        yield contradiction("the record says pass and the counts of its comparison are none")
        return
    lost, gained, paired = counts
    if not 0 < paired <= asked or lost + gained > paired:
        yield contradiction(f"the record says pass and its comparison is over {paired} of {asked} questions")
    elif mcnemar_exact(lost, gained) < ALPHA and (lost > gained or both_ways):
        gains = f" and {gained} gained" if both_ways else ""
        yield contradiction(f"the record says pass and {lost} questions were lost{gains} against {against}")
