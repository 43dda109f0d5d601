"""The page as text: what it holds, that it is well formed, and that nothing in it acts. Browsers: `test_browser`."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gate.rendering import samples
from tests.gate.rendering.hostile import TEXTS, poisoned
from tooling.findings import Finding, Severity
from tooling.gate.escaping import clean
from tooling.gate.html_elements import code, element, link, prose
from tooling.gate.html_page import render_html
from tooling.gate.values import EvidenceFile, Outcome, Requirement, Verdict

VOID = {"meta", "rect", "line", "circle", "wbr"}


class Page(HTMLParser):
    """The elements of a page, checked to be closed in the order in which they were opened."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def check_inert(page: Page) -> None:
    """No script, no handler, no inline style, nothing that loads, and links only within the page or to https."""
    loading = {
        "script",
        "img",
        "link",
        "iframe",
        "object",
        "embed",
        "base",
        "form",
        "input",
        "video",
        "audio",
        "use",
        "image",
    }
    assert loading.isdisjoint(tag for tag, _ in page.elements)
    for _, attributes in page.elements:
        assert not [
            name for name in attributes if name.startswith("on") or name in {"style", "src", "srcset", "xlink:href"}
        ]
        address = attributes.get("href")
        assert address is None or address.startswith(("#", "https://"))


def check_structure(page: Page) -> None:
    """Ids are unique, what refers to one finds it, and no heading skips a level."""
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in page.elements:
        for name in ("aria-labelledby", "aria-describedby"):
            assert attributes.get(name) is None or attributes[name] in ids
        address = attributes.get("href") or ""
        assert not address.startswith("#") or address[1:] in ids
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def tags(page: Page) -> list[str]:
    """Without those that follow from a text: code between backticks, and where a path may break."""
    return [tag for tag, _ in page.elements if tag not in {"code", "wbr"}]


@pytest.mark.parametrize("name", samples.SAMPLES)
def test_a_page_is_well_formed_and_inert(name: str) -> None:
    page = Page(render_html(samples.SAMPLES[name]()))
    check_inert(page)
    check_structure(page)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_no_text_is_more_than_text(text: str) -> None:
    written = render_html(poisoned(text))
    page = Page(written.encode().decode())
    check_inert(page)
    check_structure(page)
    assert clean(text)[:2_900] in page.text
    plain = Page(render_html(poisoned("plain")))
    assert tags(page) == tags(plain)


@given(st.text(st.characters(exclude_categories=()), max_size=60))
def test_any_text_reads_back_as_itself_from_an_element_and_an_attribute(text: str) -> None:
    page = Page(element("p", code(text), title=text))
    assert page.text == clean(text)
    assert page.named("p") == [{"title": clean(text)}]


def test_the_policy_allows_this_style_sheet_and_nothing_else() -> None:
    written = render_html(samples.failing())
    (style,) = re.findall("<style>(.*?)</style>", written, re.DOTALL)
    (policy,) = [item["content"] for item in Page(written).named("meta") if item.get("http-equiv")]
    expected = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{expected}'; base-uri 'none'; form-action 'none'"
    assert "url(" not in style
    assert "@import" not in style


@pytest.mark.parametrize(
    ("address", "leads"),
    [("https://github.com/flashinfer-ai/flashinfer/issues/3868", True), ("javascript:alert(1)", False),
     ("http://plain.example", False), ("//evil.example", False), ("data:text/html,x", False), ("https://a.example b", False), (" https://x.example", False)],
)  # fmt: skip
def test_only_https_is_linked_to(address: str, leads: bool) -> None:
    page = Page(element("p", link("a report", address)))
    assert bool(page.named("a")) is leads
    assert "a report" in page.text
    assert leads or address in page.text


def test_code_in_prose_is_marked_unless_a_backtick_stands_alone() -> None:
    assert prose("`a<b` appears") == "<code>a&lt;b</code> appears"
    assert prose("a ` b") == "a ` b"


def test_the_first_cause_comes_first() -> None:
    text = Page(render_html(samples.incomplete())).text
    head = text[: text.index("Requirements")]
    assert "INCOMPLETE evidence is missing or does not count" in head
    assert "MISSING smoke sm100: no record; the channel requires one for sm100 that is younger than 7 days" in head
    assert "Run on a machine with an sm100 GPU:nox -s smoke" in head
    assert "and 2 other reasons" in head


def test_requirements_that_do_not_hold_stand_before_those_that_do() -> None:
    text = Page(render_html(samples.incomplete())).text
    assert text.index("smoke sm100INCOMPLETE") < text.index("checkPASS")


def test_the_bump_is_told_row_against_row_with_faults_and_companions() -> None:
    text = Page(render_html(samples.failing())).text
    assert "FlashInfer 0.6.12 to 0.6.13." in text
    assert (
        "breaks the key format changed: it gains the runner's parameters in the key on disk; older files miss" in text
    )
    assert "disk_key_has_runner_extrasnoyes" in text
    assert "autotune_parameters4 in all5 in all; new: skip_ops" in text
    assert "as before flashinfer#3868" in text
    assert "nvidia-ml-pynot there13.580.82" in text
    assert "tabulate0.9.0gone" in text


def test_a_row_that_is_missing_is_told() -> None:
    change = replace(samples.bump_change(), row_after=None, changes=())
    text = Page(render_html(samples.verdict(Outcome.FAIL, bump=change))).text
    assert "the capabilities table has no row for 0.6.13." in text
    assert "The two releases were not compared." in text


def test_the_gating_matrix_shows_what_differs() -> None:
    text = Page(render_html(samples.failing())).text
    assert "19 as expected, 1 not, 2 not compared." in text
    assert "differs leader_broadcast, persistent" in text
    assert "rule 4: DeepEP's ranks wait for each other" in text
    assert "not run: deep_ep 2 is not installed" in text


def test_charts_are_told_in_words_too() -> None:
    text = Page(render_html(samples.failing())).text
    assert "Seconds, before (0.6.12): one-rank: cold 61.2 s, warm 0.65 s (before: 68.5 s and 37.7 s); " in text
    assert "cold cache: 0.684 (0.659 to 0.709); warm cache: 0.684 (0.659 to 0.709); 0.6.12, before: 0.689" in text
    assert "against the baseline: 21 lost, 14 gained; against the cold start: 1 lost, 1 gained." in text


def test_every_finding_and_every_record_is_listed() -> None:
    findings = tuple(
        Finding(check="pins", detail=f"no. {number}.", path="a/b.py", line=number) for number in range(1, 3001)
    )
    file = samples.evidence(samples.record("check", status="fail", findings=findings))
    others = tuple(EvidenceFile(path=f"evidence/{number}.json", sha256=f"{number:064x}", reason="UNPARSABLE", problem="no JSON")
                   for number in range(1000))  # fmt: skip
    requirement = Requirement(stage="check", subject=None, outcome=Outcome.FAIL, file=file)
    text = Page(render_html(samples.verdict(Outcome.FAIL, requirements=(requirement,), files=(file, *others)))).text
    assert all(f"a/b.py:{number}no. {number}." in text for number in range(1, 3001))
    assert all(f"{number:064x}" in text for number in range(1000))
    assert "1,001 files read." in text


def test_a_record_shows_digest_age_image_and_commit() -> None:
    text = Page(render_html(samples.passing())).text
    for part in ("sha25626843e5a22a6224cbe4bfe1cac3fa2de865694363bec85cc31a64295b4d9462c", "1 hour old",
                 f"image{samples.IMAGE}", f"commit{samples.COMMIT}", "Of the release before"):  # fmt: skip
        assert part in text


@pytest.mark.parametrize(
    "spoil",
    [
        lambda body: body.clear(),
        lambda body: body.update(scenarios=None),
        lambda body: body.update(scenarios="one-rank"),
        lambda body: body["scenarios"][0].update(name=["a"]),
        lambda body: body["scenarios"][0].update(name={}),
        lambda body: body.update(machine=[]),
    ],
    ids=["empty", "null", "text", "list as name", "object as name", "list as machine"],
)
def test_smoke_measurements_of_another_shape_are_named_and_not_shown(spoil: Callable[[Any], None]) -> None:
    body: Any = samples.smoke("sm90")
    spoil(body)
    file = samples.evidence(samples.record("smoke", "sm90", measurements=body))
    text = Page(render_html(samples.verdict(Outcome.FAIL, requirements=(samples.met(file),)))).text
    assert "The measurements of evidence/smoke-sm90.json have another shape and are not shown." in text


@pytest.mark.parametrize("value", ["12", -1, float("inf"), float("nan"), 10**400, True, [], {}, None], ids=repr)
def test_a_time_that_is_none_is_shown_as_none(value: object) -> None:
    body: Any = samples.smoke("sm90")
    body["scenarios"] = body["scenarios"][:1]
    body["scenarios"][0]["cold"]["seconds"] = body["scenarios"][0]["warm"]["seconds"] = value
    file = samples.evidence(samples.record("smoke", "sm90", measurements=body))
    page = Page(render_html(samples.verdict(Outcome.FAIL, requirements=(samples.met(file),), earlier=(), bump=None)))
    assert "one-rank: not measured." in page.text
    assert page.named("rect") == []


@pytest.mark.parametrize("spoiled", [{}, {"runs": 3}, {"runs": [None, 4]}, {"runs": [{"accuracy": 7, "interval": [1]}]},
                                     {"baseline": {"lost": "x"}, "config": []}], ids=repr)  # fmt: skip
def test_gsm8k_measurements_of_another_shape_give_no_chart(spoiled: dict[str, object]) -> None:
    file = samples.evidence(samples.record("gsm8k", "q", measurements=spoiled))
    page = Page(render_html(samples.verdict(Outcome.FAIL, requirements=(samples.met(file),), earlier=(), bump=None)))
    assert page.named("svg") == []


def test_a_run_that_was_killed_has_no_time() -> None:
    body: Any = samples.smoke("sm90")
    body["scenarios"] = body["scenarios"][:2]
    body["scenarios"][1]["warm"]["ranks"][1]["end"] = "hung"
    file = samples.evidence(samples.record("smoke", "sm90", measurements=body))
    text = Page(render_html(samples.verdict(Outcome.FAIL, requirements=(samples.met(file),), earlier=()))).text
    assert "two-ranks: cold 84.4 s, warm —" in text
    assert "two-ranks84.4 srank 1 hung" in text


def test_the_same_verdict_gives_the_same_bytes_in_every_process() -> None:
    script = (
        "import hashlib, sys; from tests.gate.rendering import samples; from tooling.gate.html_page import render_html; "
        "sys.stdout.write(hashlib.sha256(render_html(samples.failing()).encode()).hexdigest())"
    )
    digests = {
        subprocess.run([sys.executable, "-c", script], env={**os.environ, "PYTHONHASHSEED": seed, "TZ": zone}, cwd=samples.ROOT,
                       check=True, capture_output=True, stdin=subprocess.DEVNULL).stdout
        for seed, zone in (("1", "UTC"), ("2", "Asia/Tokyo"))
    }  # fmt: skip
    assert len(digests) == 1


def test_the_page_names_the_image_as_its_registry_does_once_it_was_pushed() -> None:
    verdict = samples.passing()
    assert "manifest releasesha256:" + "c0de" * 16 in Page(render_html(verdict)).text
    unpushed = [file for file in verdict.files if file.record and file.record.stage != "image"]
    without = replace(verdict, files=tuple(unpushed), requirements=verdict.requirements[2:])
    assert "manifest release" not in Page(render_html(without)).text


def test_severities_are_told_in_words() -> None:
    text = Page(render_html(samples.failing())).text
    assert text.index(f"{Severity.ERROR} tooling/warmup/planning.py:88") < text.index(f"{Severity.WARNING}one-rank")


def test_a_verdict_without_anything_still_says_what_to_do() -> None:
    verdict: Verdict = samples.empty()
    text = Page(render_html(verdict)).text
    assert "NO_EVIDENCE no folder holds a record" in text
    assert "nox -s check" in text
    assert "Nothing is required." in text
