"""What the page says: literal sentences, absent sections, and no number that is not in the record."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import sample_record as sample
from msgspec.structs import replace

from trimtab.domain.packet import Record
from trimtab.report.page import Fold, Grid, Page, Panels, Section
from trimtab.report.palette import CAUSES, DARK, LIGHT
from trimtab.report.sections.entries import _readable
from trimtab.report.view import view

G = "\u00a0"


def part(page: Page, id_: str) -> Section:
    return next(section for section in page.sections if section.id == id_)


def answers(page: Page) -> list[tuple[str, str, str]]:
    assert page.opening is not None
    return [(answer.value, answer.arrow, answer.foot) for answer in page.opening.answers]


def test_ship_says_what_to_do_how_much_it_gains_and_what_is_missing() -> None:
    opening = view(sample.ship()).opening
    assert opening is not None
    assert (opening.status, opening.word) == ("pending", "Ship")
    assert opening.sentence == "Add padded entries 160, 288, 512 and 960, and warm each at start."
    assert opening.text == (
        f"On held-out traffic p95 falls from 72.4{G}ms to 41.2{G}ms, below its bound of 60 ms. "
        f"Cold shapes own 50{G}% of the p95 tail: first runs of shapes that a worker had not run before. "
        "The change fails for p95 on held-out (cold start). "
        "Still open: p95 on stream client-3."
    )
    assert opening.pending == ("Ship, once the compiler lead, runtime lead and observability engineer sign.")


def test_the_four_answers() -> None:
    assert answers(view(sample.ship())) == [
        ("72.4", f"41.2{G}ms", f"−43{G}% (−48 to −38{G}%); noise floor ±6{G}%"),
        (f"Cold shapes, 50{G}%", "", f"Removed alone: p95 33{G}ms less (25 to 42)"),
        ("Four new entries", "", "Compiler lead, 3.9 s compile, +118 MiB"),
        ("All guards hold", "", "3,312 held-out requests decide"),
    ]


def test_hold_says_why_first_and_asks_for_no_signature() -> None:
    opening = view(sample.hold()).opening
    assert opening is not None
    assert (opening.status, opening.word, opening.sentence) == ("open", "Hold:", "no benefit above the floor.")
    assert opening.pending == ""
    assert opening.answers[-1].value == "Inside the noise"


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        ("no-benefit", "no change helps beyond the noise floor."),
        ("inconclusive", "the evidence does not decide yet."),
        ("guard-failed", "a guard got worse by more than its margin."),
    ],
)
def test_a_hold_without_a_sentence_says_its_reason(reason: str, sentence: str) -> None:
    record = sample.hold(reason)
    assert record.verdict is not None
    opening = view(replace(record, verdict=replace(record.verdict, sentence=""))).opening
    assert opening is not None
    assert opening.sentence == sentence


def test_rollback_names_the_plan_to_return_to() -> None:
    opening = view(sample.rollback()).opening
    assert opening is not None
    assert (opening.status, opening.word, opening.sentence) == ("fail", "Roll back", "to plan today.")
    assert opening.answers[-1].value == "A guard fails"


def test_a_packet_that_has_just_begun_is_a_title() -> None:
    page = view(sample.minimal())
    assert page == Page(
        title="ocr-receipts: trimtab report",
        opening=None,
        sections=(),
        rail=("ocr-receipts", "model invented recogniser r14"),
    )


def test_without_a_verdict_the_page_says_that_it_is_not_decided() -> None:
    page = view(sample.failing())
    assert page.opening is not None
    assert page.opening.word == "Not decided"
    assert page.opening.text == f"On tune traffic p95 is 72{G}ms, above its bound of 60 ms."
    assert [section.id for section in page.sections] == ["latency", "queue", "runs", "figures"]


def test_a_percentile_among_the_failed_is_not_a_number() -> None:
    latency = part(view(sample.failing()), "latency")
    said = msgspec.json.encode(latency).decode()
    assert "> deadline" in said
    assert "41 in tune-today-1 (crash). They count as infinitely slow." in said


def test_headings_are_findings() -> None:
    assert {section.id: section.heading for section in view(sample.ship()).sections} == {
        "score": f"The mapping reaches 61{G}% of the best known service time; warm batches keep 93{G}% of the promise.",
        "tail": f"Cold shapes: 50{G}% of the p95 tail, 9.1{G}ms own and 31.6{G}ms inherited through the queue.",
        "requests": f"The slowest request took 108{G}ms: for 78{G}ms of it three batches ran in front.",
        "latency": f"The change moves p50 by −15{G}%, p95 by −43{G}% and p99 by −44{G}%.",
        "shapes": f"Warm batches keep 93{G}% of what the profile promised; batches ran 2.1{G}% longer in sum.",
        "queue": f"Batches kept core 1 busy for 68{G}% of the time.",
        "compile": "5 entries of 3 plans compiled in 6.1 s and 240 MiB; 1 failed.",
        "quality": "The answers of int8 leave the floor.",
        "memory": f"Every plan stays below the limit of 2{G}GiB.",
        "simulation": f"The simulation puts p95 4.7{G}% below the replay, inside the noise of the replays.",
        "candidates": (
            "Add padded entries 160, 288, 512 and 960, and warm each at start: p95 −43 % on the tune slice."
        ),
        "validation": "All three cells that must pass do; one other fails and one stays open.",
        "sizing": "Two cores are enough for this SLA at this traffic.",
        "envelope": "The machine differs from what the plan assumed in virtual; governor could not be read.",
        "runs": "Nine measured runs are behind this report.",
        "owners": "Nobody has signed this record.",
        "reproduce": "Check it, or run it again from its seeds.",
        "figures": "Every stored figure, with its interval, samples, scope and artifact.",
    }


def test_the_tail_waterfall_row_by_row() -> None:
    grid = part(view(sample.ship()), "tail").blocks[0]
    assert isinstance(grid, Grid)
    assert [[cell.text for cell in row.cells] for row in grid.rows][:4] == [
        ["Useful work", "", "6.2", "0", f"7.6{G}%", "", "", ""],
        ["Capacity", "", "0", "21", f"26{G}%", "", "", ""],
        ["Cold shapes", "", "9.1", "31.6", f"50{G}%", "", "33", ""],
        ["Interference", "", "1.9", "4.2", f"7.5{G}%", "", "5", ""],
    ]
    cold = grid.rows[2].cells[1].strip
    assert cold is not None
    assert [mark.look for mark in cold.marks if mark.cause == "cold"] == [
        "cause-cold",
        "cause-cold gap",
        "cause-cold gap inherited",
    ]


def test_what_touches_the_floor_is_hollow_and_what_failed_is_marked() -> None:
    page = view(sample.ship())
    heat = part(page, "validation").blocks[0]
    assert isinstance(heat, Grid)
    looks = {row.cells[0].text: (row.cells[1].text, row.cells[1].look, row.cells[1].glyph) for row in heat.rows}
    assert looks["Held-out, p95"] == ("−43", "heat pass primary strongly", "")
    assert looks["Held-out, p50"] == ("−15", "heat pass must", "")
    assert looks["Stream client-3, p95"] == ("−5", "heat open", "open")
    cold_start = heat.rows[0].cells[2]
    assert (cold_start.text, cold_start.look, cold_start.glyph) == ("+12", "heat fail", "fail")
    candidates = part(page, "candidates").blocks[0]
    assert isinstance(candidates, Grid)
    batch = next(row for row in candidates.rows if row.cells[0].sub == "batch-4").cells[1].strip
    assert batch is not None
    assert [mark.look for mark in batch.marks if mark.form == "dot"] == ["simulated open"]


def test_with_one_condition_each_cell_has_a_row_with_its_interval_and_reason() -> None:
    record = sample.ship()
    assert record.verdict is not None
    cells = tuple(cell for cell in record.verdict.cells if cell.condition == "as recorded")
    grid = part(view(replace(record, verdict=replace(record.verdict, cells=cells))), "validation").blocks[0]
    assert isinstance(grid, Grid)
    assert not grid.heat
    assert [cell.text for cell in grid.rows[0].cells] == [
        "Held-out, p95", "−43", "", f"72.4{G}ms", f"41.2{G}ms", f"±6{G}%", "", ""
    ]  # fmt: skip
    undecided = grid.rows[4].cells[2].strip
    assert undecided is not None
    assert [mark.look for mark in undecided.marks if mark.form == "dot"] == ["open"]


def test_quality_stands_beside_the_precision_that_was_executed() -> None:
    section = part(view(sample.ship()), "quality")
    assert section.heading == "The answers of int8 leave the floor."
    grid = section.blocks[0]
    assert isinstance(grid, Grid)
    assert [[cell.text for cell in row.cells] for row in grid.rows] == [
        ["today", f"99{G}%", f"97{G}%", "holds", f"94{G}%", f"98{G}%", f"99{G}%", "–", f"5.2{G}ms",
         "bf16 87%, f32 13%", "24"],
        ["int8", f"83{G}%", f"97{G}%", "fails", f"41{G}%", f"82{G}%", f"83{G}%", f"80{G}%", f"5.2{G}ms",
         "int8 100%", "24"],
    ]  # fmt: skip
    int8 = [cell.sub for cell in grid.rows[1].cells]
    assert (int8[1], int8[5], int8[8], int8[10]) == ("argmax-agreement", "width 16-140", f"today 6.4{G}ms", "rendered")


def test_every_band_entry_and_padding_has_its_own_row() -> None:
    parts = part(view(sample.ship()), "quality").blocks[1]
    assert isinstance(parts, Fold)
    assert [(row.cells[1].text, row.cells[1].sub, row.cells[2].text, row.cells[5].text) for row in parts.grid.rows] == [
        ("all shapes", "", f"99{G}%", "holds"),
        ("width 16-140", "shape band", f"98{G}%", "holds"),
        ("any-width", "entry", "–", "open"),
        ("to-160", "padding alone, entry", f"95{G}%", "fails"),
    ]


def test_a_plan_whose_answers_are_not_judged_stays_open() -> None:
    record = sample.ship()
    found = record.findings["retune"]
    series = tuple(
        replace(one, columns=one.columns | {"status": ("inconclusive",)}) if one.id == "retune.quality" else one
        for one in found.series
    )
    page = view(replace(record, findings=record.findings | {"retune": replace(found, series=series)}))
    assert part(page, "quality").heading == "The answers of int8 stay open."


def test_a_candidate_shows_speed_memory_and_answers_in_one_row() -> None:
    grid = part(view(sample.ship()), "candidates").blocks[0]
    assert isinstance(grid, Grid)
    rows = {row.cells[0].sub: row.cells for row in grid.rows}
    chosen, simulated = rows["refit-4"], rows["batch-4"]
    assert (chosen[2].text, chosen[4].text, chosen[4].sub) == (f"−43{G}%", "+118", "530")
    assert (chosen[5].text, chosen[5].sub, chosen[5].glyph) == (f"99{G}%", "rendered, bf16 87%", "pass")
    assert (simulated[5].text, simulated[5].sub) == ("", "")


def test_memory_stands_against_its_limit_and_grows_with_shapes() -> None:
    section = part(view(sample.ship()), "memory")
    grid, panels = section.blocks
    assert isinstance(grid, Grid)
    assert isinstance(panels, Panels)
    assert [[cell.text for cell in row.cells] for row in grid.rows] == [
        ["today", "1", "1", f"48{G}MiB", f"36{G}MiB", f"412{G}MiB", f"20{G}%", f"+84{G}MiB", f"+42{G}MiB"],
        ["refit-4", "1", "1", f"48{G}MiB", f"41{G}MiB", f"530{G}MiB", f"26{G}%", "–", "–"],
    ]
    assert grid.rows[0].cells[7].sub == "over 424"
    assert panels.panels[0].lines[0].text == f"today, any-width: 300{G}MiB after 24 shapes, 334{G}MiB after 424"


def test_a_plan_above_the_limit_is_named() -> None:
    record = sample.ship()
    found = record.findings["compile"]
    series = tuple(
        replace(one, columns=one.columns | {"share": (0.2, 1.1)}) if one.id == "compile.memory" else one
        for one in found.series
    )
    page = view(replace(record, findings=record.findings | {"compile": replace(found, series=series)}))
    assert part(page, "memory").heading == f"Above the limit of 2{G}GiB: refit-4."


def test_assumptions_are_named_in_words() -> None:
    grid = part(view(sample.ship()), "envelope").blocks[0].left[0]
    assert [row.cells[0].text for row in grid.rows] == ["Cores", "Memory, GiB", "Governor", "Virtual"]


@pytest.mark.parametrize(
    ("ends", "labels"),
    [
        ((160, 960), ["160", "960"]),
        ((132, 201, 266, 337, 428, 557, 752, 1077), ["132", "", "", "337", "", "557", "752", "1,077"]),
        ((20, 960), ["", "960"]),  # no room left of it
    ],
)
def test_labels_of_entries_never_run_into_one_another(ends: tuple[int, ...], labels: list[str]) -> None:
    spans = [{"x": 0.0, "end": float(end), "label": f"{end:,}", "open": False} for end in ends]
    assert [span["label"] for span in _readable(spans, 1100.0, 170.0)] == labels


def test_held_out_and_tune_figures_never_share_a_table() -> None:
    """The matrix speaks of held-out traffic, the replay stage of the tune slice: p99.9 has no cell, so no row."""
    said = msgspec.json.encode(part(view(sample.ship()), "latency")).decode()
    assert "Both plans on the held-out slice" in said
    assert "p99.9" not in re.sub(r'"labelExpr":"[^"]*"', "", said)


def test_the_view_is_pure() -> None:
    record = sample.ship()
    assert view(record) == view(record)


# --- no number that is not in the record ---------------------------------------------------------------------------

NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
PRINTED = re.compile(r"(\d[\d,]*(?:\.\d+)?)(?:\u00a0(%|ms|s|µs|MiB|GiB)(?!\w))?")
SCALES = {
    "%": (100.0,),
    "ms": (1.0, 1e-3, 1e-6),
    "s": (1.0, 1e-3, 1e-9),
    "µs": (1e3, 1e-3),
    "MiB": (1.0, 2.0**-20),
    "GiB": (2.0**-10, 2.0**-30),
    "": (1.0, 100.0),
}
"""Unit -> how a stored number becomes the printed one. In tables the unit may stand in the head of the column."""
CURVE = 60
"""Series longer than this are drawn, never printed."""


def strings(value: Any) -> Iterator[str]:
    """All text of a page, except chart specifications and the ticks of shared scales."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            if key not in ("spec", "ticks", "look", "swatch", "id", "alt", "height", "nav"):
                yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


def known(value: Any) -> Iterator[float]:
    """Every number of a record, those inside its texts included."""
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int | float):
        yield abs(float(value))
    elif isinstance(value, str):
        yield from (float(found.replace(",", "")) for found in NUMBER.findall(value))
    elif not isinstance(value, list | tuple) or len(value) <= CURVE:
        for item in value.values() if isinstance(value, dict) else value:
            yield from known(item)


def explained(token: str, unit: str, numbers: list[float]) -> bool:
    """A printed number is a stored one, scaled to its unit and rounded to its printed digits."""
    said, decimals = float(token.replace(",", "")), len(token.partition(".")[2])
    return any(
        math.isfinite(number) and abs(number * scale - said) <= 0.5000001 * 10.0**-decimals
        for number in numbers
        for scale in SCALES[unit]
    )


@pytest.mark.parametrize("make", [sample.ship, sample.hold, sample.rollback, sample.failing])
def test_every_number_on_the_page_is_in_the_record(make: Any) -> None:
    record: Record = make()
    numbers = list(set(known(msgspec.to_builtins(record))))
    numbers += [1 - q for q in (0.5, 0.95, 0.99)]
    printed = {found for text in strings(msgspec.to_builtins(view(record))) for found in PRINTED.findall(text)}
    counts = {(token, unit) for token, unit in printed if not unit and token.isdecimal() and int(token) < 30}
    assert sorted(found for found in printed - counts if not explained(*found, numbers)) == []


def test_the_law_would_notice_an_invented_number() -> None:
    numbers = list(set(known(msgspec.to_builtins(sample.ship()))))
    assert explained("72.4", "ms", numbers)
    assert not explained("73.37", "ms", numbers)
    assert not explained("43.71", "%", numbers)


# --- the palette ---------------------------------------------------------------------------------------------------


def test_both_themes_have_every_colour_and_every_cause() -> None:
    assert LIGHT.keys() == DARK.keys()
    assert CAUSES.keys() <= LIGHT.keys()
