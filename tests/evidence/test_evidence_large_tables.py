"""What spares a table of many rows its time and memory changes no figure: columns that hold nothing, codes, pieces."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.domain.imported import STAGE_COLUMNS, unknown
from trimtab.domain.noun import NEVER
from trimtab.evidence.attribute import replays
from trimtab.evidence.imported import _columns, _crowd
from trimtab.evidence.imported.diagnose import diagnose
from trimtab.evidence.imported.recorded import calls
from trimtab.evidence.stats import quantiles
from trimtab.readers.table import read_requests

NAN = math.nan


def floats(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)


def test_a_column_without_a_value_takes_no_memory_and_says_so() -> None:
    column = unknown(STAGE_COLUMNS, 1_000_000)["queue"]
    assert (column.shape, column.strides, column[999_999]) == ((1_000_000,), (0,), NEVER)
    assert not column.flags.writeable
    wait = _columns.ns(column)
    assert (_columns.single(wait), _columns.recorded(wait)) == (True, False)
    assert _columns.empty(_columns.filled(wait))


def test_nothing_is_added_to_nothing() -> None:
    nothing, some = _columns.same(0.0, 3), floats(1, 2, 3)
    assert _columns.total(nothing, some, nothing) is some
    assert _columns.total(some, some).tolist() == [2, 4, 6]
    assert _columns.empty(_columns.total(nothing, nothing))
    assert np.isnan(_columns.total(_columns.same(NAN, 3), some)).all()


def test_what_is_not_recorded_is_nan_and_then_0() -> None:
    column = _columns.ns(np.array([5, NEVER, 7]))
    assert (column[0], math.isnan(column[1]), column[2]) == (5, True, 7)
    assert _columns.filled(column).tolist() == [5, 0, 7]
    assert _columns.filled(column, 1.0).tolist() == [5, 1, 7]


def test_all_rows_are_taken_without_a_copy() -> None:
    column = floats(1, 2, 3)
    assert _columns.at(column, np.arange(3)) is column
    assert _columns.at(column, np.array([0, 2])).tolist() == [1, 3]
    assert _columns.at(_columns.same(4.0, 3), np.array([0, 2])).tolist() == [4, 4]


VALUE = st.sampled_from((NAN, 0.0, 1.0, 2.0, 9.0, 2.5, 1e12))


@given(st.lists(st.tuples(VALUE, VALUE, VALUE), min_size=1, max_size=40))
@settings(deadline=None)
def test_rows_have_one_code_if_they_are_one_row(table: list[tuple[float, ...]]) -> None:
    code = _columns.codes(*np.array(table).T, _columns.same(3.0, len(table)))
    rows = [tuple(map(str, row)) for row in table]
    assert len(set(zip(rows, code.tolist(), strict=True))) == len(set(rows)) == len(set(code.tolist()))
    assert 0 <= code.min() <= code.max() < len(rows)
    first = [rows.index(row) for row in dict.fromkeys(rows)]
    assert sorted(_columns.first_places(code).tolist()) == first


OPTIONAL = ("issued_s", "hold_ms", "compile_ms", "on_core_ms", "runqueue_ms", "throttled_ms", "batch", "worker", "size",
            "ok", "route", "peak_mb")  # fmt: skip


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 9), st.sampled_from(("", "1", "4")), st.sampled_from("123")),
        min_size=1, max_size=60,
    ),
    compute=st.booleans(), shape=st.booleans(), compared=st.booleans(),
)  # fmt: skip
@settings(deadline=None, max_examples=60)
def test_columns_of_no_values_are_as_no_columns(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[int, int, str, str]],
    compute: bool,
    shape: bool,
    compared: bool,
) -> None:
    used = ["start_s", "latency_ms", *["queue_ms"] * compute, *["compute_ms"] * compute, *["shape.w"] * shape]
    start, lines = 0.0, []
    for gap, latency, queue, width in rows:
        start += gap / 1000
        lines.append([f"{start:.3f}", str(latency + 1), *[queue, "3"] * compute, *[width] * shape])
    folder = tmp_path_factory.mktemp("t")
    answers = []
    for more in ((), OPTIONAL):
        path = folder / "t.csv"
        header = ",".join((*used, *more))
        path.write_text("\n".join([header, *(",".join((*line, *[""] * len(more))) for line in lines)]))
        table, report = read_requests(path, {})
        found = diagnose(table, report, baseline=table if compared else None)
        answers.append((msgspec.json.encode((found.diagnosis, found.tail, found.notes)), seen(calls(table))))
    assert answers[0] == answers[1]


def seen(given_calls: object) -> dict[str, object]:
    return {name: repr(np.asarray(value).tolist()) for name, value in msgspec.structs.asdict(given_calls).items()}


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(-3, 9)), min_size=1, max_size=60), st.integers(1, 4),
       st.integers(1, 5))  # fmt: skip
@settings(deadline=None, max_examples=300)
def test_a_replay_that_leaves_out_calm_stretches_is_the_whole_replay(
    queue: list[tuple[int, int]], workers: int, together: int
) -> None:
    gaps, work = (np.array(column, dtype=np.int64) for column in zip(*queue, strict=True))
    ready = np.cumsum(gaps)
    nobody = np.zeros(ready.size, dtype=np.int64)
    whole = replays.overlapping(ready, work, nobody, (tuple(range(workers)),)).tolist()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replays, "TOGETHER", together)
        assert replays.many(ready, work, workers).tolist() == whole
        assert workers != 2 or replays.two(ready, work).tolist() == whole


def test_where_nobody_waits_nothing_is_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replays, "_starts_of_many", None)
    assert replays.many(np.arange(0, 10_000, 10), np.full(1000, 25), 4).tolist() == [0] * 1000


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)), min_size=1, max_size=30), st.integers(1, 4))
@settings(deadline=None)
def test_time_below_a_level_is_what_each_instant_says(spans: list[tuple[int, int]], level: int) -> None:
    start = np.array([a for a, _ in spans], dtype=np.float64)
    end = start + [length for _, length in spans]
    free = [sum(a <= t < b for a, b in zip(start, end, strict=True)) < level for t in range(80)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_crowd, "SLICE", 7)
        below = _crowd._Level(start, end).below(level)(np.arange(80.0))
    assert (np.diff(below) == free[:-1]).all()


@given(st.integers(40, 400), st.integers(1, 3), st.floats(-0.5, 0.95), st.integers(1, 60))
@settings(deadline=None)
def test_some_lags_are_the_first_of_all(n: int, windows: int, memory: float, lags: int) -> None:
    x = remembering(n, memory)
    every, some = quantiles.autocorrelation(x, windows), quantiles.autocorrelation(x, windows, lags)
    assert every is not None
    assert some is not None
    assert some == pytest.approx(every[:lags], abs=1e-9)


@given(st.integers(100, 2000), st.floats(-0.5, 0.99), st.sampled_from((0.5, 0.95)))
@settings(deadline=None, max_examples=50)
def test_the_worth_of_samples_does_not_depend_on_the_lags_that_are_looked_at_first(
    n: int, memory: float, q: float
) -> None:
    x = remembering(n, memory)
    whole, relaxed = quantiles.effective_samples(x, q), quantiles.relaxation_requests(x)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantiles, "FIRST_LAGS", 4)
        assert quantiles.effective_samples(x, q).tau == pytest.approx(whole.tau)
        assert quantiles.relaxation_requests(x) == pytest.approx(relaxed)


def remembering(n: int, memory: float) -> np.ndarray:
    noise, x = np.random.default_rng(n).normal(size=n), np.zeros(n)
    for k in range(1, n):
        x[k] = memory * x[k - 1] + noise[k]
    return x


def test_a_table_of_single_columns_is_still_a_table(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("start_s,latency_ms\n0,5\n1,7\n")
    table, _ = read_requests(path, {})
    assert {len(column) for column in table.trace.requests.columns.values()} == {2}
    assert table.trace.requests.take(np.array([True, False]))["batch"].tolist() == [NEVER]
