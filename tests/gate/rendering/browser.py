"""A headless Chromium that talks to nobody, and what is asked of a page in it."""

from __future__ import annotations

import http.server
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import BrowserContext, Page, sync_playwright

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync")  # fmt: skip
SLOW_MS = 120_000


@dataclass
class Site:
    """Pages at addresses of this machine. `asked` are the paths that a browser asked for."""

    port: int = 0
    pages: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def address(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"


@contextmanager
def serve() -> Iterator[Site]:
    site = Site()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.asked.append(self.path)
            body = site.pages.get(self.path)
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write((body or "").encode())

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def start_browser(profile: Path) -> Iterator[BrowserContext]:
    """A Chromium with a profile of its own; it is ended, whatever happens."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    assert program, "--run-browser was given, and there is no Chromium: ci/browser.sh installs it"
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=program, headless=True, args=list(FLAGS), timeout=SLOW_MS
        )
        context.set_default_timeout(SLOW_MS)
        try:
            yield context
        finally:
            context.close()


@dataclass
class Seen:
    """A page that is open, and what it did that nobody asked for."""

    page: Page
    complaints: list[str]
    requests: list[str]

    def overflow(self) -> int:
        """Pixels by which the page is wider than the window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))

    def open_all(self) -> None:
        self.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")

    def contrasts(self) -> list[tuple[float, str]]:
        """The contrast of every text that shows, with its beginning, the weakest first (WCAG 2: relative luminance)."""
        return sorted((one["ratio"], one["text"]) for one in self.page.evaluate(CONTRASTS))

    def tab_stops(self) -> list[str]:
        """What the Tab key reaches from the top, in order; each must show that it has the focus."""
        self.page.evaluate("document.activeElement.blur()")
        stops: list[str] = []
        while True:
            self.page.keyboard.press("Tab")
            stop = self.page.evaluate(STOP)
            if stop is None or stop["path"] in stops:
                return stops
            assert stop["outline"] >= 2, f"{stop['path']} does not show that it has the focus"
            stops.append(stop["path"])

    def interactive(self) -> list[str]:
        """What should be reached: links, summaries, regions that scroll; in the order of the page."""
        return list(self.page.evaluate(INTERACTIVE))


PATH = """
const path = one => { let names = []; for (; one.parentElement; one = one.parentElement)
  names.unshift(one.tagName + [...one.parentElement.children].indexOf(one)); return names.join(' '); };
"""
STOP = f"""() => {{ {PATH} const one = document.activeElement; if (!one || one === document.body) return null;
  const style = getComputedStyle(one);
  return {{ path: path(one), outline: style.outlineStyle === 'none' ? 0 : parseFloat(style.outlineWidth) }}; }}"""
INTERACTIVE = f"""() => {{ {PATH} return [...document.querySelectorAll('a[href], summary, [tabindex="0"]')]
  .filter(one => one.checkVisibility()).map(path); }}"""
CONTRASTS = """() => {
  const parse = text => { const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number); return {r, g, b, a}; };
  const light = c => { const [r, g, b] = [c.r, c.g, c.b].map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = one => { for (; one; one = one.parentElement) { const c = parse(getComputedStyle(one).backgroundColor);
    if (c.a === 1) return c; if (c.a !== 0) throw Error('a half transparent ground'); } return {r: 255, g: 255, b: 255}; };
  const found = []; const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) { const one = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !one.checkVisibility() || ['title', 'desc'].includes(one.tagName)) continue;
    const style = getComputedStyle(one); const svg = one instanceof SVGElement;
    const pair = [light(parse(svg ? style.fill : style.color)), light(ground(one))].sort((x, y) => y - x);
    found.push({ ratio: (pair[0] + 0.05) / (pair[1] + 0.05), text: walker.currentNode.data.slice(0, 40) }); }
  return found; }"""
