"""What traffic is like that is known by its clients' rates only: how it moves, its bursts, who makes most of it (R1).

Figures: mean rate = sum of all rates x window / span. Peak to mean = the busiest window's rate / the mean. The gaps' cv
is that of each client within each window, weighted by requests (cv of the sum of several clients is not the sum of
theirs, and is not in the table). Clients for half of the traffic: the fewest that send it.

Limit: nothing is known within a window, and nothing of sizes.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.figure import Finding, Findings, Series
from trimtab.domain.rates import Rates
from trimtab.evidence.figures import Desk, percent, series

MOST_WINDOWS = 24
MOST_CLIENTS = 20

Floats = NDArray[np.float64]


def describe(rates: Rates, artifact: str) -> Findings:
    """Figures and series ``workload.*`` of ``rates``; those of requests, as far as rates can tell."""
    desk = Desk("workload", "whole workload", artifact)
    total = rates.rate.sum(axis=0)
    mean, windows = float(total.mean()), total.size
    span = windows * rates.width
    shares = np.sort(rates.rate.sum(axis=1))[::-1] / (rates.rate.sum() or 1.0)
    half = int(np.searchsorted(np.cumsum(shares), 0.5) + 1)
    busiest = float(total.max() / mean) if mean else math.nan
    desk.add("streams", len(rates.clients), "streams", len(rates.clients))
    desk.add("span", span, "s", windows)
    desk.add("rate", mean, "1/s", windows)
    desk.add("window_rate_min", float(total.min()), "1/s", windows, note=f"of windows of {rates.width:g} s")
    desk.add("window_rate_max", float(total.max()), "1/s", windows, note=f"of windows of {rates.width:g} s")
    desk.add("peak_to_mean", busiest, "1", windows, note="over windows")
    desk.add("gap_cv", _spread(rates.cv, rates.rate), "1", windows, note="within clients and windows, by requests")
    desk.add("top_share", float(shares[0]), "share", len(rates.clients), note="of the busiest client")
    desk.add("half", half, "streams", len(rates.clients), note="the fewest that send half of the requests")
    text = f"{len(rates.clients)} clients at {mean:.3g}/s over {span / 3600:.3g} h; the busiest {rates.width:g} s have"
    said = (
        Finding(
            text=f"{text} {busiest:.1f} times the mean.",
            figures=("workload.streams", "workload.rate", "workload.span", "workload.peak_to_mean"),
            owner="observability",
        ),
        Finding(
            text=f"{half} of {len(rates.clients)} clients send half of the requests; the busiest sends "
            f"{percent(float(shares[0]))}.",
            figures=("workload.half", "workload.top_share"),
            owner="runtime",
        ),
    )
    return Findings(
        stage="workload",
        headline=said[0].text,
        findings=said,
        figures=tuple(desk.figures),
        series=(_windows(rates, artifact), _clients(rates, artifact)),
    )


def _spread(cv: Floats, weight: Floats) -> float:
    """Mean cv by weight, over what is said; nan where nothing is."""
    known = np.isfinite(cv) & (weight > 0)
    return float(np.average(cv[known], weights=weight[known])) if known.any() else math.nan


def _windows(rates: Rates, artifact: str) -> Series:
    """At most 24 stretches of whole windows."""
    step = math.ceil(rates.starts.size / MOST_WINDOWS)
    parts = [slice(k, min(k + step, rates.starts.size)) for k in range(0, rates.starts.size, step)]
    columns: dict[str, list[float | int]] = {
        "start, s": [float(rates.starts[part.start]) for part in parts],
        "rate, 1/s": [float(rates.rate[:, part].sum(axis=0).mean()) for part in parts],
        "gap cv": [_spread(rates.cv[:, part], rates.rate[:, part]) for part in parts],
        "clients": [int((rates.rate[:, part] > 0).any(axis=1).sum()) for part in parts],
    }
    note = f"each of {step} windows of {rates.width:g} s"
    return series("workload.windows", columns, {}, artifact, scope="whole workload", note=note)


def _clients(rates: Rates, artifact: str) -> Series:
    means = rates.rate.mean(axis=1)
    order = np.argsort(-means, kind="stable")[:MOST_CLIENTS]
    whole = float(means.sum()) or 1.0
    columns: dict[str, list[str | float]] = {
        "client": [rates.clients[k] for k in order],
        "mean rate, 1/s": [float(means[k]) for k in order],
        "share": [percent(float(means[k]) / whole) for k in order],
        "gap cv": [_spread(rates.cv[k], rates.rate[k]) for k in order],
    }
    more = len(rates.clients) - order.size
    note = f"{more} more" if more else ""
    return series("workload.streams", columns, {}, artifact, scope="whole workload", note=note)
