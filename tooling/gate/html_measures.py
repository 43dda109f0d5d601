"""Parts of the page that show what was measured: gating, start-up times, accuracy; each chart with its figures."""

from __future__ import annotations

from tooling.gate import charts, told
from tooling.gate.accuracy import Pair, Score, scores
from tooling.gate.html_elements import Html, badge, code, details, element, join, section, table
from tooling.gate.html_evidence import Section
from tooling.gate.measured import GatingRow, GatingSeen, gating_rows, unreadable
from tooling.gate.start_up import StartUp, Took, start_ups
from tooling.gate.values import Verdict

MAX_FLIPS = 2000


def gating_section(verdict: Verdict) -> Section:
    """What the rule expects of the release against what the warm-up did, scenario by scenario."""
    heading = "Cache gating"
    rows = gating_rows(verdict)
    broken = [element("p", "The measurements of ", code(file.path), " have another shape and are not shown.")
              for file in unreadable(verdict)]  # fmt: skip
    if not rows:
        return "gating", heading, section("gating", heading, broken) if broken else None
    subjects = list(dict.fromkeys(subject for row in rows for subject in row.seen))
    heads = ("Scenario", "Expected", *(f"Seen on {subject}" for subject in subjects))
    cells = [(_scenario(row), _expected(row), *(_seen(row.seen.get(subject)) for subject in subjects)) for row in rows]
    return "gating", heading, section(
        "gating", heading, element("p", f"{_agreement(rows)} Strategy, and whether the tuned cache may persist."),
        table("Gating, expected and seen", heads, cells), broken,
    )  # fmt: skip


def start_up_section(verdict: Verdict) -> Section:
    heading = "Start-up time"
    shown = [_start_up(one, number) for number, one in enumerate(start_ups(verdict)) if one.times]
    return "start-up", heading, section("start-up", heading, shown) if shown else None


def accuracy_section(verdict: Verdict) -> Section:
    heading = "Accuracy"
    shown = [_score(one, number) for number, one in enumerate(scores(verdict))]
    return "accuracy", heading, section("accuracy", heading, shown) if shown else None


def _agreement(rows: tuple[GatingRow, ...]) -> str:
    seen = [one for row in rows for one in row.seen.values()]
    differ, alike = sum(one.agrees is False for one in seen), sum(one.agrees is True for one in seen)
    other = f", {len(seen) - differ - alike} not compared" if len(seen) > differ + alike else ""
    return f"{alike} as expected, {differ} not{other}."


def _scenario(row: GatingRow) -> Html:
    return join(code(row.scenario), element("span", row.about, class_="hint") if row.about else None)


def _expected(row: GatingRow) -> Html | str:
    if row.expected is None:
        return "no row to compare with"
    return join(_gating(str(row.expected.strategy), row.expected.persistent),
                element("span", f"rule {row.expected.rule}: {row.expected.why}", class_="hint"))  # fmt: skip


def _seen(seen: GatingSeen | None) -> Html | str:
    if seen is None:
        return "not tried"
    if not seen.strategy:
        return join(badge("not seen", "incomplete"), element("span", seen.why_not, class_="hint"))
    used = {True: "the second start used the cache", False: "the second start used no cache", None: ""}[seen.used_cache]
    agreed = {True: "as expected", False: "", None: "not compared"}[seen.agrees]
    hint = "; ".join(filter(None, (agreed, used, seen.why_not)))
    differs = join(badge("differs", "fail"), " ") if seen.agrees is False else None
    return join(differs, _gating(seen.strategy, seen.persistent), element("span", hint, class_="hint"))


def _gating(strategy: str, persistent: bool | None) -> Html:
    words = {True: "persistent", False: "not persistent", None: "persistence not told"}[persistent]
    return join(code(strategy), f", {words}")


def _start_up(one: StartUp, number: int) -> Html:
    caption = [
        element("h3", one.subject),
        element("p", one.gpu or "GPU not told", _other_gpu(one), class_="quiet"),
        element("p", one.compared) if one.compared else None,
        _legend(one),
    ]
    heads = ["Scenario", "Cold", "Warm"]
    heads += [f"Cold, {one.release_before}", f"Warm, {one.release_before}"] if one.release_before else []
    rows = []
    for times in one.times:
        row = [times.scenario, _time(times.cold, times.why_not), _time(times.warm, times.why_not)]
        row += [charts.took(times.cold_before), charts.took(times.warm_before)] if one.release_before else []
        rows.append(row)
    figures = details(f"The figures of {one.subject} as a table", table(f"Start-up on {one.subject}", heads, rows))
    return element("div", caption, charts.start_up_chart(one, f"start-up-{number}"), figures, class_="figure")


def _time(value: Took | None, why_not: str) -> str:
    return charts.took(value) if value is not None or not why_not else why_not


def _other_gpu(one: StartUp) -> str:
    if one.release_before is None:
        return "; no record of the release before"
    return f"; {one.release_before} ran on {one.gpu_before or 'another machine'}" if one.gpu_before != one.gpu else ""


def _legend(one: StartUp) -> Html:
    keys = [("cold", "cold, above: nothing tuned yet"), ("warm", "warm, below: the second start")]
    compiled = any(
        took and took.compiling_s >= charts.SHOWN_S for times in one.times for took in (times.cold, times.warm)
    )
    keys += [("compiling", "pale: compiling kernels")] if compiled else []
    keys += [("before", f"{one.release_before}, the release before")] if one.release_before else []
    return element(
        "ul",
        [element("li", element("span", class_=f"key {kind}", aria_hidden="true"), words) for kind, words in keys],
        class_="legend",
    )


def _score(score: Score, number: int) -> Html:
    measured = any(one.accuracy is not None for one in score.evaluations)
    stopped = [element("p", f"{one.name}: {one.why_not}") for one in score.evaluations if one.accuracy is None]
    floor = None if score.floor is None else element(
        "p", f"With its 95 % interval. The dashed line is {score.floor:.3f}, below which the stage fails "
        f"(threshold {score.threshold or 0:g}).", class_="quiet")  # fmt: skip
    return element(
        "div",
        element("h3", score.subject),
        floor,
        stopped,
        charts.accuracy_chart(score, f"accuracy-{number}") if measured else None,
        _evaluations(score),
        _pairs(score, number),
        class_="figure",
    )


def _evaluations(score: Score) -> Html | None:
    rows = [(one.name, charts.accuracy_words(one), charts.seconds(one.startup_s)) for one in score.evaluations]
    if not rows:
        return element("p", "The record holds no run.")
    listed = table(f"Accuracy of {score.subject}", ("Run", "Accuracy (95 % interval)", "Ready after"), rows)
    return details(f"The figures of {score.subject} as a table", listed)


def _pairs(score: Score, number: int) -> list[Html]:
    if not score.pairs:
        return []
    said = [element("p", _said(pair)) for pair in score.pairs]
    flips = [_flips(pair) for pair in score.pairs if pair.flips]
    return [element("h4", "Flips"), *said, charts.flips_chart(score.pairs, f"flips-{number}"), *flips]


def _said(pair: Pair) -> str:
    test = "" if pair.p_value is None else f" (McNemar's exact test: p = {pair.p_value:.2g})"
    source = f" ({pair.source})" if pair.source else ""
    return (
        f"Against {pair.against}{source}, accuracy went from {pair.accuracy_before:.3f} to {pair.accuracy_after:.3f} "
        f"on {told.count(pair.paired, 'question')}: {pair.lost} lost, {pair.gained} gained{test}."
    )


def _flips(pair: Pair) -> Html:
    rows = [(code(flip.id), flip.before, flip.after) for flip in pair.flips[:MAX_FLIPS]]
    more = len(pair.flips) - len(rows)
    return details(
        f"{told.count(len(pair.flips), 'flip')} against {pair.against}",
        table(f"Flips against {pair.against}", ("Question", "Before", "After"), rows),
        element("p", f"… and {more:,} more.") if more else None,
    )
