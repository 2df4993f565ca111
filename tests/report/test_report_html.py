"""The HTML file: self-contained, inert to hostile names, small, and the same bytes for the same page."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest
import sample_extremes as extremes
import sample_record as sample

from trimtab.report import html
from trimtab.report.view import view

PAGE = html.render(view(sample.ship()))
HOSTILE = html.render(view(sample.hostile()))


class Reader(HTMLParser):
    """Elements, attributes and scripts as a browser would read them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.scripts.append((dict(attrs), ""))

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1][0] in ("script", "style") and self.scripts:
            attrs, before = self.scripts[-1]
            self.scripts[-1] = (attrs, before + data)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self.elements.append((f"/{tag}", {}))


def policy(text: str) -> str:
    meta = [attrs for tag, attrs in Reader(text).elements if attrs.get("http-equiv") == "Content-Security-Policy"]
    assert len(meta) == 1
    return str(meta[0]["content"])


def test_nothing_may_be_loaded_and_only_the_carried_scripts_may_run() -> None:
    said = policy(PAGE)
    assert said.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in said
    for attrs, body in Reader(PAGE).scripts:
        if attrs.get("type") != "application/json":
            digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in said


def test_no_element_asks_for_anything_outside_the_file() -> None:
    for tag, attrs in Reader(PAGE).elements:
        for name in ("src", "href", "xlink:href", "action", "data", "srcset", "poster"):
            value = attrs.get(name)
            assert value is None or value.startswith("#"), (tag, name, value)
    carried = PAGE
    for name in ("vega.min.js", "vega-lite.min.js", "vega-embed.min.js"):
        carried = carried.replace(html._resource(f"vendor/{name}").decode(), "")
    assert "http://" not in carried
    assert "https://" not in carried
    assert set(re.findall(r"url\(([^)#d]\w*)", carried)) == set()


def test_the_page_is_small() -> None:
    assert len(PAGE.encode()) < 2_000_000


def test_hostile_names_stay_text() -> None:
    read = Reader(HOSTILE)
    tags = {tag for tag, _ in read.elements}
    assert "img" not in tags
    assert [tag for tag, _ in read.elements].count("script") == [tag for tag, _ in Reader(PAGE).elements].count(
        "script"
    )
    assert not any(name.startswith("on") or name == "style" for _, attrs in read.elements for name in attrs)
    assert "&lt;img src=x onerror=alert(1)&gt;" in HOSTILE
    assert "<img src=x" not in HOSTILE


def test_names_neither_turn_nor_bury_what_stands_beside_them() -> None:
    text = html.render(view(extremes.endless(sample.ship())))
    body = text.partition("<main>")[2].partition("</main>")[0]
    assert "refit-4\\u202exxx" in body
    assert "x" * 161 not in re.sub(r"<option value=\"[^\"]*\"", "", body)
    assert "\u202e" not in re.sub(r"<option value=\"[^\"]*\"", "", body)
    assert f'<option value="client-3\u202e{"x" * 10_000}">client-3\\u202exxx' in body  # charts compare it


def test_chart_data_is_json_that_cannot_end_its_element() -> None:
    data = [body for attrs, body in Reader(HOSTILE).scripts if attrs.get("type") == "application/json"]
    assert len(data) == 1
    assert "<" not in data[0]
    assert sample.HOSTILE in json.dumps(json.loads(data[0]), ensure_ascii=False)


def test_specs_hold_no_links_and_no_outside_data() -> None:
    """Vega follows ``url``, ``href`` and image marks: no specification has any."""
    text = json.dumps([chart.spec for chart in html.charts_of(view(sample.hostile()))])
    for word in ('"url":', '"href":', '"image"', '"geoshape"'):
        assert word not in text


def test_every_chart_has_a_place_and_a_text_alternative() -> None:
    charts = list(html.charts_of(view(sample.ship())))
    places = {attrs["id"]: attrs for _, attrs in Reader(PAGE).elements if str(attrs.get("id")).startswith("chart-")}
    assert {f"chart-{chart.id}" for chart in charts} == places.keys()
    assert all(place["role"] == "img" and place["aria-label"] for place in places.values())


def test_same_page_same_bytes() -> None:
    assert html.render(view(sample.ship())) == PAGE


def test_infinities_reach_no_chart() -> None:
    with pytest.raises(ValueError, match="JSON"):
        html.as_json({"x": float("inf")})
    html.render(view(sample.failing()))


@pytest.mark.parametrize("make", [sample.minimal, sample.hold, sample.rollback, sample.failing])
def test_every_kind_of_record_renders(make: object) -> None:
    text = html.render(view(make()))  # type: ignore[operator]
    assert text.startswith("<!doctype html>")
    assert text.rstrip().endswith("</html>")
