"""The primary metric over windows, padding over sizes, and how many entries are worth their start."""

from __future__ import annotations

from typing import Any

import sample_record as sample
from msgspec.structs import replace

from trimtab.domain.figure import Cell
from trimtab.domain.packet import Record
from trimtab.report.html import charts_of
from trimtab.report.page import Chart, Panel, Panels, Section, Split
from trimtab.report.view import view

G = "\u00a0"


def part(record: Record, id_: str) -> Section:
    return next(section for section in view(record).sections if section.id == id_)


def panel(section: Section, label: str) -> Panel | None:
    blocks = [inner for b in section.blocks for inner in ((*b.left, *b.right) if isinstance(b, Split) else (b,))]
    found = (panel for block in blocks if isinstance(block, Panels) for panel in block.panels)
    return next((panel for panel in found if panel.label == label), None)


def drawn(record: Record, id_: str) -> list[list[dict[str, Any]]]:
    """The rows of each layer of a chart."""
    chart: Chart = next(chart for chart in charts_of(view(record)) if chart.id == id_)
    return [layer["data"]["values"] for layer in chart.spec["layer"]]


def changed(record: Record, stage: str, id_: str, **columns: tuple[Cell, ...]) -> Record:
    """The same record with other columns in one series; without it where there are none."""
    found = record.findings[stage]
    kept = tuple(one for one in found.series if one.id != id_ or columns)
    made = tuple(replace(one, columns=one.columns | columns) if one.id == id_ else one for one in kept)
    return replace(record, findings={**record.findings, stage: replace(found, series=made)})


def test_the_first_chart_of_the_score_is_the_measured_trend_of_both_plans() -> None:
    split = part(sample.ship(), "score").blocks[0]
    assert isinstance(split, Split)
    first = split.left[0]
    assert isinstance(first, Panels)
    assert [(one.label, one.sub) for one in first.panels] == [("p95", "by window, held-out, measured")]
    assert [line.text for line in first.panels[0].lines] == [
        "today",
        "refit-4",
        "band: lowest to highest replay",
        "better in 6 of 6 windows of 200 requests.",
    ]
    layers = drawn(sample.ship(), "trend")
    assert layers[1][0] == {"window": 1.0, "value": 50.0, "lo": 48.0, "hi": 55.0}
    assert [row["value"] for row in layers[3]] == [38.0, 39.0, 40.0, 41.0, 42.0, 43.0]
    assert layers[-1][0]["text"] == "bound 60 ms"


def test_a_window_among_the_failed_is_a_gap_and_too_few_windows_are_no_trend() -> None:
    lost = changed(sample.ship(), "decide", "decide.trend", baseline=(50.0, None, 66.0, 74.0, 82.0, 90.0))
    assert [row["window"] for row in drawn(lost, "trend")[1]] == [1.0, 3.0, 4.0, 5.0, 6.0]
    record = sample.ship()
    found = record.findings["decide"].series[0]
    short = {name: cells[:2] for name, cells in found.columns.items()}
    assert panel(part(changed(record, "decide", "decide.trend", **short), "score"), "p95") is None


def test_padding_is_drawn_bar_by_bar_and_by_entry_in_line_with_the_entries() -> None:
    found = panel(part(sample.ship(), "shapes"), "Padding")
    assert found is not None
    assert found.sub == "share of executed positions, held-out"
    assert [(line.text, line.swatch) for line in found.lines] == [
        (f"refit-4: 21{G}%", "cause-padding"),
        (f"today: 0{G}%", "line static"),
        ("of an entry as a whole", "line"),
    ]
    bars, today, whole = drawn(sample.ship(), "shapes-padding")
    assert bars[0] == {"lo": 16.0, "end": 41.0, "padding": 0.825, "base": 0.0}
    assert today == [{"lo": 16.0, "end": 961.0, "padding": 0.0, "base": 0.0}]
    assert [(row["lo"], row["end"]) for row in whole] == [(16.0, 161.0), (161.0, 289.0), (289.0, 513.0), (513.0, 961.0)]


def test_where_nothing_is_padded_or_nothing_is_known_there_is_no_padding_strip() -> None:
    record = sample.ship()
    count = len(record.findings["validate"].table("validate.padding").columns["padding"])  # type: ignore[union-attr]
    flat = changed(record, "validate", "validate.padding", padding=(0.0,) * count)
    absent = changed(record, "validate", "validate.padding")
    for each in (flat, absent):
        assert panel(part(each, "shapes"), "Padding") is None


def test_the_sweep_marks_the_inner_optimum_and_where_memory_ends() -> None:
    found = panel(part(sample.ship(), "candidates"), "How many entries")
    assert found is not None
    assert [line.text for line in found.lines] == [
        "in all, with its part of the start", "to run", "does not fit into memory",
        "216 ms to start an entry, 2160 requests a start; limit 1200 MiB",
    ]  # fmt: skip
    run, total, beyond, edge, _, dot, _ = drawn(sample.ship(), "sweep")
    assert len(run) == len(total) == 12
    assert [row["count"] for row in beyond] == [12.0, 13.0, 14.0, 15.0, 16.0]  # joined to the last that fits
    assert edge[0]["count"] == 12.5
    assert dot == [{"count": 9.0, "total": 4.0 + 8.0 / 9 + 0.9, "text": "least: 9 entries, 5.79 ms"}]


def test_the_sweep_names_the_proposed_number_where_its_entries_are_fitted() -> None:
    record = sample.ship()
    assert record.proposal is not None
    fitted = replace(record.proposal, move=replace(record.proposal.move, kind="refit"))
    texts = [
        row["text"] for layer in drawn(replace(record, proposal=fitted), "sweep") for row in layer if "text" in row
    ]
    assert list(dict.fromkeys(texts)) == ["memory limit", "proposed: refit-4", "least: 9 entries, 5.79 ms"]


def test_without_a_sweep_the_candidates_have_no_such_chart() -> None:
    assert panel(part(changed(sample.ship(), "retune", "retune.sweep"), "candidates"), "How many entries") is None


def test_what_a_worker_ran_steps_back_for_what_it_ran_for_the_chosen_ones() -> None:
    chart = next(chart for chart in charts_of(view(sample.ship())) if chart.id == "worker-0")
    *stacked, theirs = chart.spec["layer"]
    tests = {layer["encoding"]["opacity"]["condition"]["test"] for layer in stacked}
    assert tests == {"stream === null && size_lo === null"}
    assert theirs["transform"][0]["filter"] == (
        "!(stream === null && size_lo === null) && "
        "(size_lo === null || (datum.size >= size_lo && datum.size <= size_hi)) && "
        "(stream === null || datum.stream === stream) && datum.worker === 0"
    )
    without = changed(sample.ship(), "attribute", "requests.served")
    chart = next(chart for chart in charts_of(view(without)) if chart.id == "worker-0")
    assert len(chart.spec["layer"]) == len(stacked)


def test_a_dynamic_entry_is_named_where_it_has_room_for_its_name() -> None:
    """Of the 979 px shown, 19 are left beyond the last padded entry; all of them are today's one entry's."""
    *_, names = drawn(sample.ship(), "shapes-entries")
    assert [(row["look"], row["label"]) for row in names] == [("static", "dynamic")]
