"""Debian's chromium for the tests that look at pages. Where it is missing they are skipped with that reason, except in
CI, where they fail."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_kit import Open, Opened

from trimtab.domain.packet import Record
from trimtab.report import html
from trimtab.report.view import view

CHROMIUM = Path("/usr/bin/chromium")


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


@pytest.fixture
def opened_html(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens a text of HTML, and closes all that it opened."""
    made: list[Opened] = []

    def open_(text: str, **context: Any) -> Opened:
        made.append(Opened(browser, tmp_path / f"report-{len(made)}.html", text, **context))
        return made[-1]

    yield open_
    for each in made:
        each.context.close()


@pytest.fixture
def opened(opened_html: Open) -> Open:
    """Opens the report of a record."""

    def open_(record: Record, **context: Any) -> Opened:
        return opened_html(html.render(view(record)), **context)

    return open_
