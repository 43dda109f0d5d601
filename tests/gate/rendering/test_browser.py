"""The page in a real browser: it shows, it is quiet, it fits, it can be reached by keyboard and read in both themes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext

from tests.gate.rendering import samples
from tests.gate.rendering.browser import Seen, Site, serve, start_browser
from tests.gate.rendering.hostile import TEXTS, poisoned
from tooling.gate.html_page import render_html
from tooling.gate.values import Verdict

pytestmark = pytest.mark.browser

Open = Callable[..., Seen]
NAMES = list(samples.SAMPLES)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    with start_browser(tmp_path_factory.mktemp("profile")) as context:
        yield context


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with serve() as running:
        yield running


@pytest.fixture
def show(browser: BrowserContext, site: Site) -> Iterator[Open]:
    """Opens a verdict's page at a width and in a theme; afterwards nothing may have been asked for or complained of."""
    opened: list[Seen] = []

    def open_page(verdict: Verdict, *, width: int = 1280, theme: str = "light") -> Seen:
        site.pages, site.asked = {"/gate.html": render_html(verdict)}, []
        seen = Seen(page=browser.new_page(), complaints=[], requests=[])
        opened.append(seen)
        seen.page.on("console", lambda message: seen.complaints.append(message.text))
        seen.page.on("pageerror", lambda error: seen.complaints.append(str(error)))
        seen.page.on("dialog", lambda dialog: (seen.complaints.append(dialog.message), dialog.dismiss()))
        seen.page.on("request", lambda request: seen.requests.append(request.url))
        seen.page.set_viewport_size({"width": width, "height": 900})
        seen.page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        seen.page.goto(site.address("/gate.html"))
        return seen

    yield open_page
    for seen in opened:
        seen.page.close()


def check_quiet(seen: Seen, site: Site) -> None:
    seen.page.wait_for_load_state("networkidle")
    assert seen.complaints == []
    assert seen.requests == [site.address("/gate.html")]
    assert site.asked == ["/gate.html"]


@pytest.mark.parametrize("name", NAMES)
def test_a_page_shows_without_a_complaint_and_without_another_request(show: Open, site: Site, name: str) -> None:
    verdict = samples.SAMPLES[name]()
    seen = show(verdict)
    seen.open_all()
    assert seen.page.inner_text(".verdict") == str(verdict.outcome)
    assert seen.page.title().startswith(f"{verdict.outcome}: FlashInfer ")
    check_quiet(seen, site)


def test_the_page_shows_from_a_file_too(browser: BrowserContext, tmp_path: Path) -> None:
    file = tmp_path / "gate.html"
    file.write_text(render_html(samples.failing()))
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri(), wait_until="networkidle")
    assert page.inner_text(".verdict") == "FAIL"
    assert asked == [file.as_uri()]
    page.close()


def test_verdict_first_cause_and_command_are_in_view_at_once(show: Open) -> None:
    for width in (1280, 400):
        page = show(samples.incomplete(), width=width).page
        for selector in (".verdict", ".cause", ".first pre"):
            box = page.locator(selector).bounding_box()
            assert box is not None
            assert box["y"] >= 0 and box["y"] + box["height"] <= 900  # noqa: PT018  # one fact: it lies in the window


@pytest.mark.parametrize("width", [1280, 400, 320])
def test_charts_show_with_every_bar_and_every_label_inside(show: Open, width: int) -> None:
    page = show(samples.failing(), width=width).page
    assert page.locator("svg.chart").count() == 4  # two smoke records, an evaluation, its flips
    for chart in page.locator("svg.chart").all():
        box = chart.bounding_box()
        assert box is not None and min(box["width"], box["height"]) > 40  # noqa: PT018
        outside = chart.evaluate("""svg => { const frame = svg.getBoundingClientRect();
            return [...svg.querySelectorAll('text')].filter(one => { const box = one.getBoundingClientRect();
              return box.width === 0 || box.left < frame.left - 1 || box.right > frame.right + 1
                || box.top < frame.top - 1 || box.bottom > frame.bottom + 1; }).map(one => one.textContent); }""")
        assert outside == []
    measured = 10  # eleven scenarios, one of which did not run
    for kind in ("cold", "warm"):
        bars = page.locator(f"#start-up svg rect.{kind}").all()
        assert len(bars) == 2 * measured
        assert all((bar.bounding_box() or {"width": 0})["width"] > 0 for bar in bars)
    assert page.locator("#start-up svg line.before").count() == 2 * measured  # only sm90 has a release before
    assert page.locator("#accuracy svg circle").count() == 3
    assert page.locator("#accuracy svg line.interval").count() == 3
    assert page.locator("#accuracy svg rect").count() == 4


def test_bars_are_as_long_as_what_was_measured(show: Open) -> None:
    bars = show(samples.failing()).page.locator("#start-up svg").first.locator("rect.cold").all()
    widths = [bar.bounding_box()["width"] for bar in bars]  # type: ignore[index]
    seconds = [samples.COLD_S[name] for name in samples.COLD_S if name != "deepep-v2"]
    assert [width / widths[0] for width in widths] == pytest.approx([one / seconds[0] for one in seconds], rel=0.01)


def test_no_label_in_a_chart_covers_another(show: Open) -> None:
    page = show(samples.failing(), width=400).page
    covered = page.evaluate("""() => [...document.querySelectorAll('svg')].flatMap(svg => {
        const texts = [...svg.querySelectorAll('text')].map(one => [one.textContent, one.getBoundingClientRect()]);
        return texts.flatMap(([a, x], at) => texts.slice(at + 1).filter(([b, y]) => x.left < y.right - 1 && y.left < x.right - 1
          && x.top < y.bottom - 3 && y.top < x.bottom - 3).map(([b]) => a + ' / ' + b)); })""")
    assert covered == []


@pytest.mark.parametrize("width", [400, 320])
@pytest.mark.parametrize("name", NAMES)
def test_a_narrow_page_does_not_scroll_sideways(show: Open, name: str, width: int) -> None:
    seen = show(samples.SAMPLES[name](), width=width)
    assert seen.overflow() == 0
    seen.open_all()
    assert seen.overflow() == 0


@pytest.mark.parametrize("width", [400, 320])
def test_what_is_required_and_why_fits_a_telephone_without_scrolling(show: Open, width: int) -> None:
    page = show(samples.incomplete(), width=width).page
    assert page.locator("#requirements .scroll").evaluate("one => one.scrollWidth - one.clientWidth") == 0
    assert page.locator("#requirements .why").count() > 0
    for word in page.locator("#requirements .badge").all():
        assert word.evaluate("one => one.scrollWidth <= one.clientWidth")


def test_notes_are_folded_and_open_by_keyboard(show: Open) -> None:
    page = show(samples.failing()).page
    notes = page.locator("#findings details")
    assert page.locator("#findings > ul > li").count() > 0
    assert not notes.locator("li").first.is_visible()
    notes.locator("summary").focus()
    page.keyboard.press("Enter")
    assert notes.locator("li").first.is_visible()


def test_a_wide_table_scrolls_in_a_region_of_its_own_by_keyboard(show: Open) -> None:
    page = show(samples.failing(), width=400).page
    region = page.locator("#gating .scroll")
    assert region.evaluate("one => one.scrollWidth > one.clientWidth")
    region.focus()
    page.keyboard.press("ArrowRight")
    for _ in range(600):  # it scrolls smoothly, and the page's policy keeps the browser from polling for us
        if region.evaluate("one => one.scrollLeft") > 0:
            return
        page.wait_for_timeout(100)
    pytest.fail("the region did not scroll")


@pytest.mark.parametrize("opened", [False, True])
def test_the_tab_key_reaches_everything_in_the_order_of_the_page(show: Open, opened: bool) -> None:
    seen = show(samples.failing())
    if opened:
        seen.open_all()
    expected = seen.interactive()
    assert len(expected) > 25
    assert seen.tab_stops() == expected


def test_the_first_tab_shows_a_link_past_the_navigation(show: Open) -> None:
    page = show(samples.failing()).page
    page.keyboard.press("Tab")
    box = page.locator(".skip").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#requirements"


def test_a_record_opens_by_keyboard(show: Open) -> None:
    page = show(samples.failing()).page
    page.locator(".record > summary").first.focus()
    page.keyboard.press("Enter")
    assert page.locator(".record").first.evaluate("one => one.open")
    assert page.locator(".record dl").first.is_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", NAMES)
def test_every_text_has_enough_contrast(show: Open, name: str, theme: str) -> None:
    seen = show(samples.SAMPLES[name](), theme=theme)
    seen.open_all()
    found = seen.contrasts()
    assert len(found) > 20
    assert [one for one in found if one[0] < 4.5] == []


PRINTED = """() => {
  const texts = [...document.querySelectorAll('main pre, main td, main li, main dd, main .scroll')];
  const cut = texts.filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.textContent.slice(0, 60));
  const hidden = [...document.querySelectorAll('details > :not(summary)')].filter(
    one => !one.checkVisibility({ contentVisibilityAuto: true }) || one.getBoundingClientRect().height === 0);
  const pale = [...document.querySelectorAll('.key, .badge')].filter(
    one => getComputedStyle(one).printColorAdjust !== 'exact').length;
  return { cut, hidden: hidden.length, pale, ink: getComputedStyle(document.body).color }; }"""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_printed_page_holds_all_that_is_folded_and_cuts_nothing_off(show: Open, name: str, theme: str) -> None:
    page = show(samples.SAMPLES[name](), width=700, theme=theme).page
    page.emulate_media(media="print", color_scheme=theme)  # type: ignore[arg-type]
    assert page.evaluate(PRINTED) == {"cut": [], "hidden": 0, "pale": 0, "ink": "rgb(29, 33, 38)"}


FIRST_BREAK = """one => {
  const range = document.createRange(), walker = document.createTreeWalker(one, NodeFilter.SHOW_TEXT);
  let before = null;
  while (walker.nextNode()) for (let at = 0; at < walker.currentNode.length; at++) {
    range.setStart(walker.currentNode, at); range.setEnd(walker.currentNode, at + 1);
    const here = [walker.currentNode.data[at], range.getBoundingClientRect().top];
    if (before && here[1] > before[1] + 3) return before[0];
    before = here; }
  return null; }"""


def test_a_path_breaks_between_its_parts(show: Open) -> None:
    page = show(samples.incomplete(), width=400).page
    lines = page.locator("#requirements td code").all()
    assert len(lines) > 2
    assert {one.evaluate(FIRST_BREAK) for one in lines} <= {None, "/", "-"}


def test_the_themes_differ(show: Open) -> None:
    grounds = {
        show(samples.failing(), theme=theme).page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        for theme in ("light", "dark")
    }
    assert grounds == {"rgb(247, 247, 245)", "rgb(20, 23, 27)"}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_to_object_to(show: Open, theme: str) -> None:
    seen = show(samples.failing(), theme=theme)
    seen.open_all()
    result = Axe().run(seen.page)
    assert [(one["id"], [node["target"] for node in one["nodes"]]) for one in result.response["violations"]] == []


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_hostile_text_stays_text(show: Open, site: Site, text: str) -> None:
    seen = show(poisoned(text), width=400)
    seen.open_all()
    assert seen.overflow() == 0
    assert seen.page.locator("script, img, iframe, form").count() == 0
    assert seen.page.inner_text(".verdict") == "FAIL"
    check_quiet(seen, site)
