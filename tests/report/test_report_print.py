"""The report on paper in real Chromium: a dozen pages at most, and what is left out is said."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import sample_extremes as extremes
import sample_record as sample
from browser_kit import Open, screenshots

pytestmark = pytest.mark.browser

MOST = 12
SAID = "[...document.querySelectorAll('.paper')].filter((e) => e.offsetParent).map((e) => e.textContent)"


def printed(page: Any, target: Path) -> int:
    """How many pages the browser prints."""
    page.pdf(path=target, prefer_css_page_size=True, print_background=True)
    return len(re.findall(rb"/Type\s*/Page\b", target.read_bytes()))


def test_a_thorough_study_prints_on_a_dozen_pages(opened: Open, tmp_path: Path) -> None:
    page = opened(extremes.long()).page
    assert 3 < printed(page, screenshots(tmp_path) / "long.pdf") <= MOST
    page.emulate_media(media="print")
    said = page.evaluate(SAID)
    assert "28 more candidates: in the packet." in said  # of forty; twelve stand open
    assert "38 more rows in the packet." in said  # of fifty runs
    assert page.locator("#runs tbody tr:visible").count() == 12


def test_what_a_reader_has_opened_is_printed_whole(opened: Open) -> None:
    page = opened(extremes.long()).page
    page.locator("#shapes summary").click()
    page.emulate_media(media="print")
    assert page.locator("#shapes details tbody tr:visible").count() == 292
    assert not any("more shapes" in line for line in page.evaluate(SAID))


def test_on_the_screen_nothing_is_cut(opened: Open) -> None:
    page = opened(sample.ship()).page
    assert page.evaluate(SAID) == []
    assert page.locator("#validation details").count() == 1
