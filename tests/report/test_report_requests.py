"""The slow requests on the page: dots, what may be chosen, what the chosen ones owe, and the stories."""

from __future__ import annotations

from typing import Any

import sample_record as sample
from msgspec.structs import replace

from trimtab.report import html
from trimtab.report.page import Chart, Choice, Panels, Section, Split, Stories
from trimtab.report.view import view

G = "\u00a0"


def section() -> Section:
    return next(section for section in view(sample.ship()).sections if section.id == "requests")


def charts() -> dict[str, Chart]:
    split = section().blocks[0]
    assert isinstance(split, Split)
    blocks = [block for block in (*split.left, *split.right) if isinstance(block, Panels)]
    return {panel.chart.id: panel.chart for block in blocks for panel in block.panels}


def rows(chart: Chart, layer: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = chart.spec["layer"][layer]["data"]["values"]
    return found


def test_the_heading_tells_of_the_slowest() -> None:
    assert section().heading == f"The slowest request took 108{G}ms: for 78{G}ms of it three batches ran in front."


def test_every_shown_request_is_a_dot_on_both_axes_and_those_with_a_story_say_so() -> None:
    found = charts()
    assert (found["requests-time"].axis, found["requests-size"].axis) == ("time", "size")
    assert len(rows(found["requests-time"], 1)) == 54
    slow = rows(found["requests-time"], 2)
    assert [(dot["id"], dot["ms"], dot["cause"], dot["told"]) for dot in slow[:3]] == [
        (40, 108.0, "cold", 40),
        (41, 107.0, "cold", 41),
        (42, 106.0, "cold", None),
    ]


def test_streams_windows_and_bands_can_be_chosen() -> None:
    split = section().blocks[0]
    assert isinstance(split, Split)
    choice = split.right[0]
    assert isinstance(choice, Choice)
    assert {select.field: select.options for select in choice.selects} == {
        "stream": (("client-1", "client-1"), ("client-2", "client-2"), ("client-3", "client-3")),
        "time": (("0.0,21.0", f"0 to 21{G}s"), ("21.0,41.3", f"21 to 41.3{G}s")),
        "size": (("24,284", "24 to 284"), ("297,544", "297 to 544"), ("557,791", "557 to 791")),
    }


def test_what_is_not_owed_counts_as_zero_in_the_mean() -> None:
    owed = rows(charts()["requests-owed"], 0)
    assert len(owed) == 6
    assert owed[0] == {
        "t": 28.0, "size": 544.0, "stream": "client-2", "own_cold": 10.0, "inherited_cold": 60.0, "own_capacity": 0.0,
        "inherited_capacity": 18.0, "own_useful": 10.0, "inherited_useful": 0.0,
    }  # fmt: skip


def test_a_story_lists_who_was_in_front_and_then_the_request() -> None:
    block = section().blocks[1]
    assert isinstance(block, Stories)
    first = block.told[0]
    assert first.title == f"40: 108{G}ms, client-2, 544"
    assert [[cell.text for cell in row.cells] for row in first.grid.rows] == [
        ["Batch 38", "", "0", "any-width", "33", f"Cold shapes, 33{G}ms"],
        ["Batch 39", "", "0", "any-width", "45", f"Cold shapes, 33{G}ms"],
        ["Request 40", "", "0", "any-width", "29 to run", "first run of its shape"],
    ]
    strip = first.grid.rows[1].cells[1].strip
    assert strip is not None
    assert [(mark.form, mark.cause) for mark in strip.marks] == [("tick", ""), ("bar", "useful"), ("bar", "cold")]


def test_without_the_series_there_is_no_section() -> None:
    record = sample.ship()
    found = record.findings["attribute"]
    kept = tuple(series for series in found.series if not series.id.startswith("requests."))
    page = view(replace(record, findings={**record.findings, "attribute": replace(found, series=kept)}))
    assert "requests" not in {section.id for section in page.sections}


def test_rows_are_carried_once_as_columns_where_all_have_the_same_fields() -> None:
    layer = {"mark": "point", "data": {"values": [{"x": 1, "y": 2}, {"x": 3, "y": 4}]}}
    other = {"mark": "line", "data": {"values": [{"x": 2}, {"y": 5}]}}
    lean, kept = html.thrifty([{"id": "a", "spec": {"layer": [layer, other]}}, {"id": "b", "spec": {"layer": [layer]}}])
    assert kept == [{"x": [1, 3], "y": [2, 4]}, [{"x": 2}, {"y": 5}]]
    assert [chart["spec"]["layer"] for chart in lean] == [
        [{"mark": "point", "data": {"rows": 0}}, {"mark": "line", "data": {"rows": 1}}],
        [{"mark": "point", "data": {"rows": 0}}],
    ]
