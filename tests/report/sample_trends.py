"""Invented trends, padding and sweeps: the ids and columns of the evidence, the numbers of nobody."""

from __future__ import annotations

from sample_findings import figure, series

from trimtab.domain.figure import Cell, Figure, Finding, Findings, Series

ENDS = (160, 288, 512, 960)


def padding() -> tuple[tuple[Figure, ...], tuple[Series, ...]]:
    """Plan today pads nothing; refit-4 pads up to its entries."""
    sizes: list[dict[str, Cell]] = []
    entries: list[dict[str, Cell]] = []
    below = 16
    for end in ENDS:
        for lo in range(below, end, 32):
            hi = min(lo + 24, end)
            bar: dict[str, Cell] = {"entry": f"to-{end}", "lo": lo, "hi": hi, "requests": 40}
            sizes.append({"plan": "refit-4", **bar, "padding": 1 - (lo + hi) / 2 / end})
        whole: dict[str, Cell] = {"entry": f"to-{end}", "lo": below, "hi": end, "requests": 400}
        entries.append({"plan": "refit-4", **whole, "padding": 0.5 * (1 - below / end)})
        below = end + 1
    alone: dict[str, Cell] = {
        "plan": "today",
        "entry": "any-width",
        "lo": 16,
        "hi": 960,
        "requests": 1600,
        "padding": 0.0,
    }
    sizes.append(alone)
    entries.append(alone)
    figures = (
        figure("validate.padding.today", 0.0, "share"),
        figure("validate.padding.refit-4", 0.214, "share", 0.208, 0.221),
    )
    return figures, (
        series("validate.padding", sizes, scope="held-out"),
        series("validate.padding_by_entry", entries, scope="held-out"),
    )


def decided() -> Findings:
    """Six windows of 200 requests: today above the bound in four of them, the other plan in none."""
    rows: list[dict[str, Cell]] = [
        {"first": 200 * k, "last": 200 * k + 199, "baseline": 50.0 + 8 * k, "baseline_lo": 48.0 + 8 * k,
         "baseline_hi": 55.0 + 8 * k, "candidate": 38.0 + k, "candidate_lo": 36.0 + k, "candidate_hi": 41.0 + k}
        for k in range(6)
    ]  # fmt: skip
    note = "p95 by window of equal numbers of requests, all replays together; lo and hi are single replays"
    return Findings(
        stage="decide",
        headline="Ship: the primary cell and all guards pass.",
        findings=(Finding(text="p95 was better in 6 of 6 windows of 200 requests."),),
        series=(series("decide.trend", rows, scope="held-out", note=note),),
    )


def sweep() -> Series:
    """Least at nine entries; more than twelve do not fit into memory."""
    rows: list[dict[str, Cell]] = [
        {"count": n, "run_ms": 4.0 + 8.0 / n, "start_ms": 0.1 * n, "total_ms": 4.0 + 8.0 / n + 0.1 * n,
         "memory_mib": 100.0 * n, "fits": n <= 12, "best": n == 9}
        for n in range(1, 17)
    ]  # fmt: skip
    note = "216 ms to start an entry, 2160 requests a start; limit 1200 MiB"
    return series("retune.sweep", rows, scope="tune", note=note)
