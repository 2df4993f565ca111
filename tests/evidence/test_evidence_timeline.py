"""What a timeline proves: idle devices, first use, recompiles, limits, precision; and what it must not claim."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from timeline_kit import READ, Row, compiled, log, runs, spans

from trimtab.domain.noun import NEVER
from trimtab.domain.spans import Spans
from trimtab.evidence.timeline import calls, host
from trimtab.evidence.timeline.cover import cover, layers, less
from trimtab.evidence.timeline.device import device
from trimtab.evidence.timeline.diagnose import diagnose

SIZE = "0/0: tensor 'x' size mismatch at index 0. expected 2, actual 3"


def classes(found: Spans, **more: object) -> list[str]:
    return [one.id for one in diagnose(found, READ, **more).diagnosis.classes]  # type: ignore[arg-type]


def figures(found: Spans) -> dict[str, float | None]:
    return {one.id: one.value for one in diagnose(found, READ).found.figures}


def fed(count: int, kernel: int, every: int = 50) -> Spans:
    """An operator, its launch and its kernel again and again; a kernel waits for the one before. Times in us."""
    rows: list[Row] = []
    free = 0
    for k in range(count):
        at = k * every
        begin = max(at + 31, free)
        free = begin + kernel
        rows += [("op", at, at + 40), ("launch", at + 20, at + 28), ("kernel", begin, free, 3 * k + 1)]
    order = sorted(range(len(rows)), key=lambda k: rows[k][1])
    place = {old: new for new, old in enumerate(order)}
    moved = [rows[k] if len(rows[k]) < 4 else (*rows[k][:3], place[rows[k][3]]) for k in order]  # type: ignore[misc]
    return spans(moved)  # type: ignore[arg-type]


def test_a_device_that_waits_for_launches() -> None:
    found = diagnose(fed(300, kernel=4), READ)
    [one] = found.diagnosis.classes
    assert one.id == "launch-overhead"
    assert one.share == pytest.approx(36 / 46, abs=0.01)
    assert one.interval is not None
    assert 0 < one.interval[0] <= one.share <= one.interval[1]
    assert one.evidence[1] == "300 launches at 8 us; half of the kernels start within 11 us of their launch"
    known = {figure.id: figure.value for figure in found.found.figures}
    assert known["timeline.launches.start_p50"] == 11
    assert (known["timeline.device.busy"], known["timeline.device.launching"]) == pytest.approx((0.08, 0.22), abs=0.01)


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (fed(300, kernel=60), "a busy device"),
        (fed(40, kernel=4), "too few launches"),
        (fed(300, kernel=4, every=1000), "time that is recorded nowhere"),
    ],
)
def test_no_launch_overhead_without_its_evidence(found: Spans, why: str) -> None:
    assert classes(found) == ["insufficient-evidence"], why


def test_long_calls_are_no_launch_overhead() -> None:
    rows: list[Row] = [
        ("driver", 0, 900_000, NEVER, "makeContext"),
        ("launch", 900_000, 900_008),
        ("kernel", 900_010, 900_020, 1),
    ]
    found = diagnose(spans(rows), READ)
    assert found.diagnosis.classes[0].id == "insufficient-evidence"
    assert found.diagnosis.next_measurement.startswith("a recording after warm-up")
    assert found.diagnosis.classes[0].evidence[0] == "100.0 % of the window is long driver calls: makeContext 900 ms"


def test_the_layers_of_a_window() -> None:
    rows: list[Row] = [
        ("op", 0, 100), ("launch", 10, 20), ("kernel", 30, 60, 1), ("driver", 70, 90), ("op", 110, 130),
        ("kernel", 190, 200, NEVER),
    ]  # fmt: skip
    found = device(spans(rows))
    assert found is not None
    assert found.window == 200_000
    assert found.parts == {
        "busy": 40_000, "long calls": 0, "launching": 20_000, "pending": 0, "operators": 50_000, "driver": 20_000,
        "": 70_000,
    }  # fmt: skip
    assert (found.kernels, found.matched, found.early) == (2, 1, 0)


def test_a_launched_kernel_that_waits_for_something_else_is_no_launch_overhead() -> None:
    rows: list[Row] = [("launch", 0, 8), ("kernel", 100, 110, 0)]
    found = device(spans(rows))
    assert found is not None
    assert (found.parts["launching"], found.parts["pending"]) == (33_000, 67_000)


def test_streams_and_their_fairness() -> None:
    rows: list[Row] = [("kernel", 0, 30), ("kernel", 5, 15), ("copy", 40, 50)]
    found = device(spans(rows, lanes=[0, 1, 0]))
    assert found is not None
    assert [(one.name, one.spans, one.busy) for one in found.streams] == [("lane 0", 2, 40_000), ("lane 1", 1, 10_000)]
    assert found.fairness == pytest.approx(50**2 / (2 * (40**2 + 10**2)))


def test_clocks_that_differ_are_told() -> None:
    rows: list[Row] = [("kernel", 0, 10, 1), ("launch", 3, 5)]
    assert (
        "1 kernels start before their launch does: the clocks of host and device differ"
        in diagnose(spans(rows), READ).notes
    )


INTERVALS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 20)), max_size=12)


def arrays(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    starts = np.array([start for start, _ in pairs], dtype=np.int64)
    return starts, starts + np.array([length for _, length in pairs], dtype=np.int64)


def moments(pairs: list[tuple[int, int]]) -> set[int]:
    return {t for start, length in pairs for t in range(start, start + length)}


@settings(deadline=None)
@given(INTERVALS, st.integers(0, 70))
def test_a_cover_counts_each_moment_once(pairs: list[tuple[int, int]], at: int) -> None:
    assert cover(arrays(pairs)).until(np.array([at])).tolist() == [sum(t < at for t in moments(pairs))]


@settings(deadline=None)
@given(INTERVALS, INTERVALS)
def test_less_is_the_difference(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    starts, ends = less(arrays(a), arrays(b))
    found = {t for start, end in zip(starts.tolist(), ends.tolist(), strict=True) for t in range(start, end)}
    assert found == moments(a) - moments(b)
    assert all(starts < ends)


@settings(deadline=None)
@given(st.lists(INTERVALS, min_size=1, max_size=4))
def test_layers_add_up_to_the_window(given_: list[list[tuple[int, int]]]) -> None:
    edges = np.array([0, 7, 8, 30, 60], dtype=np.int64)
    found = layers({str(k): arrays(pairs) for k, pairs in enumerate(given_)}, edges)
    assert sum(found.values()).tolist() == np.diff(edges).tolist()
    assert all(pieces.min() >= 0 for pieces in found.values())


def test_recompiles_for_a_size() -> None:
    found = diagnose(log(compiled(0, 10_000), compiled(1, 40, SIZE), compiled(2, 46, SIZE)), READ)
    [one] = found.diagnosis.classes
    assert (one.id, one.share, one.owner) == ("cold-shape", None, "compiler")
    assert one.evidence == (
        "2 of 3 compiles are recompiles for a size",
        "each stalled the call that met it: 40 ms to 46 ms, 86 ms together",
    )
    assert found.diagnosis.next_measurement.startswith("requests with their time of arrival")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (log(compiled(0, 10_000)), ["insufficient-evidence"]),
        (log(compiled(0), compiled(1, 40, "0/0: mode == 3")), ["insufficient-evidence"]),
        (log(compiled(1, None, SIZE)), ["insufficient-evidence"]),
        (log(compiled(8, None, SIZE, limit="recompile_limit (8)")), ["mapping-fallback"]),
        (log(compiled(0, 5, failure="BackendCompilerFailed: no")), ["mapping-fallback"]),
        (
            log(compiled(1, 40, SIZE), compiled(8, 0, SIZE, limit="cache_size_limit (8)")),
            ["mapping-fallback", "cold-shape"],
        ),
    ],
)
def test_what_a_compiler_log_proves(found: Spans, expected: list[str]) -> None:
    assert classes(found) == expected


def test_a_log_without_times_asks_for_them() -> None:
    assert (
        "how long each compile took (TORCH_TRACE=<folder>)"
        in diagnose(log(compiled(1, None, SIZE)), READ).diagnosis.missing
    )


def test_equal_reasons_are_counted_together() -> None:
    found = diagnose(
        log(compiled(1, 4, SIZE), compiled(2, 4, SIZE.replace("0/0", "0/1").replace("3", "9"))), READ
    ).found
    table = found.table("timeline.reasons")
    assert table is not None
    assert table.columns == {
        "reason": ("tensor 'x' size mismatch at index 0. expected another",), "recompiles": (2,),
    }  # fmt: skip


def test_self_time_leaves_out_what_lies_inside() -> None:
    rows: list[Row] = [
        ("op", 0, 100, NEVER, "a"),
        ("op", 10, 40, NEVER, "b"),
        ("op", 15, 20, NEVER, "c"),
        ("op", 50, 60, NEVER, "c"),
    ]
    kind, parts = host.busiest(spans(rows))
    assert kind == "op"
    assert [(one.name, one.calls, one.took) for one in parts] == [("a", 1, 60_000), ("b", 1, 25_000), ("c", 2, 15_000)]


def test_precision_by_self_time_and_by_kernel_time() -> None:
    ops: list[Row] = [("op", 0, 100), ("op", 10, 40)]
    assert host.precision(spans(ops, dtypes=["float32", "bfloat16"])) == pytest.approx(
        {"float32": 0.7, "bfloat16": 0.3}
    )
    more: list[Row] = [*ops[:2], ("launch", 20, 25), ("launch", 60, 65), ("kernel", 70, 80, 2), ("kernel", 80, 110, 3)]
    found = host.precision(spans(more, dtypes=["float32", "bfloat16", "", "", "", ""]))
    assert found == pytest.approx({"float32": 0.75, "bfloat16": 0.25})


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ("float32", ["precision-fallback"]),
        ("fp32", ["precision-fallback"]),
        ("bf16", ["insufficient-evidence"]),
        ("bfloat16", ["insufficient-evidence"]),
        ("tf32", ["insufficient-evidence"]),
        ("", ["insufficient-evidence"]),
    ],
)
def test_declared_against_executed(declared: str, expected: list[str]) -> None:
    found = spans([("op", 0, 100), ("op", 100, 102)], dtypes=["bfloat16", "float32"])
    assert classes(found, texts={"declared": declared} if declared else {}) == expected


def test_shapes_of_runs() -> None:
    found = calls.shapes(runs([900, 100, 110, 120, 50], [8, 8, 8, 8, 9]))
    assert [(one.text, one.runs, one.first, one.later, one.excess) for one in found] == [
        ("1x8", 4, 900_000, 110_000, 790_000), ("1x9", 1, 50_000, None, 0),
    ]  # fmt: skip


def test_few_runs_are_no_tail() -> None:
    found = diagnose(runs([900, 100, 110] * 5, [8, 8, 9] * 5), READ).diagnosis
    assert found.classes[0].id == "insufficient-evidence"
    assert found.next_measurement == "at least 90 runs of the network in one recording; 15 are there"


def test_many_runs_are_judged_as_a_table_of_requests() -> None:
    widths = [k % 40 for k in range(400)]
    took = [5000 if k < 40 else 1000 for k in range(400)]
    found = diagnose(runs(took, widths), READ, sla=None)
    assert [one.id for one in found.diagnosis.classes] == ["cold-shape"]
    assert any(note.startswith("runs: ") for note in found.notes)


def test_compiles_inside_runs_are_a_stage_of_these() -> None:
    rows: list[Row] = [("run", 0, 100), ("compile", 10, 40), ("compile", 20, 50), ("run", 200, 210)]
    requests = calls.as_requests(spans(rows), READ)
    assert requests is not None
    assert requests.stages["compile"].tolist() == [40_000, 0]
    assert calls.compiling(spans(rows)) == "1 of 2 runs compiled something, for 40 us of the 110 us that all runs took"


def test_an_empty_timeline_says_so() -> None:
    assert classes(log()) == ["insufficient-evidence"]
    assert figures(log()) == {}
