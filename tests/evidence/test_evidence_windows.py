"""Traffic over windows: rates, drift and a clock that ticks, worked out by hand."""

from __future__ import annotations

import pytest

from parts import workload_of
from trimtab.evidence.windows import windows

S = 1_000_000_000


def test_a_rate_that_doubles_and_sizes_that_move() -> None:
    times = [k * S for k in range(40)] + [40 * S + k * S // 2 for k in range(81)]
    table, figures, said = windows(workload_of(times, [10] * 40 + [20] * 81), "f.csv")
    # 121 requests: four windows of 20 s
    assert table.columns["requests"] == (20, 20, 40, 41)
    assert table.columns["rate, 1/s"] == (1.0, 1.0, 2.0, 2.05)
    assert table.columns["gap cv"][:2] == (0.0, 0.0)
    assert table.columns["width p50"] == (10, 10, 20, 20)
    assert table.columns["width differs"] == (None, None, pytest.approx(40 / 81, rel=1e-5), pytest.approx(0.5))
    values = {figure.id: figure.value for figure in figures}
    assert (values["workload.window_rate_min"], values["workload.window_rate_max"]) == (1.0, 2.05)
    assert values["workload.width.window_drift"] == 0.5
    assert [one.text for one in said] == [
        "The rate moves between 1/s and 2.05/s from window to window.",
        "Sizes drift: width of window 4 differs from all others by 50.0 %.",
    ]


def test_a_clock_that_ticks_is_told() -> None:
    times = [3 * S * (k // 10) for k in range(100)]
    _, figures, said = windows(workload_of(times, [1] * 100), "f.csv")
    assert {figure.id: figure.value for figure in figures}["workload.clock_tick"] == 3.0
    assert said[-1].text.startswith("90.9 % of the requests bear the very time of the one before, the others come 3 s")


@pytest.mark.parametrize("times", [[0], [0, 0, 0], [0, 5]])
def test_few_requests_have_one_window_and_no_drift(times: list[int]) -> None:
    table, _, said = windows(workload_of(times, [1] * len(times)), "f.csv")
    assert table.columns["requests"] == (len(times),)
    assert table.columns["width differs"] == (None,)
    assert said == ()
