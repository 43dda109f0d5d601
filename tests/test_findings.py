"""Findings, where they point, and how GitHub shows them."""

from __future__ import annotations

import pytest

from tooling.findings import Finding, Severity, has_errors, render_annotation


@pytest.mark.parametrize(
    ("finding", "where", "annotation"),
    [
        (Finding(check="drift", detail="0.6.12, not 0.6.13"), "", "::error title=drift::0.6.12, not 0.6.13"),
        (
            Finding(check="drift", detail="old", path="a", line=3, severity=Severity.WARNING, hint="bump"),
            "a:3",
            "::warning file=a,line=3,title=drift::old bump",
        ),
        (
            Finding(check="a,b:c", detail="100%\r\nmore: x, y", path="d:e", severity=Severity.NOTE),
            "d:e",
            "::notice file=d%3Ae,title=a%2Cb%3Ac::100%25%0D%0Amore: x, y",
        ),
    ],
    ids=["nowhere", "path and line", "signs that GitHub reads"],
)
def test_a_finding_points_at_its_place(finding: Finding, where: str, annotation: str) -> None:
    assert finding.where == where
    assert render_annotation(finding) == annotation


def test_only_errors_fail() -> None:
    mild = [Finding(check="c", detail="d", severity=severity) for severity in (Severity.WARNING, Severity.NOTE)]
    assert not has_errors([])
    assert not has_errors(mild)
    assert has_errors([*mild, Finding(check="c", detail="d")])


def test_a_finding_from_an_older_record_has_no_hint_and_no_reason() -> None:
    value = {"check": "c", "severity": "note", "path": None, "line": None, "detail": "d"}
    assert Finding.from_json(value) == Finding(check="c", detail="d", severity=Severity.NOTE)
    assert Finding.from_json(Finding.from_json(value).as_json()) == Finding.from_json(value)


SECRET = "pip install https://u:hunter2@h.example/x.whl?token=hunter2&ref=v0.6.13&hunter2"


def test_a_finding_hides_the_secrets_of_addresses() -> None:
    finding = Finding(check="unpinned", detail=SECRET, hint="see https://hunter2@h.example/?k=hunter2")
    assert "hunter2" not in f"{finding} {finding.as_json()} {render_annotation(finding)}"
    assert "https://****@h.example/x.whl?token=****&ref=v0.6.13&****" in finding.detail
    assert Finding.from_json(finding.as_json()) == finding
