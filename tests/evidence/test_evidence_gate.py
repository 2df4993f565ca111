"""The quality gate: one plan's answers in, its parts, the worst of them and their status out."""

from __future__ import annotations

import pytest

from trimtab.domain.figure import Series
from trimtab.domain.study import QualitySpec
from trimtab.evidence.gate import decisive, parts, row, status, value, verdict, worst, worst_row

SPEC = QualitySpec(metric="argmax-agreement", floor=0.9)
COLUMNS = ("band", "entry", "route", "value", "unpadded", "message")
WELL = [
    ("small", "to-8", "padded", 0.99, 1.0, ""),
    ("small", "to-8", "exact", 1.0, None, ""),
    ("large", "any", "dynamic", 0.98, None, ""),
    ("large", "to-64", "padded", 0.97, 0.99, ""),
]


def series(rows: list[tuple], weights: tuple[float, ...] = (), batched: tuple[float, ...] = ()) -> Series:
    columns = {name: tuple(r[i] for r in rows) for i, name in enumerate(COLUMNS)}
    known = {"requests": weights or (1.0,) * len(rows), "batched": batched or (None,) * len(rows)}
    return Series(id="quality.p", columns=columns | known)


def test_parts_are_all_padded_bands_entries_and_paddings() -> None:
    found = [(part.kind, part.name, part.rows) for part in parts(series(WELL))]
    assert found == [
        ("all", "all shapes", (0, 1, 2, 3)),
        ("padded", "padded shapes", (0, 3)),
        ("band", "small", (0, 1)),
        ("band", "large", (2, 3)),
        ("entry", "to-8", (0, 1)),
        ("entry", "any", (2,)),
        ("entry", "to-64", (3,)),
        ("padding", "to-8", (0,)),
        ("padding", "to-64", (3,)),
    ]
    assert verdict(parts(series(WELL)), SPEC) == "pass"


def test_a_bad_bucket_fails_although_the_mean_over_all_passes() -> None:
    rows = [("small", "to-8", "exact", 1.0, None, "")] * 20 + [("small", "to-64", "exact", 0.5, None, "")]
    found = parts(series(rows))
    assert status(found[0], SPEC) == "pass"
    lowest = worst(found, "entry", SPEC)
    assert lowest is not None
    assert (lowest.name, status(lowest, SPEC)) == ("to-64", "fail")
    assert verdict(found, SPEC) == "fail"


def test_padding_that_moves_answers_fails_although_the_reference_agrees() -> None:
    rows = [("small", "to-8", "padded", 1.0, 0.4, ""), ("small", "to-8", "padded", 1.0, 1.0, "")]
    found = {part.kind: status(part, SPEC) for part in decisive(parts(series(rows)), SPEC)}
    assert found == {"all": "pass", "padded": "pass", "band": "pass", "entry": "pass", "padding": "fail"}


def test_a_runtime_that_cannot_run_unpadded_has_no_padding_part() -> None:
    rows = [("small", "to-8", "padded", 1.0, None, ""), ("small", "to-8", "padded", 1.0, None, "")]
    assert "padding" not in {part.kind for part in parts(series(rows))}


def test_a_plan_that_batches_must_answer_in_batches_too() -> None:
    found = parts(series(WELL, batched=(1.0, 1.0, 0.5, 1.0)))
    batched = next(part for part in found if part.kind == "batched")
    assert (batched.name, value(batched, SPEC), status(batched, SPEC)) == ("in batches", 0.875, "fail")
    assert verdict(found, SPEC) == "fail"


def test_a_request_without_a_reference_answer_leaves_its_parts_open() -> None:
    rows = [("small", "to-8", "exact", None, None, "no reference"), ("large", "any", "exact", 1.0, None, "")]
    found = {(part.kind, part.name): status(part, SPEC) for part in parts(series(rows))}
    assert found["all", "all shapes"] == "inconclusive"
    assert found["band", "small"] == "inconclusive"
    assert found["band", "large"] == "pass"
    assert verdict(parts(series(rows)), SPEC) == "inconclusive"


@pytest.mark.parametrize(
    ("values", "name"),
    [((0.95, None, 0.5), "c"), ((0.95, None, 0.99), "b"), ((0.95, 0.97, 0.99), "a")],
    ids=["failing first", "then open", "then the lowest"],
)
def test_the_worst_part(values: tuple[float | None, ...], name: str) -> None:
    rows = [("x", entry, "exact", value, None, "") for entry, value in zip("abc", values, strict=True)]
    lowest = worst(parts(series(rows)), "entry", SPEC)
    assert lowest is not None
    assert lowest.name == name


def test_a_request_counts_for_the_traffic_that_it_stands_for() -> None:
    rows = [("x", "a", "exact", 0.5, None, ""), ("x", "a", "exact", 1.0, None, "")]
    rare, common = (parts(series(rows, weights))[0] for weights in ((1.0, 99.0), (99.0, 1.0)))
    assert [value(part, SPEC) for part in (rare, common)] == pytest.approx([0.995, 0.505])
    assert [status(part, SPEC) for part in (rare, common)] == ["pass", "fail"]


def test_of_errors_the_largest_is_the_worst() -> None:
    errors = QualitySpec(metric="max-error", floor=0.1)
    rows = [("x", "a", "exact", 0.05, None, ""), ("x", "b", "exact", 0.3, None, ""), ("x", "b", "exact", 0.2, None, "")]
    found = parts(series(rows))
    lowest = worst(found, "entry", errors)
    assert lowest is not None
    assert (lowest.name, worst_row(found[0], errors), status(found[0], errors)) == ("b", 1, "fail")


def test_no_requests_decide_nothing() -> None:
    assert parts(Series(id="quality.p", columns={})) == ()
    assert verdict((), SPEC) == "inconclusive"


def test_a_row_carries_quality_and_the_speed_of_the_same_requests() -> None:
    band = parts(series(WELL))[3]
    found = row(band, SPEC, times=[1.0, 2.0, 3.0, 5.0], before=[9.0, 9.0, 6.0, 10.0])
    assert found == {
        "kind": "band", "part": "large", "metric": "argmax-agreement", "value": pytest.approx(0.975), "worst": 0.97,
        "floor": 0.9, "status": "pass", "samples": 2, "time": 4.0, "baseline_time": 8.0,
    }  # fmt: skip
    unpromised = row(band, SPEC, times=[None] * 4, before=[9.0] * 4)
    assert (unpromised["time"], unpromised["baseline_time"]) == (None, None)
