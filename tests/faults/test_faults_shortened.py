"""A run is kept and read back as it was, and cut only where no batch is torn apart."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from faults import recorded
from parts import run_info
from trimtab.domain.trace import (
    BATCH_COLUMNS,
    MARK_COLUMNS,
    REQUEST_COLUMNS,
    SAMPLE_COLUMNS,
    Table,
    Trace,
    empty,
)


def trace(batch: list[int]) -> Trace:
    """Request i is scheduled at i and done at 10 + i; ``batch[i]`` is its batch."""
    requests = empty(REQUEST_COLUMNS | {"dim.width": "int64"}, len(batch)).columns
    requests |= {"id": np.arange(len(batch)), "scheduled": np.arange(len(batch)), "done": np.arange(len(batch)) + 10}
    requests["batch"] = np.array(batch)
    batches = empty(BATCH_COLUMNS | {"exec.width": "int64"}, max(batch) + 1).columns | {"id": np.arange(max(batch) + 1)}
    marks = empty(MARK_COLUMNS, 2).columns | {"t": np.array([5, 50])}
    samples = empty(SAMPLE_COLUMNS, 2).columns | {"t": np.array([6, 60])}
    tables = (Table(requests), Table(batches), Table(marks), Table(samples))
    names = ("requests", "batches", "marks", "samples")
    return Trace(
        run=run_info(),
        dim_names=("width",),
        streams=("all",),
        entries=("e",),
        details=(),
        **dict(zip(names, tables, strict=True)),
    )


@pytest.mark.parametrize(
    ("batch", "most", "requests", "batches"),
    [
        ([0, 1, 2, 3], 3, 3, [0, 1, 2]),
        ([0, 1, 1, 2], 2, 1, [0]),  # request 2 shares a batch with request 1
        ([0, 1, 2, 1, 3], 4, 4, [0, 1, 2]),
        ([0, 1, -1, 2], 3, 3, [0, 1]),  # one never ran
        ([0, 0], 9, 2, [0]),
    ],
)
def test_a_cut_tears_no_batch(batch: list[int], most: int, requests: int, batches: list[int]) -> None:
    short = recorded.shortened(trace(batch), most)
    assert len(short.requests) == requests
    assert short.batches["id"].tolist() == batches


def test_marks_and_samples_end_with_the_last_request() -> None:
    short = recorded.shortened(trace([0, 1, 2, 3]), 2)  # done at 11
    assert short.marks["t"].tolist() == [5]
    assert short.samples["t"].tolist() == [6]


def test_a_run_that_hangs_together_cannot_be_cut() -> None:
    with pytest.raises(ValueError, match="ties all requests together"):
        recorded.shortened(trace([0, 0, 0]), 2)
