"""The gate over what a GPU really recorded (`tests/data/smoke`), whole and with anything in it changed."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gate.samples import AS_OF, COMMIT, IMAGE, PINS, START, VERSION, evidence, make_channel, table, words
from tooling.errors import InputError
from tooling.evidence import Record, digest, parse_record, seal
from tooling.gate.attestation import render_statement
from tooling.gate.fields import verdict_fields
from tooling.gate.html_page import render_html
from tooling.gate.junit import render_junit
from tooling.gate.markdown import render_markdown
from tooling.gate.text import render_text
from tooling.gate.values import EvidenceFile, Outcome, Verdict
from tooling.gate.verdict import judge

REAL = Path(__file__).resolve().parents[1] / "data/smoke"
POLICY = """\
[channels.release]
stages = ["check", "image", "smoke", "gsm8k"]
[channels.release.image]
targets = ["release"]
[channels.release.smoke]
architectures = ["sm90"]
not_covered = ["flashinfer-cubin", "flashinfer-jit-cache", "nvidia-cutlass-dsl"]
min_speedup = 1.5
[channels.release.gsm8k]
configs = ["configs/gsm8k/qwen.yaml"]
baseline = true
[[channels.release.known_faults]]
id = "flashinfer#3868"
reason = "falls back to the default tactic"
expires = 2026-12-31
"""
CHANNEL = make_channel(text=POLICY)


def release(version: str, smoke: str | None = None) -> dict[str, Record]:
    """A release's records; the smoke's measurements are what an H200 gave."""
    real = parse_record((REAL / f"h200-{smoke or version}.json").read_text())
    records = {
        title: replace(
            record, flashinfer_version=version,
            measurements=json.loads(json.dumps(record.measurements).replace(VERSION, version)),
        )
        for title, record in evidence().items()
    }  # fmt: skip
    records["smoke sm90"] = replace(
        real, pins_sha256=PINS, commit=COMMIT, image_id=IMAGE, started=START, ended=START, tool_version="0.1.0"
    )
    return records


def judged(bodies: dict[str, dict[str, Any]], text: str = POLICY) -> Verdict:
    """The verdict over those records as they would lie on disk, every one sealed."""
    files = [_file(f"evidence/{title.replace(' ', '-')}.json", body) for title, body in bodies.items()]
    return judge(files, make_channel(text=text), as_of=AS_OF, table=table())


def _file(path: str, body: dict[str, Any]) -> EvidenceFile:
    text = json.dumps({**body, "digest": digest(body)})
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    try:
        return EvidenceFile(path=path, sha256=sha256, record=parse_record(text))
    except InputError as error:
        return EvidenceFile(path=path, sha256=sha256, reason=error.reason, problem=error.message)


def bodies(version: str = VERSION, smoke: str | None = None) -> dict[str, dict[str, Any]]:
    return {title: json.loads(json.dumps(seal(record))) for title, record in release(version, smoke).items()}


def render_all(verdict: Verdict) -> None:
    render_text(verdict, lambda text, *styles: text).encode()
    render_html(verdict).encode()
    render_markdown(verdict).encode()
    render_junit(verdict).encode()
    json.dumps(verdict_fields(verdict))
    try:
        render_statement(verdict)
    except InputError as error:
        assert error.reason in {"NO_IMAGE", "BAD_DIGEST"}  # noqa: PT017  # any other is a fault


@pytest.mark.parametrize("version", ["0.6.13", "0.7.0.post1"])
def test_what_an_h200_recorded_completes_a_release(version: str) -> None:
    verdict = judged(bodies(version))
    assert (verdict.outcome, words(verdict)) == (Outcome.PASS, [])
    assert "11 as expected, 0 not" in render_html(verdict)
    assert [reason.detail for reason in verdict.reasons if reason.word == "NOT_COVERED"] == [
        "not covered, as release allows: flashinfer-cubin is not installed",
        "not covered, as release allows: flashinfer-jit-cache is not installed",
        "not covered, as release allows: nvidia-cutlass-dsl is pinned and not installed",
    ]
    render_all(verdict)


def test_a_companion_that_the_release_may_not_go_without_is_named_with_the_policys_key() -> None:
    verdict = judged(bodies(), POLICY.replace(', "nvidia-cutlass-dsl"]', "]"))
    assert (verdict.outcome, words(verdict)) == (Outcome.INCOMPLETE, ["NOT_COVERED smoke sm90"])
    assert verdict.reasons[0].detail == (
        "not covered: nvidia-cutlass-dsl is pinned and not installed; a release that may go without it says so in "
        "channels.release.smoke.not_covered"
    )


def test_a_known_fault_of_a_real_run_is_shown_until_its_day_and_fails_after_it() -> None:
    assert [reason.word for reason in judged(bodies()).reasons if reason.word == "KNOWN_FAULT"] == ["KNOWN_FAULT"]
    assert words(judged(bodies(), POLICY.replace("2026-12-31", "2026-05-31"))) == ["ALLOWANCE_EXPIRED smoke sm90"]
    assert words(judged(bodies(), POLICY[: POLICY.index("[[")])) == ["KNOWN_FAULT smoke sm90"]
    assert words(judged(bodies("0.7.0.post1"), POLICY[: POLICY.index("[[")])) == []


@pytest.mark.parametrize(
    ("key", "names"),
    [("multi_rank", ["two-ranks"]), ("deepep", ["deepep-high-throughput", "deepep-low-latency", "deepep-v2"])],
)
def test_scenarios_that_were_not_tried_are_told_once_unless_the_channel_leaves_them_out(
    key: str, names: list[str]
) -> None:
    found = bodies()
    body = found["smoke sm90"]["measurements"]
    body["scenarios"] = [one for one in body["scenarios"] if one["name"] not in names]
    verdict = judged(found)
    assert (verdict.outcome, words(verdict)) == (Outcome.INCOMPLETE, ["NOT_COVERED smoke sm90"] * len(names))
    for text in (render_text(verdict, lambda text, *styles: text), render_markdown(verdict)):
        head, _, rest = text.partition("still to run" if "still to run" in text else "### Still to run")
        assert head.count("nox -s smoke") == 1
        assert rest.count("nox -s smoke") == 1
        assert all(f"the scenario {name} was not tried" in head for name in names)
    assert render_html(verdict).count("<code>nox -s smoke") == 2  # the first cause, and what is still to run
    left_out = POLICY.replace("min_speedup", f"{key} = false\nmin_speedup")
    assert judged(found, left_out).outcome is Outcome.PASS


def test_how_much_faster_a_warm_start_is_leaves_out_what_was_compiled() -> None:
    assert judged(bodies("0.7.0.post1")).outcome is Outcome.PASS
    verdict = judged(bodies("0.7.0.post1"), POLICY.replace("min_speedup = 1.5", "min_speedup = 1000"))
    assert verdict.outcome is Outcome.FAIL
    assert {reason.word for reason in verdict.reasons if reason.outcome is Outcome.FAIL} == {"WARM_TOO_SLOW"}


def test_a_run_that_held_a_diagnosis_is_no_evidence() -> None:
    assert "DIAGNOSIS smoke sm90" in words(judged(bodies("0.6.12")))


def test_the_record_of_another_release_is_foreign() -> None:
    assert "FOREIGN smoke sm90" in words(judged(bodies("0.6.13", smoke="0.7.0.post1")))


Place = tuple[str | int, ...]

HARMLESS = (
    "manifest_digest",  # null before the image was pushed
    "format",  # 1, which True is not
    "subject",  # null, as before
    "reason",
    "gpu",  # its architecture is compared, the rest shown
    "started",  # within a second of what it was
    "tool_version",
    "findings",  # a warning or note less, or in other words: an error there counts
    "measurements.sites.#",  # a pin less: how many there must be, the check itself knows
    "measurements.versions.torch",
    "measurements.versions.flashinfer-cubin",  # what is not installed cannot disagree
    "measurements.conditions",  # of an evaluation: shown, and compared by the stage itself
    "measurements.config.name",
    "measurements.config.sha256",
    "measurements.config.startup_max_wait_seconds",
    "measurements.config.accuracy_threshold",  # a smaller number than the one that was reached
    "measurements.config.tolerance",
    "measurements.data.available",
    "measurements.data.slice",
    "measurements.data.slice_seed",
    "measurements.data.source",
    "measurements.data.test_sha256",
    "measurements.data.train_sha256",
    "measurements.server",  # release, image and environment are compared below
    "measurements.runs.#.",
    "measurements.baseline.",
    "measurements.verdicts.",  # a wrong answer in other words
    "measurements.warm_against_cold",
    "measurements.files",
    "measurements.jit",  # of a smoke: shown; it is judged again from what each rank saw
    "measurements.judged.",
    "measurements.judged",
    "measurements.took_s",
    "measurements.pinned.",
    "measurements.not_covered",
    "measurements.machine.",
    "measurements.scenarios.#.cold.",
    "measurements.scenarios.#.warm.",
)
"""Where a change may leave a pass: what stands there is shown, or no rule depends on that part of it."""

TELLING = (
    "measurements.judged.status",
    "measurements.machine.arch",
    "measurements.machine.packages.flashinfer-python",
    "measurements.baseline.lost",
    "measurements.baseline.gained",
    "measurements.baseline.paired",
    "measurements.runs.#.accuracy",
    "measurements.runs.#.reason",
    "measurements.server.image_id",
    "measurements.scenarios.#.cold.ranks",
    "measurements.scenarios.#.warm.ranks",
    "measurements.scenarios.#.cold.ranks.#",
    "measurements.scenarios.#.warm.ranks.#",
    "measurements.scenarios.#.cold.ranks.#.end",
    "measurements.scenarios.#.warm.ranks.#.end",
)
"""What must not change to any of the values, although it stands below something harmless."""


def named(place: Place) -> str:
    return ".".join("#" if isinstance(key, int) else key for key in place)


VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 3.5, 1e308, 10**400, "", "x", "<b>\u202e\x00", "\ud800", "9" * 5000, [], {}, [None], [[]],
    [{}], {"": None}, {"a": {"b": [1]}}, "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-06-01T12:00:00",
)  # fmt: skip
GONE = object()


@cache
def texts(version: str) -> dict[str, str]:
    return {title: json.dumps(body) for title, body in bodies(version).items()}


def places(value: object, above: Place = ()) -> Iterator[Place]:
    """Every place below; of a long list its first four."""
    if above:
        yield above
    if isinstance(value, dict):
        for key, one in value.items():
            yield from places(one, (*above, key))
    elif isinstance(value, list):
        for number, one in enumerate(value[:4]):
            yield from places(one, (*above, number))


def spoil(body: dict[str, Any], place: Place, value: object) -> None:
    inner: Any = body
    for key in place[:-1]:
        inner = inner[key]
    if value is GONE:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value


def is_harmless(name: str, value: object) -> bool:
    if name in TELLING:  # a small count of questions is as good as another
        return name.startswith("measurements.baseline") and value in (0, 1)
    return any(name == one.rstrip(".") or name.startswith(one if one[-1] == "." else f"{one}.") for one in HARMLESS)


@settings(max_examples=60)
@given(
    st.sampled_from(["0.6.13", "0.7.0.post1"]),
    st.sampled_from(["check", "image release", "smoke sm90", "gsm8k qwen"]),
    st.sampled_from([GONE, *VALUES]),
    st.randoms(use_true_random=False),
)
def test_whatever_a_sealed_record_holds_there_is_a_verdict_and_no_pass_by_it(
    version: str, title: str, value: object, chance: random.Random
) -> None:
    found = {name: json.loads(text) for name, text in texts(version).items()}
    key = chance.choice([key for key in found[title] if key != "digest"])
    under = [place for place in places(found[title]) if place[0] == key]
    deep = chance.choice(sorted({len(place) for place in under}))
    place = chance.choice([one for one in under if len(one) == deep])
    spoil(found[title], place, value)
    verdict = judged(found)
    render_all(verdict)
    if verdict.outcome is Outcome.PASS and found[title] != json.loads(texts(version)[title]):
        assert is_harmless(named(place), value), (title, place, value)


def test_nothing_but_a_pass_of_the_unaltered_kind_lets_a_release_go() -> None:
    """The fields that carry the verdict: each altered to any of the values is no pass."""
    for title in texts("0.6.13"):
        for key in ("stage", "status", "pins_sha256", "flashinfer_version", "commit", "dirty", "ended", "measurements"):
            for value in (GONE, None, True, "x", [], {"": None}):
                found = {name: json.loads(one) for name, one in texts("0.6.13").items()}
                if found[title][key] == value and type(found[title][key]) is type(value):
                    continue
                spoil(found[title], (key,), value)
                assert judged(found).outcome is not Outcome.PASS, (title, key, value)
