"""The page in real Chromium: no console message, no request, charts drawn, nothing overlaps, hostile names inert.

Needs Debian's chromium. Where it is missing the tests are skipped with that reason, except in CI, where they fail.
Screenshots go to ``REPORT_SCREENSHOTS`` if it is set, else to pytest's temporary folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sample_record as sample

from trimtab.domain.packet import Record
from trimtab.report import html
from trimtab.report.view import view

pytestmark = pytest.mark.browser

CHROMIUM = Path("/usr/bin/chromium")
DRAWN_MS = 60_000

OVERLAPS = """() => {
  const boxes = [];
  const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const parent = node.parentElement;
    if (!node.textContent.trim() || parent.closest('details:not([open]) table')) continue;
    const scroller = parent.closest('.scroll');
    const clip = scroller ? scroller.getBoundingClientRect() : null;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const r of range.getClientRects()) {
      if (r.width < 2 || r.height < 2) continue;
      const right = clip ? Math.min(r.right, clip.right) : r.right;
      if (right - r.left < 2) continue;
      boxes.push({text: node.textContent.trim().slice(0, 40), l: r.left, r: right, t: r.top, b: r.bottom});
    }
  }
  const found = [];
  boxes.sort((a, b) => a.t - b.t);
  for (let i = 0; i < boxes.length; i++) {
    for (let j = i + 1; j < boxes.length && boxes[j].t < boxes[i].b; j++) {
      const w = Math.min(boxes[i].r, boxes[j].r) - Math.max(boxes[i].l, boxes[j].l);
      const h = Math.min(boxes[i].b, boxes[j].b) - Math.max(boxes[i].t, boxes[j].t);
      if (w > 1.5 && h > 3.5) found.push(boxes[i].text + ' | ' + boxes[j].text);
    }
  }
  return found;
}"""

OUTSIDE = """() => [...document.querySelectorAll('main h1, main h2, main p, .answer *, .panel, .legend, .block')]
  .filter((e) => e.getBoundingClientRect().right > document.querySelector('main').getBoundingClientRect().right + 1.5)
  .map((e) => e.tagName + ' ' + e.className + ' ' + e.textContent.trim().slice(0, 40))"""

EMPTY_CHARTS = """() => [...document.querySelectorAll('.chart')].filter((host) => {
  const svg = host.querySelector('svg');
  return !svg || !svg.querySelector('.role-mark path[d], .role-mark line, .role-mark text');
}).map((host) => host.id)"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if not CHROMIUM.exists():
        if os.environ.get("CI") == "true":
            pytest.fail(f"{CHROMIUM} is missing; install Debian's chromium")
        pytest.skip(f"{CHROMIUM} is not installed (apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield chromium
        chromium.close()


class Opened:
    """A report in a browser page, with everything it said and asked for."""

    def __init__(self, browser: Any, path: Path, record: Record, **context: Any) -> None:
        path.write_text(html.render(view(record)), encoding="utf-8")
        self.context = browser.new_context(**({"viewport": {"width": 1440, "height": 900}} | context))
        self.page = self.context.new_page()
        self.messages: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("dialog", lambda dialog: self.messages.append(f"dialog {dialog.message}"))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-charts=drawn]", timeout=DRAWN_MS)


Open = Callable[..., Opened]


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Open]:
    made: list[Opened] = []

    def open_(record: Record, **context: Any) -> Opened:
        made.append(Opened(browser, tmp_path / f"report-{len(made)}.html", record, **context))
        return made[-1]

    yield open_
    for each in made:
        each.context.close()


def screenshots(tmp_path: Path) -> Path:
    folder = Path(os.environ.get("REPORT_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.mark.parametrize(
    ("name", "make", "width", "scheme"),
    [
        ("ship-light", sample.ship, 1440, "light"),
        ("ship-light-1600", sample.ship, 1600, "light"),
        ("ship-dark-1024", sample.ship, 1024, "dark"),
        ("hold-light-1024", sample.hold, 1024, "light"),
        ("crowded-light-1024", sample.crowded, 1024, "light"),
        ("rollback-dark", sample.rollback, 1440, "dark"),
        ("failing-light", sample.failing, 1440, "light"),
        ("minimal-light-1024", sample.minimal, 1024, "light"),
    ],
)
def test_it_draws_everything_in_its_place_and_asks_for_nothing(
    opened: Open, tmp_path: Path, name: str, make: Callable[[], Record], width: int, scheme: str
) -> None:
    report = opened(make(), viewport={"width": width, "height": 900}, color_scheme=scheme)
    assert report.messages == []
    assert [url.partition(":")[0] for url in report.requests] == ["file"]
    assert report.page.evaluate(EMPTY_CHARTS) == []
    assert report.page.evaluate(OVERLAPS) == []
    assert report.page.evaluate(OUTSIDE) == []
    assert report.page.evaluate("document.documentElement.scrollWidth") <= width
    target = screenshots(tmp_path) / f"{name}.png"
    report.page.screenshot(path=target, full_page=True)
    assert target.stat().st_size > 10_000


def test_hostile_names_are_inert(opened: Open) -> None:
    report = opened(sample.hostile())
    assert report.messages == []
    assert len(report.requests) == 1
    assert report.page.locator("main img, main a, main iframe, main script").count() == 0
    assert "<img src=x onerror=alert(1)>" in report.page.inner_text("main")


def test_the_policy_stops_what_is_not_carried(opened: Open) -> None:
    report = opened(sample.minimal())
    report.page.evaluate("""() => {
      const script = document.createElement('script');
      script.textContent = 'window.ran = true';
      document.body.append(script);
    }""")
    assert report.page.evaluate("window.ran") is None
    assert any("Content Security Policy" in message for message in report.messages)


def test_the_overlap_check_notices_an_overlap(opened: Open) -> None:
    page = opened(sample.minimal()).page
    page.evaluate("""() => {
      const title = document.querySelector('h1');
      title.after(title.cloneNode(true));
      const sheet = new CSSStyleSheet();
      sheet.replaceSync('main h1 {position: absolute; top: 40px}');
      document.adoptedStyleSheets = [sheet];
    }""")
    assert page.evaluate(OVERLAPS) == ["ocr-receipts: trimtab report | ocr-receipts: trimtab report"]


def test_print_is_light_has_no_navigation_and_no_overlap(opened: Open, tmp_path: Path) -> None:
    report = opened(sample.ship(), color_scheme="dark")
    report.page.set_viewport_size({"width": 703, "height": 1000})
    report.page.emulate_media(media="print", color_scheme="dark")
    assert report.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not report.page.locator(".rail nav").is_visible()
    assert report.page.evaluate(OVERLAPS) == []
    assert report.page.evaluate("document.documentElement.scrollWidth") <= 703
    report.page.pdf(path=screenshots(tmp_path) / "report.pdf", prefer_css_page_size=True, print_background=True)


def test_the_theme_follows_the_system_and_the_button(opened: Open) -> None:
    page = opened(sample.ship(), color_scheme="dark").page
    background = "getComputedStyle(document.body).backgroundColor"
    line = "getComputedStyle(document.querySelector('#chart-latency-quantiles .mark-line path')).stroke"
    dark_line = page.evaluate(line)
    assert page.evaluate(background) == "rgb(15, 17, 20)"
    page.get_by_role("button", name="Switch to the light theme").click()
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    assert page.evaluate(line) != dark_line


def test_the_keyboard_reaches_the_verdict_the_sections_and_the_folds(opened: Open) -> None:
    page = opened(sample.ship()).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.locator(".rail li a").nth(2).focus()
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#tail"
    page.locator("details summary").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("details").first.get_attribute("open") is not None


def test_hovering_a_cause_dims_the_others(opened: Open) -> None:
    page = opened(sample.ship()).page
    page.locator("#tail [data-cause=cold]").last.hover()
    opacity = "(e) => getComputedStyle(e).opacity"
    assert page.locator("#tail [data-cause=cold]").first.evaluate(opacity) == "1"
    assert float(page.locator("#tail [data-cause=capacity]").first.evaluate(opacity)) < 0.5


def test_charts_follow_the_width_of_the_window(opened: Open) -> None:
    page = opened(sample.ship()).page
    svg = "document.querySelector('#chart-latency-quantiles svg').getBoundingClientRect().width"
    before = page.evaluate(svg)
    page.set_viewport_size({"width": 1024, "height": 900})
    page.wait_for_function(f"{svg} < {before} - 20")


# --- choosing -----------------------------------------------------------------------------------------------------

SHOWN = """(chart) => [...document.querySelectorAll(`#chart-${chart} .mark-symbol path`)]
  .filter((dot) => Number(dot.getAttribute('opacity') ?? 1) === 1).length"""
OWED = """() => [...document.querySelectorAll('#chart-requests-owed .mark-text.role-mark text')]
  .map((text) => text.textContent)"""
BRUSHED = "() => [...document.querySelectorAll('.brush')].filter((e) => !e.hidden).map((e) => e.parentElement.id)"


def drag(page: Any, chart: str, start: float, end: float) -> None:
    """Draw over a part of a chart's plot; ``start`` and ``end`` as shares of the width of its host."""
    host = page.locator(f"#chart-{chart}")
    host.scroll_into_view_if_needed()
    box = host.bounding_box()
    y = box["y"] + 24
    page.mouse.move(box["x"] + start * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + (start + end) / 2 * box["width"], y)
    page.mouse.move(box["x"] + end * box["width"], y)
    page.mouse.up()
    page.wait_for_selector("#chosen:not([hidden])")


def test_a_window_drawn_on_one_chart_is_chosen_on_all_charts_over_time(opened: Open) -> None:
    report = opened(sample.ship())
    page = report.page
    assert page.evaluate(SHOWN, "requests-size") == 60
    drag(page, "queue-waiting", 0.62, 0.75)
    page.wait_for_function(f"({SHOWN})('requests-size') < 30")
    brushed = page.evaluate(BRUSHED)
    assert {"chart-requests-time", "chart-queue-waiting", "chart-worker-0"} <= set(brushed)
    assert "s of the replay" in page.inner_text("#chosen")
    assert 0 < page.evaluate(SHOWN, "requests-size") == page.evaluate(SHOWN, "requests-time")
    page.keyboard.press("Escape")
    page.wait_for_function(f"({SHOWN})('requests-size') === 60")
    assert page.evaluate(BRUSHED) == []
    assert report.messages == []


def test_a_stream_and_a_band_are_chosen_without_a_pointer_and_the_account_follows(opened: Open) -> None:
    report = opened(sample.ship())
    page = report.page
    assert page.evaluate(OWED) == ["75", "18", "10"]
    page.locator("select[data-field=stream]").select_option("client-2")
    page.wait_for_function(f"({SHOWN})('requests-time') === 20")
    assert page.inner_text("#chosen span") == "client-2"
    # requests 40 and 43 are slow and of client-2; only 43 lies in the widest band
    page.locator("select[data-field=size]").select_option("557,791")
    page.wait_for_function(f"({OWED})()[0] === '80'")
    page.get_by_role("button", name="Show all").click()
    page.wait_for_function(f"({OWED})()[0] === '75'")
    assert page.locator("select[data-field=stream]").input_value() == ""
    assert report.messages == []


def test_a_window_of_the_score_marks_its_dots(opened: Open) -> None:
    page = opened(sample.ship()).page
    before = page.evaluate(SHOWN, "score-scatter")
    drag(page, "score-accuracy", 0.5, 0.8)
    page.wait_for_function(f"({SHOWN})('score-scatter') < {before}")
    assert "windows" in page.inner_text("#chosen")


def test_a_click_on_a_slow_request_tells_its_story(opened: Open, tmp_path: Path) -> None:
    report = opened(sample.ship())
    page = report.page
    assert page.locator(".told:visible").count() == 1
    assert "Request 40" in page.locator(".told:visible").inner_text()
    page.locator("#chart-requests-time .mark-symbol [data-cause=cold]").nth(1).click()
    told = page.locator(".told:visible")
    assert told.count() == 1
    assert "Of 107 ms: 70 ms the cost of cold runs. Shown are the 2 that cost it most." in told.inner_text()
    assert "Batch 38" in told.inner_text()
    assert "Request 41" in told.inner_text()
    assert page.get_by_label("Story of request").input_value() == "41"
    page.get_by_label("Story of request").select_option("40")
    assert "Request 40" in page.locator(".told:visible").inner_text()
    page.locator("#requests").screenshot(path=screenshots(tmp_path) / "requests.png")
    assert report.messages == []


def test_hovering_a_cause_dims_the_others_in_charts_too(opened: Open) -> None:
    page = opened(sample.ship()).page
    opacity = "(e) => Number(getComputedStyle(e).opacity)"
    page.locator("#queue .notes [data-cause=cold]").hover()
    worker = page.locator("#chart-worker-0")
    assert worker.locator("[data-cause=cold]").first.evaluate(opacity) == 1
    assert worker.locator("[data-cause=useful]").first.evaluate(opacity) < 0.5
    assert page.locator("#chart-requests-owed [data-cause=capacity]").first.evaluate(opacity) < 0.5
