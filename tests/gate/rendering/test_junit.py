"""The verdict as JUnit: what CI servers read of it."""

from __future__ import annotations

import re
from collections import Counter
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gate.rendering import samples
from tests.gate.rendering.hostile import TEXTS, poisoned
from tooling.findings import Finding, Severity
from tooling.gate.escaping import one_line
from tooling.gate.junit import MAX_LINE, render_junit
from tooling.gate.values import Outcome, Reason, Requirement

ALLOWED = {
    "testsuites": ({"name", "tests", "failures", "errors", "skipped", "time"}, ["testsuite"]),
    "testsuite": (
        {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname"},
        ["properties", "testcase"],
    ),
    "properties": (set(), ["property"]),
    "property": ({"name", "value"}, []),
    "testcase": ({"name", "classname", "time"}, ["error", "failure", "system-out"]),
    "failure": ({"message", "type"}, []),
    "error": ({"message", "type"}, []),
    "system-out": (set(), []),
}
"""Element: its attributes (all required) and its children, in this order. What the schemas in use have in common."""


def check_shape(element: ET.Element) -> None:
    attributes, children = ALLOWED[element.tag]
    assert set(element.attrib) == attributes
    places = [children.index(child.tag) for child in element]
    assert places == sorted(places)
    for name in {"time"} & attributes:
        assert re.fullmatch(r"\d+\.\d{3}", element.attrib[name])
    for child in element:
        check_shape(child)


def parse(text: str) -> ET.Element:
    """The suite, after its shape and its sums were checked."""
    root = ET.fromstring(text)
    check_shape(root)
    (suite,) = root
    cases = suite.findall("testcase")
    failed = Counter(child.tag for case in cases for child in case if child.tag != "system-out")
    assert all(sum(child.tag != "system-out" for child in case) <= 1 for case in cases)
    for element in (root, suite):
        assert [int(element.attrib[name]) for name in ("tests", "failures", "errors", "skipped")] == [
            len(cases), failed["failure"], failed["error"], 0]  # fmt: skip
    return suite


def outcomes(suite: ET.Element) -> dict[str, str]:
    tags = {
        case.attrib["name"]: [child.tag for child in case if child.tag != "system-out"]
        for case in suite.iter("testcase")
    }
    return {name: found[0] if found else "" for name, found in tags.items()}


def test_nothing_at_all_is_one_error() -> None:
    assert (
        render_junit(samples.empty())
        == """\
<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="release gate" tests="1" failures="0" errors="1" skipped="0" time="0.000">
  <testsuite name="release gate: pr" timestamp="2026-05-08T02:04:00" hostname="localhost" tests="1" failures="0" errors="1" skipped="0" time="0.000">
    <properties>
      <property name="verdict" value="INCOMPLETE" />
      <property name="first cause" value="NO_EVIDENCE no folder holds a record" />
      <property name="channel" value="pr" />
      <property name="FlashInfer" value="not told" />
      <property name="commit" value="not told" />
      <property name="as of" value="2026-05-08T02:04:00Z" />
      <property name="pins" value="not told" />
      <property name="policy" value="77aa77aa77aa77aa77aa77aa77aa77aa77aa77aa77aa77aa77aa77aa77aa77aa" />
    </properties>
    <testcase classname="gate.evidence" name="NO_EVIDENCE" time="0.000">
      <error message="no folder holds a record" type="NO_EVIDENCE">INCOMPLETE NO_EVIDENCE: no folder holds a record
run: nox -s check</error>
    </testcase>
  </testsuite>
</testsuites>
"""
    )


def test_each_requirement_is_a_case_and_what_is_incomplete_is_an_error() -> None:
    assert outcomes(parse(render_junit(samples.incomplete()))) == {
        "check": "", "image release": "", "smoke sm90": "", "smoke sm100": "error", "gsm8k qwen3-0.6b-vllm": "error",
        "HAND_EDITED evidence/smoke-sm103.json": "error",
    }  # fmt: skip


def test_what_fails_is_a_failure_and_so_is_each_finding_that_fails() -> None:
    found = outcomes(parse(render_junit(samples.failing())))
    (finding,) = [
        name for name in found if name.startswith("h200/evidence/smoke-sm90.json: tooling/warmup/planning.py:88: ")
    ]
    assert found == {"check": "", "image release": "", "smoke sm90": "failure", "smoke sm100": "",
                     "gsm8k qwen3-0.6b-vllm": "", finding: "failure"}  # fmt: skip


def test_a_failure_says_why_and_what_to_run() -> None:
    suite = parse(render_junit(samples.failing()))
    (failure,) = suite.findall("testcase[@name='smoke sm90']/failure")
    assert failure.attrib["type"] == "WRONG_STRATEGY"
    assert "run: nox -s smoke -- --scenario deepep-low-latency\non: a machine with two sm90 GPUs" in (
        failure.text or ""
    )


def test_the_first_cause_stands_on_top_of_the_properties_and_a_pass_has_none() -> None:
    first, second = parse(render_junit(samples.failing())).findall("properties/property")[:2]
    assert (first.attrib["value"], second.attrib["name"]) == ("FAIL", "first cause")
    assert second.attrib["value"].startswith("WRONG_STRATEGY smoke sm90: deepep-low-latency: the warm-up chose")
    assert "first cause" not in render_junit(samples.passing())


def test_a_passing_verdict_has_no_failure() -> None:
    assert set(outcomes(parse(render_junit(samples.passing()))).values()) == {""}


def test_a_pass_that_tells_something_keeps_it_as_output() -> None:
    note = Reason(outcome=Outcome.PASS, word="BYPASS", detail="FLASHINFER_DISABLE_VERSION_CHECK was set", stage="smoke")
    file = samples.evidence(samples.record("smoke"))
    item = Requirement(stage="smoke", subject=None, outcome=Outcome.PASS, file=file, reasons=(note,))
    suite = parse(render_junit(samples.verdict(Outcome.PASS, requirements=(item,), reasons=(note,))))
    assert "BYPASS: smoke: FLASHINFER_DISABLE_VERSION_CHECK" in (suite.findtext("testcase/system-out") or "")


@pytest.mark.parametrize("outcome", [Outcome.FAIL, Outcome.INCOMPLETE])
def test_a_verdict_that_is_not_pass_never_reads_as_one(outcome: Outcome) -> None:
    """Whatever the rest holds: no requirement, no reason, or only met requirements."""
    file = samples.evidence(samples.record("check"))
    for requirements in ((), (samples.met(file),)):
        suite = parse(render_junit(samples.verdict(outcome, requirements=requirements)))
        assert int(suite.attrib["failures"]) + int(suite.attrib["errors"]) == 1


def test_thousands_of_findings_are_all_cases() -> None:
    findings = tuple(Finding(check="pins", detail=f"no. {number}") for number in range(3000))
    file = samples.evidence(samples.record("check", status="fail", findings=findings))
    requirement = Requirement(stage="check", subject=None, outcome=Outcome.FAIL, file=file)
    suite = parse(render_junit(samples.verdict(Outcome.FAIL, requirements=(requirement,))))
    assert suite.attrib["failures"] == "3001"


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_any_text_is_valid_xml_and_stays_text(text: str) -> None:
    written = render_junit(poisoned(text))
    suite = parse(written.encode().decode())
    assert next(suite.iter("testcase")).attrib["name"] == one_line(f"{text} {text}", MAX_LINE)
    assert len(written) < 200_000


@given(st.text(st.characters(exclude_categories=()), max_size=60))
def test_whatever_a_finding_says_the_report_parses(text: str) -> None:
    findings = (Finding(check="pins", detail=text, hint=text, path=text, severity=Severity.ERROR),)
    file = samples.evidence(samples.record("check", findings=findings))
    requirement = Requirement(stage="check", subject=None, outcome=Outcome.FAIL, file=file)
    suite = parse(render_junit(samples.verdict(Outcome.FAIL, requirements=(requirement,))))
    assert suite.findall("testcase/failure")[1].attrib["message"] == one_line(findings[0].detail)
