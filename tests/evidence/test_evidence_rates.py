"""Traffic that is known by rates only, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from trimtab.domain.rates import Rates
from trimtab.evidence.rates import describe

NAN = float("nan")


def test_two_clients_over_four_windows() -> None:
    rates = Rates(
        clients=("a", "b"),
        starts=np.array([0.0, 600.0, 1200.0, 1800.0]),
        width=600.0,
        rate=np.array([[1.0, 1.0, 4.0, 0.0], [1.0, 0.0, 0.0, 1.0]]),
        cv=np.array([[1.0, 1.0, 2.0, NAN], [0.0, NAN, NAN, NAN]]),
    )
    found = describe(rates, "r.csv")
    assert {figure.id.removeprefix("workload."): figure.value for figure in found.figures} == {
        "streams": 2, "span": 2400, "rate": 2.0, "window_rate_min": 1.0, "window_rate_max": 4.0, "peak_to_mean": 2.0,
        "gap_cv": pytest.approx((1 + 1 + 8 + 0) / 7), "top_share": 0.75, "half": 1,
    }  # fmt: skip
    assert found.headline == "2 clients at 2/s over 0.667 h; the busiest 600 s have 2.0 times the mean."
    assert found.findings[1].text == "1 of 2 clients send half of the requests; the busiest sends 75.0 %."
    windows, clients = found.series
    assert (windows.columns["rate, 1/s"], windows.columns["clients"]) == ((2.0, 1.0, 4.0, 1.0), (2, 1, 1, 1))
    assert windows.columns["gap cv"] == (0.5, 1.0, 2.0, None)
    assert (clients.columns["client"], clients.columns["share"]) == (("a", "b"), ("75.0 %", "25.0 %"))


def test_no_traffic_at_all() -> None:
    quiet = Rates(
        clients=("a",), starts=np.array([0.0, 1.0]), width=1.0, rate=np.zeros((1, 2)), cv=np.full((1, 2), NAN)
    )
    values = {figure.id: figure.value for figure in describe(quiet, "r.csv").figures}
    assert (values["workload.rate"], values["workload.peak_to_mean"], values["workload.gap_cv"]) == (0.0, None, None)
