"""The page in real Chromium: no console message, no request, charts drawn, nothing overlaps, hostile names inert."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import sample_record as sample
from browser_kit import IN_PLACE, OVERLAPS, Open, screenshots, until
from msgspec.structs import replace
from test_report_watch import FOUND, MISSED, RARE, trigger

from trimtab.domain.packet import Record

pytestmark = pytest.mark.browser


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
    assert report.seen(width) == IN_PLACE
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
    record = sample.ship()
    assert record.proposal is not None
    watched = replace(record.proposal, triggers=(trigger(0.06, FOUND, RARE, MISSED),))
    report = opened(replace(record, proposal=watched), color_scheme="dark")
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
    until(page, f"{svg} < {before} - 20")
