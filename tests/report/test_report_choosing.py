"""Choosing on the page in real Chromium: a window, a stream, a band of shapes, a request; also without a pointer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sample_record as sample
from browser_kit import Open, screenshots, until

pytestmark = pytest.mark.browser

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
    until(page, f"({SHOWN})('requests-size') < 30")
    brushed = page.evaluate(BRUSHED)
    assert {"chart-requests-time", "chart-queue-waiting", "chart-worker-0"} <= set(brushed)
    assert "s of the replay" in page.inner_text("#chosen")
    assert 0 < page.evaluate(SHOWN, "requests-size") == page.evaluate(SHOWN, "requests-time")
    page.keyboard.press("Escape")
    until(page, f"({SHOWN})('requests-size') === 60")
    assert page.evaluate(BRUSHED) == []
    assert report.messages == []


def test_a_stream_and_a_band_are_chosen_without_a_pointer_and_the_account_follows(opened: Open) -> None:
    report = opened(sample.ship())
    page = report.page
    assert page.evaluate(OWED) == ["75", "18", "10"]
    page.locator("select[data-field=stream]").select_option("client-2")
    until(page, f"({SHOWN})('requests-time') === 20")
    assert page.inner_text("#chosen span") == "client-2"
    # requests 40 and 43 are slow and of client-2; only 43 lies in the widest band
    page.locator("select[data-field=size]").select_option("557,791")
    until(page, f"({OWED})()[0] === '80'")
    page.get_by_role("button", name="Show all").click()
    until(page, f"({OWED})()[0] === '75'")
    assert page.locator("select[data-field=stream]").input_value() == ""
    assert report.messages == []


def test_a_window_of_the_score_marks_its_dots(opened: Open) -> None:
    page = opened(sample.ship()).page
    before = page.evaluate(SHOWN, "score-scatter")
    drag(page, "score-accuracy", 0.5, 0.8)
    until(page, f"({SHOWN})('score-scatter') < {before}")
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


INKED = """(chart) => [...document.querySelectorAll(`#chart-${chart} .mark-rect path`)]
  .filter((bar) => bar.getAttribute('fill') === 'var(--ink)').length"""
BACK = """(chart) => [...document.querySelectorAll(`#chart-${chart} .mark-rect path`)]
  .filter((bar) => Number(bar.getAttribute('opacity') ?? 1) < 1).length"""


def test_what_each_core_ran_and_who_waited_follow_a_stream_and_a_band(opened: Open, tmp_path: Path) -> None:
    report = opened(sample.ship())
    page = report.page
    assert (page.evaluate(INKED, "worker-0"), page.evaluate(BACK, "worker-0")) == (0, 0)
    page.locator("select[data-field=stream]").select_option("client-2")
    until(page, f"({INKED})('worker-0') === 20")
    assert page.evaluate(BACK, "worker-0") > 100
    # of the twenty of client-2 only 40 and 43 waited, and of the twenty narrowest of all seven are of client-2
    assert page.evaluate(INKED, "queue-waiting") == 20
    page.locator("select[data-field=size]").select_option("24,284")
    until(page, f"({INKED})('worker-0') === 7")
    page.locator("#queue").screenshot(path=screenshots(tmp_path) / "queue-chosen.png")
    page.keyboard.press("Escape")
    until(page, f"({INKED})('worker-0') === 0 && ({BACK})('worker-0') === 0")
    assert report.messages == []


RUG = """() => [...document.querySelectorAll('#chart-shapes-slow .mark-rule.role-mark line')]
  .filter((tick) => Number(tick.getAttribute('opacity') ?? 1) === 1).length"""


def test_the_shape_map_shows_which_slow_requests_are_chosen(opened: Open) -> None:
    page = opened(sample.ship()).page
    assert page.evaluate(RUG) == 6
    page.locator("select[data-field=stream]").select_option("client-2")
    until(page, f"({RUG})() === 2")
    drag(page, "shapes-padding", 0.75, 0.95)
    until(page, f"({RUG})() === 0")


def test_choosing_and_stories_need_no_pointer(opened: Open) -> None:
    report = opened(sample.ship())
    page = report.page
    page.locator("select[data-field=stream]").focus()
    page.keyboard.press("ArrowDown")
    until(page, f"({SHOWN})('requests-time') === 20")
    assert page.inner_text("#chosen span") == "client-1"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.dataset.field") == "time"
    page.keyboard.press("ArrowDown")
    until(page, "document.getElementById('chosen').innerText.includes('0 to 21 s')")
    page.get_by_role("button", name="Show all").focus()
    page.keyboard.press("Enter")
    until(page, f"({SHOWN})('requests-time') === 60")
    page.get_by_label("Story of request").focus()
    page.keyboard.press("ArrowDown")
    assert "Request 41" in page.locator(".told:visible").inner_text()
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert report.messages == []


P95 = "(kind) => document.querySelectorAll(`#chart-queue-p95 .mark-${kind}.role-mark path`)"
DOTS = f"() => ({P95})('symbol').length"
FADED = f"() => [...({P95})('line')].filter((line) => Number(line.getAttribute('opacity') ?? 1) < 1).length"
TOP = "() => Math.max(...[...document.querySelectorAll('#chart-queue-p95 .role-axis-label text')]\
.map((text) => Number(text.textContent)))"


def test_p95_over_time_steps_back_for_the_single_requests_of_the_chosen_ones(opened: Open) -> None:
    report = opened(sample.ship())
    page = report.page
    assert (page.evaluate(DOTS), page.evaluate(FADED)) == (0, 0)
    before = page.evaluate(TOP)
    drag(page, "requests-size", 0.1, 0.3)
    until(page, f"({DOTS})() > 0")
    assert page.evaluate(FADED) == 3
    assert page.evaluate(DOTS) == page.evaluate(SHOWN, "requests-size")
    page.locator("select[data-field=stream]").select_option("client-2")
    page.locator("select[data-field=size]").select_option("")
    until(page, f"({DOTS})() === 20")
    assert page.evaluate(TOP) >= before  # it reaches up to the slowest of them
    page.keyboard.press("Escape")
    until(page, f"({DOTS})() === 0 && ({FADED})() === 0")
    assert report.messages == []
