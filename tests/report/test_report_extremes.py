"""The page at its extremes in real Chromium: nothing overlaps, no line strikes a text, nothing runs out of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import sample_extremes as extremes
import sample_record as sample
from browser_kit import CROSSED, IN_PLACE, Open, screenshots

from trimtab.domain.packet import Record

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(
    ("name", "make", "width"),
    [
        ("least", extremes.least, 1440),
        ("at-the-bound", extremes.at_the_bound, 1024),
        ("plenty-on-a-phone", extremes.plenty, 390),
        ("huge", lambda: extremes.times(1e5), 1024),
        ("tiny-and-endless", lambda: extremes.endless(extremes.times(1e-5)), 1440),
    ],
)
def test_it_stays_in_its_place(opened: Open, tmp_path: Path, name: str, make: Callable[[], Record], width: int) -> None:
    report = opened(make(), viewport={"width": width, "height": 900})
    report.page.screenshot(path=screenshots(tmp_path) / f"{name}.png", full_page=True)
    assert report.seen(width) == IN_PLACE


def test_the_check_notices_a_line_through_a_text(opened: Open) -> None:
    page = opened(sample.ship()).page
    struck = page.evaluate("""() => {
      const texts = [...document.querySelectorAll("#chart-trend .mark-text text")];
      const label = texts.find((one) => one.getAttribute("stroke"));
      label.removeAttribute('stroke');
      const line = document.querySelector('#chart-trend .mark-rule line');
      const at = [label, line].map((one) => one.getBoundingClientRect());
      const by = at[0].top + at[0].height / 2 - at[1].top;
      line.setAttribute('transform', `${line.getAttribute('transform')} translate(0,${by})`);
      return label.textContent;
    }""")
    assert page.evaluate(CROSSED) == [struck]
