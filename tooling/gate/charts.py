"""Charts as inline SVG. Horizontal places are percentages and sizes are pixels, so text stays readable at any width.

A chart is one image to a screen reader, with a title and a description; the figures stand in a table beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tooling.gate.accuracy import Evaluation, Pair, Score
from tooling.gate.escaping import cut
from tooling.gate.html_elements import Html, element, join
from tooling.gate.start_up import StartUp, Times, Took

WIDEST = 55.0
"""Percent of the width that the longest bar takes; the rest is for its label."""
WIDEST_FLIP = 26.0
"""Percent to each side of the middle, with room for `1,319 gained`."""
MAX_LABEL = 44
"""Characters that fit beside nothing else at 400 pixels; the table has the whole."""
SHOWN_S = 0.5
"""From how much on compiling is told of a start."""
_BAR, _GAP, _GROUP = 14, 4, 66


def seconds(value: float | None) -> str:
    """`0.62 s`, `12.3 s`, `123 s`, or a dash."""
    if value is None:
        return "—"
    if value >= 1e6:
        return f"{value:.3g} s"
    return f"{value:.2f} s" if value < 10 else f"{value:.1f} s" if value < 100 else f"{value:,.0f} s"


def took(one: Took | None) -> str:
    """`54.4 s`, with `(37.8 s compiling)` where that shows."""
    if one is None:
        return seconds(None)
    return seconds(one.seconds) + (f" ({seconds(one.compiling_s)} compiling)" if one.compiling_s >= SHOWN_S else "")


def start_up_chart(start_up: StartUp, identity: str) -> Html:
    """Two bars a scenario, cold above warm, each with its compiling in pale and a mark where the release before was."""
    longest = max([0.01, *(times.longest_s for times in start_up.times)])
    height = _GROUP * len(start_up.times) + 18
    groups = [_group(times, number * _GROUP, longest) for number, times in enumerate(start_up.times)]
    return _figure(
        identity,
        f"Start-up time on {start_up.subject}, cold against warm",
        _describe(start_up),
        height,
        [*_axis(longest, height - 16), *groups],
    )


def accuracy_chart(score: Score, identity: str) -> Html:
    """A dot and its interval for each run, a line where the stage begins to fail."""
    shown = [one for one in score.evaluations if one.accuracy is not None]
    ends = [value for one in shown for value in (one.accuracy, one.low, one.high) if value is not None]
    ends += [value for value in (score.floor,) if value is not None]
    low, high = math.floor(min(ends, default=0) * 20) / 20, math.ceil(max(ends, default=1) * 20) / 20
    scale = _Scale(low, high if high > low else low + 0.05)
    height = 44 * len(shown) + 24
    parts = [*_fractions(scale, height - 20)]
    parts += [_evaluation(one, 44 * number, scale, score.floor) for number, one in enumerate(shown)]
    described = "; ".join(f"{one.name}: {accuracy_words(one)}" for one in shown)
    floor = "" if score.floor is None else f" The stage fails below {score.floor:.3f}."
    return _figure(identity, f"Accuracy of {score.subject}", f"{described}.{floor}", height, parts)


def flips_chart(pairs: Sequence[Pair], identity: str) -> Html:
    """Questions lost to the left, gained to the right."""
    most = max((max(pair.lost, pair.gained) for pair in pairs), default=0) or 1
    height = 46 * len(pairs) + 4
    parts: list[Html] = []
    for number, pair in enumerate(pairs):
        top, lost, gained = 46 * number, WIDEST_FLIP * pair.lost / most, WIDEST_FLIP * pair.gained / most
        parts += [
            _text("50%", top + 13, f"against {pair.against}", anchor="middle", class_="name"),
            element("rect", x=f"{50 - lost:.2f}%", y=top + 20, width=f"{lost:.2f}%", height=_BAR, class_="bar lost"),
            element("rect", x="50%", y=top + 20, width=f"{gained:.2f}%", height=_BAR, class_="bar gained"),
            element("line", x1="50%", x2="50%", y1=top + 17, y2=top + 37, class_="axis"),
            _text(f"{50 - lost:.2f}%", top + 31, f"{pair.lost} lost", anchor="end", dx=-6),
            _text(f"{50 + gained:.2f}%", top + 31, f"{pair.gained} gained", dx=6),
        ]
    described = "; ".join(f"against {pair.against}: {pair.lost} lost, {pair.gained} gained" for pair in pairs)
    return _figure(identity, "Questions that flipped", f"{described}.", height, parts)


def accuracy_words(one: Evaluation) -> str:
    """`0.712 (0.687 to 0.736)`, as the stage's own report writes fractions."""
    if one.accuracy is None:
        return one.why_not or "no accuracy"
    interval = f" ({one.low:.3f} to {one.high:.3f})" if one.low is not None and one.high is not None else ""
    return f"{one.accuracy:.3f}{interval}"


class _Scale:
    """Fractions to percentages of the width, with room at both ends for a dot."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    def __call__(self, value: float) -> str:
        return f"{6 + 88 * (value - self.low) / (self.high - self.low):.2f}%"


def _figure(identity: str, title: str, description: str, height: float, parts: Sequence[Html]) -> Html:
    named = (element("title", title, id=f"{identity}-title"), element("desc", description, id=f"{identity}-desc"))
    return element(
        "svg", *named, *parts, class_="chart", width="100%", height=height, role="img",
        aria_labelledby=f"{identity}-title", aria_describedby=f"{identity}-desc",
    )  # fmt: skip


def _describe(start_up: StartUp) -> str:
    before = f", before ({start_up.release_before})" if start_up.release_before else ""
    return f"Seconds{before}: " + "; ".join(_described(times, before=bool(before)) for times in start_up.times) + "."


def _described(times: Times, *, before: bool) -> str:
    if times.cold is None and times.warm is None:
        return f"{times.scenario}: {times.why_not or 'not measured'}"
    was = f" (before: {took(times.cold_before)} and {took(times.warm_before)})" if before else ""
    return f"{times.scenario}: cold {took(times.cold)}, warm {took(times.warm)}{was}"


def _group(times: Times, top: float, longest: float) -> Html:
    name = _text("0", top + 15, cut(times.scenario, MAX_LABEL), class_="name")
    if times.cold is None and times.warm is None:
        return element(
            "g", name, _text("0", top + 35, cut(times.why_not or "not measured", MAX_LABEL), class_="absent")
        )
    cold = _bar(times.cold, times.cold_before, top + 22, longest, "cold")
    warm = _bar(times.warm, times.warm_before, top + 22 + _BAR + _GAP, longest, "warm")
    return element("g", name, cold, warm)


def _bar(now: Took | None, before: Took | None, top: float, longest: float, kind: str) -> Html:
    length, mark = (WIDEST * (one.seconds if one else 0) / longest for one in (now, before))
    label = seconds(now.seconds if now else None) + (f", was {seconds(before.seconds)}" if before else "")
    parts = []
    if now is not None:
        parts.append(_rect(top, max(length, 0.5), f"bar {kind}"))
        if now.compiling_s >= SHOWN_S:
            parts.append(_rect(top, min(length, WIDEST * now.compiling_s / longest), "compiling"))
    if before is not None:
        parts.append(
            element("line", x1=f"{mark:.2f}%", x2=f"{mark:.2f}%", y1=top - 2, y2=top + _BAR + 2, class_="before")
        )
    return join(*parts, _text(f"{max(length, mark):.2f}%", top + 11, label, dx=7))


def _rect(top: float, length: float, kind: str) -> Html:
    return element("rect", x="0", y=top, width=f"{length:.2f}%", height=_BAR, rx=2, class_=kind)


def _axis(longest: float, bottom: float) -> Iterator[Html]:
    step = _nice_step(longest / 3)
    for count in range(int(longest / step) + 1):
        place = f"{WIDEST * count * step / longest:.2f}%"
        yield element("line", x1=place, x2=place, y1=18, y2=bottom, class_="grid")
        yield _text(
            place, bottom + 14, f"{count * step:g} s", anchor="start" if count == 0 else "middle", class_="tick"
        )


def _fractions(scale: _Scale, bottom: float) -> Iterator[Html]:
    step = _nice_step((scale.high - scale.low) / 4)
    first = math.ceil(scale.low / step - 1e-9)
    for count in range(first, math.floor(scale.high / step + 1e-9) + 1):
        place = scale(count * step)
        yield element("line", x1=place, x2=place, y1=0, y2=bottom, class_="grid")
        yield _text(place, bottom + 15, f"{count * step:.2f}", anchor="middle", class_="tick")


def _evaluation(one: Evaluation, top: float, scale: _Scale, floor: float | None) -> Html:
    name = _text("0", top + 14, f"{cut(one.name, MAX_LABEL)}: {accuracy_words(one)}", class_="name long")
    kind = {"cold cache": "cold", "warm cache": "warm"}.get(one.name, "other")
    middle = top + 28
    parts = []
    if floor is not None:  # beside the dot only: a line down the whole chart would run through the names
        parts.append(element("line", x1=scale(floor), x2=scale(floor), y1=top + 19, y2=top + 38, class_="floor"))
    if one.low is not None and one.high is not None:
        parts.append(element("line", x1=scale(one.low), x2=scale(one.high), y1=middle, y2=middle, class_="interval"))
    dot = element("circle", cx=scale(one.accuracy or 0), cy=middle, r=5.5, class_=f"dot {kind}")
    return element("g", name, *parts, dot)


def _text(x: str, y: float, words: str, *, anchor: str = "start", dx: float = 0, class_: str | None = None) -> Html:
    return element("text", words, x=x, y=y, text_anchor=anchor, dx=dx or None, class_=class_)


def _nice_step(rough: float) -> float:
    """The next of 1, 2, 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))
