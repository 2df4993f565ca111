"""First runs beyond the running range of sizes: literal calls, and an independent slow version."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.evidence.imported._range import beyond
from trimtab.evidence.imported.diagnose import diagnose
from trimtab.readers.table import read_requests


@pytest.mark.parametrize(
    ("sizes", "worker", "out", "known"),
    [
        ([[5], [9], [7], [9], [4], [10]], [0] * 6, [0, 1, 0, 0, 1, 1], [0, 1, 1, 1, 1, 1]),
        ([[5], [9], [7], [8]], [0, 1, 0, 1], [0, 0, 1, 1], [0, 0, 1, 1]),  # each worker has a range of its own
        ([[2, 9], [3, 9], [2, 9], [3, 8]], [0] * 4, [0, 1, 0, 1], [0, 1, 1, 1]),  # any dim
        ([[5]], [0], [0], [0]),
    ],
)
def test_beyond_the_least_or_the_greatest_so_far(sizes: list, worker: list, out: list, known: list) -> None:
    found = beyond(np.array(sizes, dtype=np.int64), np.array(worker, dtype=np.int64))
    assert [each.astype(int).tolist() for each in found] == [out, known]


CALL = st.tuples(st.integers(0, 2), st.integers(1, 9), st.integers(1, 9))


@settings(deadline=None, max_examples=80)
@given(st.lists(CALL, max_size=30))
def test_as_one_by_one(calls: list[tuple[int, int, int]]) -> None:
    seen: dict[int, list[tuple[int, int]]] = {}
    slow = []
    for worker, *dims in calls:
        before = seen.setdefault(worker, [])
        spans = list(zip(*before, strict=True))
        slow.append(bool(before) and any(d < min(s) or d > max(s) for d, s in zip(dims, spans, strict=True)))
        before.append((dims[0], dims[1]))
    sizes = np.array([dims for _, *dims in calls], dtype=np.int64).reshape(-1, 2)
    out, known = beyond(sizes, np.array([worker for worker, *_ in calls], dtype=np.int64))
    assert out.tolist() == slow
    assert not np.any(out & ~known)


GROWING = [100, 400, 800, *(200 + 50 * k for k in range(12)), 900, 50, 1000, 1100]
"""Widths: six go beyond the range so far (the first is new to everything), eleven new ones lie between."""


def table(folder: Path, beyond_ms: float, within_ms: float) -> Path:
    """200 requests of 10 ms, one after the other; each new width takes so much longer, once."""
    seen: list[int] = []
    rows = ["start_s,latency_ms,compute_ms,shape.w"]
    for k in range(200):
        width = GROWING[k] if k < len(GROWING) else GROWING[k % len(GROWING)]
        outer = not seen or width < min(seen) or width > max(seen)
        took = 10 + (0 if width in seen else beyond_ms if outer else within_ms)
        seen.append(width)
        rows.append(f"{k * 0.3:.3f},{took},{took},{width}")
    path = folder / "t.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize(
    ("beyond_ms", "within_ms", "said"),
    [(200, 40, "take 200 ms more than warm runs, those between them 40 ms"), (120, 120, "those between them 120 ms")],
)
def test_what_cold_shapes_cost_beyond_the_range_and_within_it(
    tmp_path: Path, beyond_ms: float, within_ms: float, said: str
) -> None:
    requests, read = read_requests(table(tmp_path, beyond_ms, within_ms), {})
    first = diagnose(requests, read).diagnosis.classes[0]
    assert first.id == "cold-shape"
    (line,) = [line for line in first.evidence if "beyond" in line]
    assert line.startswith("6 of 17 first runs go beyond the sizes that their worker had met")
    assert said in line


def test_requests_without_sizes_have_no_range(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "start_s,latency_ms,compile_ms\n"
        + "".join(f"{k},{10 + 90 * (k % 9 == 0)},{90 * (k % 9 == 0)}\n" for k in range(300))
    )
    requests, read = read_requests(path, {})
    named = diagnose(requests, read).diagnosis.classes
    assert not [line for one in named for line in one.evidence if "beyond" in line]
