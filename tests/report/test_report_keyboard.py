"""The page without a pointer, and for those who hear it, in real Chromium."""

from __future__ import annotations

from itertools import pairwise

import pytest
import sample_record as sample
from browser_kit import Open, until

pytestmark = pytest.mark.browser

CHOSEN = "document.querySelector('#chosen:not([hidden]) span')?.textContent ?? ''"
FOCUSED = "document.activeElement.id || document.activeElement.tagName"


def test_the_arrow_keys_choose_a_part_of_an_axis(opened: Open) -> None:
    report = opened(sample.ship())
    page = report.page
    page.locator("#chart-score-missed").focus()
    page.keyboard.press("ArrowRight")
    until(page, f"({CHOSEN}) === 'windows 1 to 1'")
    assert "choose a part" in page.evaluate("getComputedStyle(document.activeElement, '::after').content")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    until(page, f"({CHOSEN}) === 'windows 2 to 3'")
    assert page.inner_text("#status") == "Chosen: windows 2 to 3"
    for _ in range(20):  # the axis has sixteen windows; the part stops at its end
        page.keyboard.press("ArrowRight")
    until(page, f"({CHOSEN}) === 'windows 15 to 16'")
    page.keyboard.press("Escape")
    until(page, f"({CHOSEN}) === ''")
    page.keyboard.press("ArrowLeft")
    until(page, f"({CHOSEN}) === 'windows 16 to 16'")
    assert report.messages == []


def test_each_stack_is_one_stop_and_the_button_gives_the_keyboard_back(opened: Open) -> None:
    page = opened(sample.ship()).page
    stops = page.evaluate("[...document.querySelectorAll('.chart[tabindex]')].map((e) => e.id.slice(6))")
    assert stops == ["score-missed", "requests-time", "requests-size", "shapes-traffic", "queue-waiting"]
    page.locator("#chart-queue-waiting").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#chosen:not([hidden])")
    page.get_by_role("button", name="Show all").focus()
    page.keyboard.press("Enter")
    assert page.evaluate(FOCUSED) == "chart-queue-waiting"
    assert page.inner_text("#status") == "All of it is shown"


def test_only_tables_that_scroll_take_a_stop(opened: Open) -> None:
    page = opened(sample.ship()).page
    wide = """[...document.querySelectorAll(".scroll")]
      .filter((e) => (e.scrollWidth > e.clientWidth + 1) !== (e.tabIndex === 0))"""
    assert page.evaluate(f"{wide}.length") == 0
    assert page.locator(".scroll[tabindex]").count() == 0  # on a wide screen no table is cut
    page.set_viewport_size({"width": 390, "height": 800})
    until(page, f"{wide}.length === 0 && document.querySelector('.scroll[tabindex]')")


def test_headings_descend_one_step_at_a_time_and_everything_drawn_has_a_name(opened: Open) -> None:
    page = opened(sample.ship()).page
    levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3')].map((e) => Number(e.tagName[1]))")
    assert levels[0] == 1
    assert all(below - above <= 1 for above, below in pairwise(levels))
    nameless = """[...document.querySelectorAll("[role=img], [role=group], button, select")]
      .filter((e) => !(e.ariaLabel || e.textContent.trim() || e.labels?.length))"""
    assert page.evaluate(f"{nameless}.map((e) => e.outerHTML.slice(0, 80))") == []


def test_nothing_scrolls_smoothly_for_those_who_asked_for_less_motion(opened: Open) -> None:
    behaviour = "getComputedStyle(document.documentElement).scrollBehavior"
    assert opened(sample.minimal()).page.evaluate(behaviour) == "smooth"
    assert opened(sample.minimal(), reduced_motion="reduce").page.evaluate(behaviour) == "auto"


def test_a_section_stays_in_place_while_the_charts_above_it_are_drawn(opened: Open) -> None:
    """Charts have their room before they are drawn."""
    page = opened(sample.ship()).page
    grown = """[...document.querySelectorAll('.chart')].filter((host) => {
      const [, height] = /(?:^| )h(\\d+)/.exec(host.className);
      return Math.abs(host.getBoundingClientRect().height - Number(height)) > 1;
    }).map((host) => host.id)"""
    assert page.evaluate(grown) == []
