"""The verdict as one page that stands alone: no request, no script, light and dark. The order is that of urgency."""

from __future__ import annotations

import hashlib
from base64 import b64encode

from tooling.gate import html_evidence, html_measures, told
from tooling.gate.html_bump import bump_section
from tooling.gate.html_elements import Html, code, element, join
from tooling.gate.html_style import STYLE
from tooling.gate.values import Outcome, Reason, Verdict


def render_html(verdict: Verdict) -> str:
    """The whole page; the same verdict gives the same bytes."""
    sections = [
        html_evidence.requirements_section(verdict),
        html_evidence.errands_section(verdict),
        html_evidence.findings_section(verdict),
        bump_section(verdict),
        html_measures.gating_section(verdict),
        html_measures.start_up_section(verdict),
        html_measures.accuracy_section(verdict),
        html_evidence.records_section(verdict),
    ]
    shown = [(identity, heading, part) for identity, heading, part in sections if part is not None]
    body = element(
        "body",
        element("a", "Skip to the requirements", href="#requirements", class_="skip"),
        _header(verdict),
        _navigation([(identity, heading) for identity, heading, _ in shown]),
        element("main", [part for _, _, part in shown], id="main"),
        _footer(verdict),
    )
    page = element("html", _head(verdict), body, lang="en", class_=str(verdict.outcome).lower())
    return f"<!DOCTYPE html>\n{page}\n"


def _head(verdict: Verdict) -> Html:
    """Nothing may be loaded, and of styles only ours applies."""
    style_hash = b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{style_hash}'; base-uri 'none'; form-action 'none'"
    version = verdict.flashinfer_version or "of an unknown version"
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", f"{verdict.outcome}: FlashInfer {version}, channel {verdict.channel}"),
        element("style", Html(STYLE)),
    )


def _header(verdict: Verdict) -> Html:
    causes = told.grouped(told.causes(verdict))
    commit = f"commit {told.short(verdict.commit)}, " if verdict.commit else ""
    about = element(
        "p",
        f"FlashInfer {verdict.flashinfer_version or 'of an unknown version'}, channel {verdict.channel}, {commit}"
        f"as of {told.render_time(verdict.as_of)}",
        class_="about",
    )
    return element(
        "header",
        about,
        element("h1", element("span", str(verdict.outcome), class_="verdict"), f" {told.HEADLINES[verdict.outcome]}"),
        _first_cause(causes[0], sum(map(len, causes[1:]))) if causes else _nothing_wrong(verdict),
        [_remark(group) for group in told.grouped(told.remarks(verdict))],
    )


def _first_cause(group: tuple[Reason, ...], others: int) -> Html:
    cause = group[0]
    more = f"and {told.count(others, 'other reason')}" if others else None
    return element(
        "section",
        element("h2", "First cause"),
        element("p", code(cause.word, class_="word"), " ", told.sentence(cause), class_="cause"),
        html_evidence.details_of(group[1:]),
        html_evidence.where_to_run(cause),
        element("p", element("a", more, href="#requirements")) if more else None,
        class_="first",
        aria_label="First cause",
    )


def _nothing_wrong(verdict: Verdict) -> Html | None:
    if verdict.outcome is not Outcome.PASS:
        return None
    return element("p", f"{told.outcomes(verdict.requirements)}.", class_="cause")


def _remark(group: tuple[Reason, ...]) -> Html:
    first = group[0]
    said = element("p", element("strong", "Also to know: "), code(first.word), " ", told.sentence(first))
    return element("div", said, html_evidence.details_of(group[1:]), class_="remark")


def _navigation(sections: list[tuple[str, str]]) -> Html:
    links = [element("li", element("a", heading, href=f"#{identity}")) for identity, heading in sections]
    return element("nav", element("ul", links), aria_label="Parts of this page")


def _footer(verdict: Verdict) -> Html:
    pairs = [join(element("dt", name), element("dd", code(value))) for name, value in told.facts(verdict)]
    note = "Made from evidence records alone: the same records, policy and time give the same page."
    return element("footer", element("h2", "What this verdict is about"), element("dl", pairs), element("p", note))
