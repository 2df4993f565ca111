"""The index of dispersion: of a metronome, of a Poisson process, of crowds; and where nothing can be said."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parts import workload_of
from trimtab.domain.workload import Workload
from trimtab.evidence.bursts import WIDTHS, bursts

SECOND = 1_000_000_000


def arrivals(times: np.ndarray) -> Workload:
    """Requests of one size and stream that arrive at ``times``, ns."""
    scheduled = np.sort(times.astype(np.int64))
    return workload_of(scheduled - scheduled[0], 1)


def index(times: np.ndarray) -> list[float]:
    [table], _, _ = bursts(arrivals(times), "t.csv")
    return [float(one) for one in table.columns["dispersion"]]  # type: ignore[arg-type]


def test_a_metronome_does_not_vary() -> None:
    assert max(index(np.arange(3000) * SECOND // 10)) < 0.1


def test_a_poisson_process_varies_as_one_at_every_width() -> None:
    draw = np.random.default_rng(7)
    found = index(np.cumsum(draw.exponential(SECOND / 50, 20_000)))
    assert len(found) == WIDTHS
    assert all(0.5 < one < 1.6 for one in found)


def test_crowds_vary_most_over_their_own_length() -> None:
    crowds = np.arange(200)[:, None] * 10 * SECOND + np.arange(20) * SECOND // 100  # 20 at once every 10 s
    [table], [figure], [finding] = bursts(arrivals(crowds.ravel()), "t.csv")
    assert max(table.columns["dispersion"]) == pytest.approx(figure.value, rel=1e-4)  # type: ignore[type-var]
    assert figure.value is not None
    assert figure.value > 5
    assert (finding.figures, figure.id) == (("workload.dispersion",), "workload.dispersion")
    assert "times as much as those of a Poisson process" in finding.text


@pytest.mark.parametrize("times", [np.zeros(500), np.zeros(1), np.arange(60) * SECOND])
def test_too_few_or_all_at_one_time_say_nothing(times: np.ndarray) -> None:
    assert bursts(arrivals(times), "t.csv") == ((), (), ())


@settings(deadline=None, max_examples=40)
@given(gaps=st.lists(st.integers(0, 10**9), min_size=130, max_size=400))
def test_it_is_never_negative_and_counts_no_request_twice(gaps: list[int]) -> None:
    workload = arrivals(np.cumsum(np.array(gaps)))
    for table in bursts(workload, "t")[0]:
        for dispersion, width, windows in zip(
            *(table.columns[name] for name in ("dispersion", "width", "windows")), strict=True
        ):
            assert dispersion >= 0  # type: ignore[operator]
            assert windows * width <= workload.span / 1e9 * 1.001  # type: ignore[operator]
