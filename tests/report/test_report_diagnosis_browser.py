"""The pages of files in real Chromium: no console message, no request, charts drawn, nothing overlaps, names inert."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import diagnosed_kit as kit
import pytest
from browser_kit import IN_PLACE, OVERLAPS, Open, Opened, screenshots

from trimtab.report import html
from trimtab.report.page import Page

pytestmark = pytest.mark.browser

PAGES: dict[str, Callable[[Path], Page]] = {
    "requests": lambda folder: kit.page(kit.requests(folder), sla="p95=40ms"),
    "device": lambda folder: kit.page("kineto_alexnet.json.gz"),
    "several": lambda folder: kit.page("kineto_torch_2_13_cpu.json.gz", "torch_trace_2_13.log.gz",
                                       "perf_analyzer_inception.csv", "trtexec_profile_mobilenet.json"),
    "traffic": lambda folder: kit.traffic_page(kit.arrivals(folder)),
}  # fmt: skip


@pytest.fixture
def opened(opened_html: Open) -> Open:
    def open_(page: Page, **context: Any) -> Opened:
        return opened_html(html.render(page), **context)

    return open_


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [("requests", 1440, "light"), ("requests", 1024, "dark"), ("device", 1440, "dark"), ("several", 1440, "light"),
     ("traffic", 1440, "light"), ("traffic", 1024, "dark")],
)  # fmt: skip
def test_it_draws_everything_in_its_place_and_asks_for_nothing(
    opened: Open, tmp_path: Path, name: str, width: int, scheme: str
) -> None:
    report = opened(PAGES[name](tmp_path), viewport={"width": width, "height": 900}, color_scheme=scheme)
    assert report.seen(width) == IN_PLACE
    target = screenshots(tmp_path) / f"{name}-{scheme}-{width}.png"
    report.page.screenshot(path=target, full_page=True)
    assert target.stat().st_size > 10_000


@pytest.mark.parametrize("make", [
    lambda folder: kit.page(kit.requests(folder, "x.csv", kit.HOSTILE)),
    lambda folder: kit.traffic_page(kit.arrivals(folder, "x.csv", kit.HOSTILE)),
])  # fmt: skip
def test_hostile_names_are_inert(opened: Open, tmp_path: Path, make: Callable[[Path], Page]) -> None:
    report = opened(make(tmp_path))
    assert report.messages == []
    assert len(report.requests) == 1
    assert report.page.locator("main img, main a, main iframe, main script").count() == 0
    assert kit.HOSTILE in report.page.inner_text("main")


def test_print_is_light_and_has_no_overlap(opened: Open, tmp_path: Path) -> None:
    report = opened(PAGES["requests"](tmp_path), color_scheme="dark")
    report.page.set_viewport_size({"width": 703, "height": 1000})
    report.page.emulate_media(media="print", color_scheme="dark")
    assert report.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert report.page.evaluate(OVERLAPS) == []
    assert report.page.evaluate("document.documentElement.scrollWidth") <= 703
