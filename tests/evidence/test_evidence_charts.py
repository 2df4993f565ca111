"""The series behind the charts of a diagnosis: literal requests and spans in, literal rows out; large stays small."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from timeline_kit import MS, READ, Row, compiled, log, runs, spans

from trimtab.domain.figure import Series
from trimtab.domain.imported import STAGE_COLUMNS, Imported, ReadReport, imported_trace
from trimtab.domain.noun import NEVER
from trimtab.domain.trace import Table, empty
from trimtab.evidence.imported.diagnose import diagnose as diagnose_requests
from trimtab.evidence.timeline.diagnose import diagnose as diagnose_spans


def table(
    latency_ms: list[float], *, every_ms: float = 100, dims: dict[str, list[int]] | None = None,
    streams: list[str] | None = None, failed: tuple[int, ...] = (), name: str = "t.csv", **stages: list[float],
) -> Imported:  # fmt: skip
    """Requests, one every ``every_ms``; ``stages`` in ms, or sizes as ``exec.<dim>``."""
    n = len(latency_ms)
    start = (np.arange(n) * every_ms * MS).astype(np.int64)
    error = np.zeros(n, dtype=np.int8)
    error[list(failed)] = 3
    done = start + np.round(np.array(latency_ms) * MS).astype(np.int64)
    requests = {"id": np.arange(n), "scheduled": start, "done": done, "error": error}
    named = tuple(dict.fromkeys(streams or ["all"]))
    if streams:
        requests["stream"] = np.array([named.index(one) for one in streams], dtype=np.int32)
    columns = empty(STAGE_COLUMNS, n).columns
    for stage, values in stages.items():
        scale = 1 if stage.startswith("exec_") else MS
        columns[stage.replace("exec_", "exec.")] = np.round(np.array(values) * scale).astype(np.int64)
    read = ReadReport(file=name, sha256="", rows=n, used=n, columns={})
    sizes = {key: np.array(value, dtype=np.int64) for key, value in (dims or {}).items()}
    return Imported(trace=imported_trace(read, requests, sizes, streams=named), stages=Table(columns))


def drawn(given: Imported, baseline: Imported | None = None) -> dict[str, Series]:
    return {one.id.removeprefix("diagnose."): one for one in diagnose_requests(given, READ, baseline=baseline).charts()}


def test_ten_requests_with_their_stages() -> None:
    latency = [5.0] * 9 + [50.0]
    queue = [1.0] * 9 + [40.0]
    found = drawn(table(latency, queue=queue, compute=[4.0] * 9 + [8.0], failed=(0,)))
    assert set(found) == {"quantiles", "shown", "failed", "stages"} | ({"causes"} & set(found))
    shown = found["shown"]
    assert shown.columns["t"] == tuple(k / 10 for k in range(1, 10))
    assert shown.columns["slow"] == (False,) * 8 + (True,)
    assert shown.note == "1 of the 1 slowest requests; 8 of the 8 others that ended"
    assert (found["failed"].columns["t"], found["failed"].columns["kind"]) == ((0.0,), ("hang",))
    rows = dict(zip(found["stages"].columns["stage"], found["stages"].columns["slow"], strict=True))
    assert (rows["queue"], rows["run"], rows["remainder"]) == (40.0, 8.0, 2.0)
    assert found["stages"].columns["inside"] == tuple(
        name in ("compile", "off_core", "stall") for name in found["stages"].columns["stage"]
    )


def test_the_curve_is_made_of_latencies_that_occurred_and_a_baseline_has_its_own() -> None:
    found = drawn(table([1.0, 2, 3, 4, 100]), table([7.0] * 5, name="t.csv"))["quantiles"]
    by_run: dict[object, set[object]] = {}
    for run, latency in zip(found.columns["run"], found.columns["latency"], strict=True):
        by_run.setdefault(run, set()).add(latency)
    assert by_run == {"t.csv": {1.0, 2.0, 3.0, 4.0, 100.0}, "baseline t.csv": {7.0}}


def test_sizes_padding_and_streams() -> None:
    widths = [10, 20] * 100
    found = drawn(
        table([5.0] * 200, dims={"width": widths}, streams=["a", "b"] * 100, compute=[4.0] * 200, queue=[0.0] * 200,
              exec_width=[20] * 200)
    )  # fmt: skip
    padding = found["padding"]
    assert (padding.columns["lo"], padding.columns["runs"], padding.columns["padding"]) == ((20,), (200,), (0.25,))
    assert padding.note == "width"
    assert "sizes" not in found  # all ran at one size
    streams = found["streams"]
    assert [streams.columns[name] for name in ("stream", "requests", "p50", "p95", "failed")] == [
        ("a", "b"), (100, 100), (5.0, 5.0), (5.0, 5.0), (0, 0),
    ]  # fmt: skip


def test_first_runs_stand_out_and_eight_requests_of_a_stream_have_no_p95() -> None:
    found = drawn(table([9.0, 3, 3, 3] * 4, dims={"width": [1, 1, 1, 1, 2, 2, 2, 2] * 2}, streams=["a", "b"] * 8,
                        compute=[9.0, 3, 3, 3] * 4, queue=[0.0] * 16))  # fmt: skip
    sizes = found["sizes"]
    assert [run for run, first in zip(sizes.columns["run"], sizes.columns["first"], strict=True) if first] == [9.0, 9.0]
    assert found["streams"].columns["p50"] == (3.0, 3.0)
    assert found["streams"].columns["p95"] == (None, None)


def test_large_tables_stay_small() -> None:
    n = 20_000
    draw = np.random.default_rng(1)
    latency = draw.exponential(5.0, n).tolist()
    found = drawn(table(latency, every_ms=10, dims={"width": draw.integers(1, 900, n).tolist()}, compute=latency,
                        queue=[0.0] * n, failed=tuple(range(0, n, 10))))  # fmt: skip
    assert all(len(next(iter(one.columns.values()))) <= 1_300 for one in found.values())
    assert found["shown"].note.startswith("300 of the 901 slowest requests; ")
    assert sum(map(bool, found["shown"].columns["slow"])) == 300
    assert max(found["shown"].columns["latency"]) == pytest.approx(
        max(latency[k] for k in range(n) if k % 10), rel=1e-4
    )  # type: ignore[type-var]
    assert len(found["windows"].columns["start"]) == 48


def test_failures_alone_draw_their_curve_to_no_end() -> None:
    found = drawn(table([5.0] * 4, failed=(0, 1, 2, 3)))
    assert set(found) == {"quantiles", "failed"}
    assert set(found["quantiles"].columns["latency"]) == {float("inf")}


def timeline(given: object) -> dict[str, Series]:
    return {one.id.removeprefix("timeline."): one for one in diagnose_spans(given, READ).charts()}  # type: ignore[arg-type]


def test_pieces_of_the_window_add_up_and_gaps_are_those_between_work() -> None:
    rows: list[Row] = []
    for k in range(12):
        rows += [("launch", 100 * k, 100 * k + 10), ("kernel", 100 * k + 20, 100 * k + 60, 2 * k)]
    found = timeline(spans(rows))
    window = found["window"]
    by_piece: dict[object, float] = {}
    for start, lo, hi in zip(*(window.columns[name] for name in ("start", "lo", "hi")), strict=True):
        by_piece[start] = by_piece.get(start, 0.0) + float(hi) - float(lo)  # type: ignore[arg-type]
    assert len(by_piece) == 20
    assert all(total == pytest.approx(1.0, abs=1e-4) for total in by_piece.values())
    gaps: dict[object, set[object]] = {}
    for what, took in zip(found["gaps"].columns["what"], found["gaps"].columns["took"], strict=True):
        gaps.setdefault(what, set()).add(took)
    assert gaps == {"from launch to start": {20.0}, "the launch call": {10.0}, "the kernel": {40.0},
                    "idle between work": {60.0}}  # fmt: skip


def test_runs_with_the_first_of_each_shape() -> None:
    found = timeline(runs([500, 100, 400, 100], [8, 8, 9, 8]))["runs"]
    assert found.columns["shape"] == ("1x8", "1x8", "1x9", "1x8")
    assert found.columns["first"] == (True, False, True, False)
    assert found.columns["took"] == (0.5, 0.1, 0.4, 0.1)


def test_many_runs_stay_few_and_keep_every_first_one() -> None:
    found = timeline(runs([100] * 5000, [k // 50 for k in range(5000)]))["runs"]
    assert sum(map(bool, found.columns["first"])) == 100
    assert len(found.columns["t"]) <= 1000


def test_compiles_by_kind() -> None:
    size = "0/0: tensor 'x' size mismatch at index 0. expected 2, actual 3"
    one = [compiled(0), compiled(1, 30, size), compiled(2, 20, "x == 3"), compiled(3, 10, limit="recompile_limit (8)")]
    timed = tuple(msgspec.structs.replace(each, start=k * MS) for k, each in enumerate(one))
    found = timeline(log(*timed))["compiled"]
    assert found.columns["kind"] == ("first", "again, for a size", "again", "no program")
    assert found.columns["took"] == (40.0, 30.0, 20.0, 10.0)
    assert found.columns["rank"] == (None,) * 4
    assert "compiled" not in timeline(log(compiled(0)))  # it does not say when
    assert NEVER not in found.columns["t"]
