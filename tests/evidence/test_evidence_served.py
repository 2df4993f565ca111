"""For whom the workers ran and who waited: the parts of all requests are the whole, and rows never grow without end."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from account_cases import Formula, Scene, simulate
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.domain.account import Account
from trimtab.domain.trace import Trace
from trimtab.evidence.attribute import served
from trimtab.evidence.attribute._tables import bands, cores, time_bins
from trimtab.evidence.attribute.account import build

MS = 1_000_000


def scene(requests: int = 60) -> Scene:
    """Two streams in turn on one worker, batches of up to two, sizes 1 to 5; more work than the worker can do."""
    return Scene(
        arrivals=np.arange(requests, dtype=np.int64) * 10 * MS,
        dims=np.arange(requests, dtype=np.int64) % 5 + 1,
        streams=np.arange(requests) % 2,
        max_size=2,
        reference=Formula(fixed=12 * MS, slope=MS // 2),
    )


def analysed(made: Scene) -> tuple[Account, Trace]:
    trace = simulate(made)
    return build(trace, made.promise, made.reference, "reference", made.plan, made.by_entry), trace


def rows(account: Account, trace: Trace) -> list[dict[str, Any]]:
    return served.served(account, trace, time_bins(trace), bands(trace, served.BANDS)[0])


def summed(found: list[dict[str, Any]], field: str) -> dict[float, float]:
    total: dict[float, float] = defaultdict(float)
    for row in found:
        total[row["t"]] += row[field]
    return total


def test_the_parts_of_all_requests_are_what_the_worker_ran() -> None:
    account, trace = analysed(scene())
    busy = summed(list(cores(account, trace)), "busy")
    theirs = summed(rows(account, trace), "busy")
    assert len(busy) > 100
    assert all(theirs[t] == pytest.approx(share, abs=0.01) for t, share in busy.items())


def test_the_parts_of_waiting_are_the_mean_number_that_waited() -> None:
    account, trace = analysed(scene())
    found = rows(account, trace)
    spent = sum(row["waiting"] * (row["end"] - row["t"]) for row in found)
    waited = (trace.requests["dispatched"] - trace.requests["enqueued"]).sum() / 1e9
    assert spent == pytest.approx(waited, rel=0.01)


def test_a_row_names_its_stream_and_a_size_that_came() -> None:
    found = rows(*analysed(scene()))
    assert {(row["worker"], row["stream"]) for row in found} == {(0, "s0"), (0, "s1")}
    assert {row["size"] for row in found} == {1, 2, 3, 4, 5}


def test_bins_are_joined_until_the_rows_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    account, trace = analysed(scene())
    fine = rows(account, trace)
    monkeypatch.setattr(served, "MOST", 60)
    coarse = rows(account, trace)
    assert 0 < len(coarse) <= 60 < len(fine)
    whole = sum(row["busy"] * (row["end"] - row["t"]) for row in coarse)
    assert whole == pytest.approx(sum(row["busy"] * (row["end"] - row["t"]) for row in fine), rel=0.01)
    monkeypatch.setattr(served, "MOST", 5)  # ten groups: not even one bin is few enough
    assert rows(account, trace) == []


SPANS = st.lists(st.tuples(st.integers(0, 100), st.integers(0, 50), st.sampled_from((0.5, 1.0))), max_size=8)


@settings(deadline=None)
@given(spans=SPANS)
def test_covered_is_what_counting_instant_by_instant_gives(spans: list[tuple[int, int, float]]) -> None:
    edges = np.array([0, 10, 30, 60, 200])
    count = np.zeros(200)
    for start, length, weight in spans:
        count[start : start + length] += weight
    starts = np.array([start for start, _, _ in spans], dtype=np.int64)
    ends = np.array([start + length for start, length, _ in spans], dtype=np.int64)
    weights = np.array([weight for _, _, weight in spans], dtype=np.float64)
    expected = [count[lo:hi].mean() for lo, hi in pairwise(edges)]
    assert served.covered(edges, starts, ends, weights) == pytest.approx(np.array(expected), abs=1e-9)
