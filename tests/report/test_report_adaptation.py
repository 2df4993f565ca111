"""What the page says of adapting at run time, of predictions, of batching and of fusion levels."""

from __future__ import annotations

import sample_record as sample
from msgspec.structs import replace
from sample_findings import figure, series

from trimtab.domain.figure import Cell, Figure, Finding, Series
from trimtab.domain.packet import Record
from trimtab.report.html import render
from trimtab.report.page import Fold, Grid, Page, Panels, Prose, Section, Split
from trimtab.report.view import view

G = "\u00a0"
MINUS = "\u2212"


def with_(stage: str, *extra: Series, figures: tuple[Figure, ...] = (), said: tuple[Finding, ...] = ()) -> Record:
    record = sample.ship()
    old = record.findings[stage]
    new = replace(old, series=(*old.series, *extra), figures=(*old.figures, *figures), findings=(*old.findings, *said))
    return replace(record, findings={**record.findings, stage: new})


def part(page: Page, id_: str) -> Section:
    return next(section for section in page.sections if section.id == id_)


def adapted(windows: int) -> Series:
    rows: list[dict[str, Cell]] = [
        {"window": k, "static_misses": 0.2 - 0.02 * k, "mapping_accuracy": 0.4 + 0.03 * k,
         "headroom": 0.7 - 0.05 * k, "gain_without_stalls": 0.2,
         "gain": None if k == 1 else -9.0 if k == 2 else 0.05}
        for k in range(windows)
    ]  # fmt: skip
    return series("score.adaptation", rows)


def stacks(section: Section) -> list[list[str]]:
    split = section.blocks[0]
    assert isinstance(split, Split)
    return [[panel.label for panel in block.panels] for block in split.left if isinstance(block, Panels)]


def test_below_the_trend_stands_accuracy_above_gain_and_says_that_it_is_simulated() -> None:
    found = part(view(with_("score", adapted(8))), "score")
    assert stacks(found)[1] == ["Late requests", "Mapping accuracy", "Gain in p95"]
    split = found.blocks[0]
    assert isinstance(split, Split)
    first = split.left[1]
    assert isinstance(first, Panels)
    assert all("simulated" in panel.chart.alt for panel in first.panels)
    texts = [line.text for line in first.panels[-1].lines]
    assert texts[:3] == ["headroom: each window known", "the same, compiles in no time", "adapted while serving"]
    assert texts[3] == f"two windows below −100{G}%, or beyond the deadline"


def test_too_few_windows_draw_no_trend() -> None:
    assert ["Late requests", "Mapping accuracy", "Gain in p95"] not in stacks(
        part(view(with_("score", adapted(2))), "score")
    )


def test_figures_and_the_sentence_stand_beside_it() -> None:
    figures = (figure("score.headroom", 0.33, "share", 0.2, 0.45), figure("score.capture", None, "share"))
    text = "In simulation, refitting the buckets makes p95 -19.0 % better."
    said = (Finding(text=text, figures=("score.gain", "score.gain_without_stalls")),)
    found = part(view(with_("score", adapted(8), figures=figures, said=said)), "score")
    split = found.blocks[0]
    assert isinstance(split, Split)
    told = [block for block in split.left if isinstance(block, Prose)]
    assert told[0].paragraphs == (("In simulation:", f"Refitting the buckets makes p95 {MINUS}19.0 % better."),)
    tables = [block for block in split.right if isinstance(block, Grid)]
    cells = {row.cells[0].text: row.cells[1].text for row in tables[-1].rows}
    assert cells["Headroom, simulated"] == f"33{G}%"
    assert "Captured of the headroom" not in cells


def test_predictions_fold_by_group() -> None:
    rows: list[dict[str, Cell]] = [
        {"by": by, "group": group, "n": 400, "compile_bias": 0.46, "compile_p95": 21.5, "dispatch_bias": -0.031,
         "dispatch_p95": 2.25} for by, group in (("all", "all requests"), ("route", "dynamic"))
    ]  # fmt: skip
    found = part(view(with_("score", series("score.ledger", rows))), "score")
    split = found.blocks[0]
    assert isinstance(split, Split)
    fold = split.left[-1]
    assert isinstance(fold, Fold)
    assert [cell.text for cell in fold.grid.rows[0].cells] == [
        "all requests", "400", f"+46{G}%", f"21.5{G}ms", f"−3.1{G}%", f"2.25{G}ms",
    ]  # fmt: skip
    assert [row.total for row in fold.grid.rows] == [True, False]


def grids(section: Section) -> dict[str, Grid]:
    blocks = [inner for b in section.blocks for inner in ((*b.left, *b.right) if isinstance(b, Split) else (b,))]
    return {block.title: block for block in blocks if isinstance(block, Grid)}


def test_batching_shows_hold_against_service_saved() -> None:
    rows: list[dict[str, Cell]] = [{"entry": "any", "mean_size": 2.5, "paid": 0.75, "saved": 0.5, "net": -0.25}]
    table = grids(part(view(with_("attribute", series("policy.by_entry", rows))), "batching"))
    grid = table["Batching, ms a request: hold paid against service saved"]
    assert [cell.text for cell in grid.rows[0].cells] == ["any", "2.5", "0.75", "0.5", "−0.25"]
    assert "batching" not in {section.id for section in view(sample.ship()).sections}


def test_fairness_is_said_where_there_is_anybody_to_be_unfair_to() -> None:
    figures = (
        figure("fairness.streams.jain", 0.91, "index"),
        figure("fairness.cores.jain", 1.0, "index", note="one worker only"),
    )
    assert (
        "Jain's index, 1 = all alike: streams 0.91." in part(view(with_("attribute", figures=figures)), "queue").source
    )


def test_fusion_levels_stand_with_their_memory_and_their_tail() -> None:
    row: dict[str, Cell] = {
        "plan": "fusion-off", "entry": "any", "level": "off", "operators_before": 9, "operators": 9, "fused": 0,
        "shape": "1x192", "warm": 4.5, "peak": 150.0, "compile": 80.0,
    }  # fmt: skip
    only = grids(part(view(with_("compile", series("compile.fusion", [row]))), "compile"))["Fusion against memory"]
    assert [cell.text for cell in only.rows[0].cells] == [
        "off", "9 → 9", "0", f"4.5{G}ms", f"150{G}MiB", f"80{G}ms",
    ]  # fmt: skip
    joined = with_("retune", series("retune.fusion", [row | {"change": 0.12}]))
    assert grids(part(view(joined), "compile"))["Fusion against memory"].rows[0].cells[-1].text == f"+12{G}%"


def test_what_a_fusion_level_trades_is_said_before_its_table() -> None:
    row: dict[str, Cell] = {
        "plan": "fusion-off", "entry": "any", "level": "off", "operators_before": 9, "operators": 9, "fused": 0,
        "shape": "1x192", "warm": 4.5, "peak": 150.0, "compile": 80.0, "change": 0.12,
    }  # fmt: skip
    said = "any with off instead of default: 9 operators instead of 4, -25.0 % peak memory (150 MiB); p95 +12 %."
    rows = [row | {"plan": "today", "trade": None}, row | {"trade": said}]
    blocks = part(view(with_("retune", series("retune.fusion", rows))), "compile").blocks
    at = next(i for i, one in enumerate(blocks) if isinstance(one, Prose))
    assert blocks[at].paragraphs == (
        ("any with off instead of default:", said.partition(": ")[2].replace("-25.0", "−25.0")),
    )
    assert blocks[at + 1].title == "Fusion against memory"


def test_fusion_levels_of_many_entries_fold_by_whole_entries() -> None:
    rows: list[dict[str, Cell]] = [
        {
            "plan": f"p{level}", "entry": f"to-{k}", "level": str(level), "operators_before": 9, "operators": 9,
            "fused": 0, "shape": "", "warm": 4.5, "peak": 150.0, "compile": 80.0,
        }
        for k in range(4) for level in range(5)
    ]  # fmt: skip
    compiled = part(view(with_("compile", series("compile.fusion", rows))), "compile")
    assert [row.cells[0].sub for row in grids(compiled)["Fusion against memory"].rows[::5]] == [
        "p0, to-0", "p0, to-1", "p0, to-2",
    ]  # fmt: skip
    fold = next(one for one in compiled.blocks if isinstance(one, Fold) and one.summary == "Show one more entry")
    assert [row.cells[0].sub for row in fold.grid.rows] == [f"p{k}, to-3" for k in range(5)]


def test_a_fusion_level_shows_its_workspace_and_intervals_and_a_replay_outranks_the_simulation() -> None:
    row: dict[str, Cell] = {
        "plan": "im2col", "entry": "to-192", "level": "off, convolution = im2col", "operators_before": 330,
        "operators": 93, "fused": 240, "shape": "1x192", "warm": 16.0, "warm_lo": 15.5, "warm_hi": 16.5,
        "workspace": 18.0, "peak": 150.0, "compile": 80.0, "change": -0.4, "lo": -0.45, "hi": -0.35,
    }  # fmt: skip
    simulated = grids(part(view(with_("retune", series("retune.fusion", [row]))), "compile"))["Fusion against memory"]
    assert [column.label for column in simulated.columns[4:]] == ["Workspace", "Peak", "Compile", "p95 against today"]
    both = grids(part(view(with_("retune", series("retune.fusion", [row | {"scratch": 30.0}]))), "compile"))
    assert [(column.label, cell.text) for column, cell in zip(
        both["Fusion against memory"].columns[4:6], both["Fusion against memory"].rows[0].cells[4:6], strict=True
    )] == [("Workspace", f"18{G}MiB"), ("Scratch", f"30{G}MiB")]  # fmt: skip
    assert [(cell.text, cell.sub) for cell in simulated.rows[0].cells[3:]] == [
        (f"16{G}ms", "(15.5 to 16.5) at 1x192"), (f"18{G}MiB", ""), (f"150{G}MiB", ""), (f"80{G}ms", ""),
        (f"−40{G}%", f"simulated (−45 to −35{G}%)"),
    ]  # fmt: skip
    replayed: dict[str, Cell] = {
        "plan": "im2col", "sentence": "im2col", "status": "chosen", "reason": "", "measured": -0.5,
        "measured_lo": -0.6, "measured_hi": -0.4,
    }  # fmt: skip
    record = sample.ship()
    tables = (series("retune.fusion", [row]), series("retune.candidates", [replayed]))
    record = replace(record, findings=record.findings | {"retune": replace(record.findings["retune"], series=tables)})
    last = grids(part(view(record), "compile"))["Fusion against memory"].rows[0].cells[-1]
    assert (last.text, last.sub) == (f"−50{G}%", f"measured (−60 to −40{G}%)")


def test_the_page_still_renders() -> None:
    assert "adaptation-gain" in render(view(with_("score", adapted(8))))


def test_replays_under_the_controller_stand_beside_the_simulated_runs() -> None:
    rows: list[dict[str, Cell]] = [
        {"run": "static", "source": "measured", "value": 40.0, "lowest": 39.0, "highest": 42.0, "replays": 3,
         "requests": 600, "miss_rate": 0.1},
        {"run": "clairvoyant", "source": "simulated", "value": 20.0, "lowest": 20.0, "highest": 20.0, "replays": 1,
         "requests": 900, "miss_rate": 0.0},
    ]  # fmt: skip
    table = series("score.measured", rows, units={"value": "ms"})
    split = part(view(with_("score", table)), "score").blocks[0]
    assert isinstance(split, Split)
    grids = [block for block in split.right if isinstance(block, Grid)]
    found = next(grid for grid in grids if grid.columns[0].label == "Adapting while serving")
    assert [[cell.text for cell in row.cells] for row in found.rows] == [
        ["Static, measured", f"40{G}ms", f"39{G}ms to 42{G}ms", f"10{G}%"],
        ["Clairvoyant, simulated", f"20{G}ms", "", f"0{G}%"],
    ]
