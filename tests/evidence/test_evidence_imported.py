"""Imported tables: learnt warm times, stages within stages, who waited for whom, and any mixture of columns."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.errors import DataError
from trimtab.evidence.imported._crowd import backlog, waits
from trimtab.evidence.imported._expected import expected
from trimtab.evidence.imported._facts import _steps
from trimtab.evidence.imported._warm import learn
from trimtab.evidence.imported.diagnose import METHOD, diagnose
from trimtab.evidence.imported.recorded import Calls, calls
from trimtab.readers.table import read_requests


def read(rows: str) -> Calls:
    """The calls of a table given as its lines."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "t.csv")
        path.write_text(rows)
        return calls(read_requests(path, {})[0])


def ms(values: np.ndarray) -> list[float]:
    return [round(v / 1e6, 2) for v in values.tolist()]


def test_warm_times_are_medians_by_volume_and_linear_between() -> None:
    warm = learn(np.array([10.0, 10, 10, 30]), np.array([1.0, 2, 9, 4]))
    assert warm(np.array([10.0, 20, 30, 40, 5, -40])).tolist() == [2, 3, 4, 5, 1.5, 0]
    assert warm.covers(np.array([5.0, 10, 30, 31])).tolist() == [False, True, True, False]


def test_one_volume_tells_nothing_of_another() -> None:
    warm = learn(np.array([10.0, 10]), np.array([2.0, 2]))
    assert warm(np.array([10.0])).tolist() == [2]
    assert np.isnan(warm(np.array([9.0]))).all()


@pytest.mark.parametrize(
    ("row", "queue", "run", "reading"),
    [
        ("0,3,4,1,5,2", 4, 7, ()),  # no reading fits
        ("0,12,4,1,5,2", 4, 7, ()),
        ("0,10,4,1,5,1", 4, 5, ("compile",)),  # 4 + 1 + 5 = 10: the compile lies within the run
        ("0,11,4,1,5,2", 3, 7, ("hold",)),
    ],
)
def test_stages_that_lie_within_others_are_counted_once(
    row: str, queue: float, run: float, reading: tuple[str, ...]
) -> None:
    found = read(f"start_s,latency_ms,queue_ms,hold_ms,compute_ms,compile_ms\n{row}\n")
    assert (found.reading, ms(found.queue), ms(found.run)) == (reading, [queue], [run])


def test_a_remainder_belongs_to_no_stage() -> None:
    found = read("start_s,latency_ms,queue_ms,compute_ms\n0,10,2,5\n1,5,0,5\n")
    assert ms(found.remainder) == [3, 0]


def test_off_core_and_stalls() -> None:
    found = read("start_s,latency_ms,compute_ms,on_core_ms,runqueue_ms\n0,10,10,6,1\n1,5,5,5,0\n")
    assert (ms(found.off_core), ms(found.stall), ms(found.on_core)) == ([1, 0], [3, 0], [6, 5])
    blind = read("start_s,latency_ms,compute_ms,on_core_ms\n0,10,10,6\n")
    assert np.isnan(blind.stall).all()  # without the run queue it may be either


def test_flags_come_from_the_calls_alone() -> None:
    found = read("start_s,latency_ms,shape.w\n0,1,5\n1,1,5\n2,1,7\n3,1,5\n")
    assert found.first.tolist() == [True, False, True, False]
    assert found.changed.tolist() == [False, False, True, True]
    by_worker = read("start_s,latency_ms,shape.w,worker\n0,1,5,a\n1,1,5,b\n2,1,5,a\n")
    assert by_worker.first.tolist() == [True, True, False]


def test_members_share_their_batch() -> None:
    found = read(
        "start_s,latency_ms,compute_ms,batch,shape.w,executed.w,executed.batch\n"
        "0,5,5,1,10,16,4\n0.001,4,4,1,12,16,4\n1,5,5,2,16,16,4\n"
    )
    assert (found.head.tolist(), found.size.tolist()) == ([True, False, True], [2, 2, 1])
    assert (found.volume.tolist(), found.true_volume.tolist()) == ([64, 64, 64], [22, 22, 16])
    assert found.first.tolist() == [True, True, False]


def test_a_worker_that_was_free_makes_the_wait_idle() -> None:
    head = "start_s,latency_ms,queue_ms,compute_ms\n"
    busy = read(head + "0,10,0,10\n0.0050001,15,5,10\n")
    assert ms(waits(busy, 0).idle) == [0, 0]
    free = read(head + "0,10,0,10\n0.0050001,25,15,10\n")
    assert (ms(waits(free, 0).busy), ms(waits(free, 0).idle)) == ([0, 5], [0, 10])
    assert ms(waits(busy, 2).idle) == [0, 5]


def test_a_free_worker_elsewhere() -> None:
    rows = ("0,10,0,10,a", "0.001,5,0,5,b", "0.0050001,15,5,10,a")
    found = read("start_s,latency_ms,queue_ms,compute_ms,worker\n" + "\n".join(rows) + "\n")
    wait = waits(found, 0)
    assert (ms(wait.busy), ms(wait.elsewhere), wait.workers) == ([0, 0, 5], [0, 0, 4], 2)


def test_times_in_whole_ms_do_not_invent_workers() -> None:
    """One worker, back to back; 5.5 ms runs rounded up to 6 overlap by half of one."""
    rows = [f"{round(i * 5.5) / 1e3:.3f},6,0,6" for i in range(100)] + ["0.300,256,250,6"]
    found = read("start_s,latency_ms,queue_ms,compute_ms\n" + "\n".join(rows) + "\n")
    wait = waits(found, 0)
    assert (wait.workers, wait.seen, wait.idle.sum()) == (1, True, 0)


def test_the_backlog_is_the_stalls() -> None:
    """A stall of 100 ms, and ten requests behind it that take 1 ms each: all but the stall's own work is its doing."""
    rows = ["0,101,0,101"] + [f"{0.001 * i:.3f},{101 - i + i},{100 - 0},1" for i in range(1, 11)]
    found = read("start_s,latency_ms,queue_ms,compute_ms\n" + "\n".join(rows) + "\n")
    stall = np.zeros(11)
    stall[0] = 100e6
    behind = backlog(found, waits(found, 1), found.run - stall, {"cold": stall})
    assert ms(behind.relief["cold"]) == [0, *[100] * 10]
    assert ms(behind.capacity) == [0] * 11


def test_padding_is_timed_at_other_sizes_only() -> None:
    head = "start_s,latency_ms,compute_ms,shape.w,executed.w\n"
    one = read(head + "".join(f"{i},9,9,{10 + i % 2},32\n" for i in range(8)))
    assert (expected(one, None).padding_known, expected(one, None).padding.sum()) == (False, 0)
    two = read(
        head + "".join(f"{i},{9 if i % 2 else 5},{9 if i % 2 else 5},16,{32 if i % 2 else 16}\n" for i in range(8))
    )
    assert ms(expected(two, None).padding) == [0, 4] * 4


@pytest.mark.parametrize(
    ("run", "steps"),
    [
        ([5] * 10 + [105] * 10, True),
        ([105] * 10 + [206] * 10, True),
        ([205] * 20, False),  # one length is no step
        ([5] * 20 + [305] * 20, False),  # nor is one beside a fast one
        ([5] * 20, None),
        (list(range(80, 180, 5)), False),
    ],
)
def test_steps_of_a_quota(run: list[float], steps: bool | None) -> None:
    assert _steps(np.array(run) * 1e6) is steps


COLUMNS = (
    "issued_s", "queue_ms", "hold_ms", "compute_ms", "compile_ms", "on_core_ms", "runqueue_ms", "throttled_ms",
    "shape.a", "shape.batch", "executed.a", "executed.batch", "batch", "worker", "stream", "size", "ok", "route",
    "peak_mb", "limit_mb", "launches", "launch_us", "declared", "executed",
)  # fmt: skip
WORDS = {"ok": ("true", "false", "oom", ""), "route": ("exact", "fallback", ""), "declared": ("int8",)}
VALUE = st.sampled_from(("", "0", "1", "3", "7", "40", "250.5", "nan"))


@st.composite
def tables(draw: st.DrawFn) -> str:
    names = draw(st.lists(st.sampled_from(COLUMNS), unique=True, max_size=8))
    rows = draw(st.integers(1, 12))
    lines = [",".join(("start_s", "latency_ms", *names))]
    for _ in range(rows):
        first = [draw(st.sampled_from(("0", "1", "2.5"))), draw(VALUE)]
        rest = [draw(st.sampled_from(WORDS[name])) if name in WORDS else draw(VALUE) for name in names]
        lines += [",".join((*first, *rest))] * draw(st.sampled_from((1, 40)))
    return "\n".join(lines) + "\n"


@settings(deadline=None, max_examples=150)
@given(tables(), st.booleans())
def test_any_mixture_of_columns_is_read_and_answered(text: str, compared: bool) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "t.csv")
        path.write_text(text)
        try:
            table, report = read_requests(path, {})
        except DataError:
            return
    found = diagnose(table, report, baseline=table if compared else None)
    assert found.notes[0] == METHOD
    assert found.diagnosis.classes
    given_calls = calls(table)
    waited = np.nan_to_num(given_calls.slip) + np.nan_to_num(given_calls.hold) + np.nan_to_num(given_calls.queue)
    whole = waited + np.nan_to_num(given_calls.run) + given_calls.remainder
    assert np.all(whole >= given_calls.latency - 1)  # stages and remainder hold all of the latency
