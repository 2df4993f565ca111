"""Invented findings for the report's tests: the ids and columns of the evidence, the numbers of nobody."""

from __future__ import annotations

from math import exp

from trimtab.domain.figure import Cell, Figure, Finding, Findings, Interval, Series


def figure(
    id: str,  # noqa: A002 - the word of the noun
    value: float | None,
    unit: str,
    lo: float | None = None,
    hi: float | None = None,
    **more: object,
) -> Figure:
    interval = None if lo is None or hi is None else Interval(lo=lo, hi=hi, method="invented")
    base = {"samples": 3312, "scope": "held-out", "artifact": "traces/held-out-1/requests.parquet"}
    return Figure(id=id, value=value, unit=unit, interval=interval, **(base | more))  # type: ignore[arg-type]


def series(id: str, rows: list[dict[str, Cell]], artifact: str = "traces", **more: object) -> Series:  # noqa: A002
    columns = {key: tuple(row[key] for row in rows) for key in rows[0]}
    return Series(id=id, columns=columns, artifact=artifact, **more)  # type: ignore[arg-type]


def _knots(tail: float) -> float:
    """A curve through the percentiles that the figures give for plan today, ms."""
    xs = (0.0, 0.301, 1.0, 1.301, 2.0, 3.0, 4.0)
    ys = (2.1, 9.9, 44.0, 72.4, 118.0, 236.0, 330.0)
    k = next(i for i in range(len(xs) - 1) if tail <= xs[i + 1])
    return ys[k] + (ys[k + 1] - ys[k]) * (tail - xs[k]) / (xs[k + 1] - xs[k])


def _curves(part: str, plans: dict[str, float]) -> list[dict[str, Cell]]:
    return [
        {"run": f"{part}-{plan}-{run}", "plan": plan, "tail": tail,
         "latency": scale * _knots(tail) * (1 + 0.04 * (run - 2) * tail)}
        for plan, scale in plans.items()
        for run in (1, 2, 3)
        for tail in (3.52 * k / 63 for k in range(64))
    ]  # fmt: skip


def validate() -> Findings:
    curves = _curves("held-out", {"today": 1.0, "refit-4": 0.569})
    headline = "The primary cell passes, 2 of 2 guards pass; 1 cells are inconclusive, 1 were not run."
    return Findings(stage="validate", headline=headline, series=(series("validate.quantiles", curves),))


def replay() -> Findings:
    curve = _curves("tune", {"today": 1.0})
    figures = []
    for name, value in (("p50", 9.9), ("p95", 72.4), ("p99", 118.0), ("p99.9", 236.0)):
        ends = (value * 0.95, value * 1.06) if name != "p99.9" else (None, None)
        figures.append(figure(f"replay.{name}", value, "ms", *ends, scope="tune"))
    figures += [figure(f"replay.floor.{name}", v, "share") for name, v in (("p50", 0.03), ("p95", 0.06), ("p99", 0.09))]
    return Findings(
        stage="replay",
        headline="Plan today: p95 72.4 ms, p99 118 ms (p50 9.9 ms) over 3312 scheduled requests, 3 replays.",
        figures=tuple(figures),
        series=(series("replay.quantiles", curve), *_over_time()),
    )


def workload() -> Findings:
    bars: list[dict[str, Cell]] = []
    for k in range(40):
        lo, hi = 16 + 25 * k, 16 + 25 * (k + 1) - 1
        n = round(1400 * exp(-(((lo - 190) / 90) ** 2)) + 300 * exp(-(((lo - 520) / 190) ** 2)))
        bars.append({"lo": lo, "hi": hi, "requests": n, "tune": n // 3, "held-out": n - n // 3})
    figures = (
        figure("workload.rate", 70.0, "1/s", scope="whole workload"),
        figure("workload.requests", 8280, "requests", scope="whole workload"),
        figure("workload.new_shapes", 0.114, "share"),
    )
    headline = "8280 requests at 70/s over 118 s; the busiest second has 2.1 times the mean."
    return Findings(
        stage="workload",
        headline=headline,
        figures=figures,
        series=(series("workload.width", bars, "workload.parquet"),),
    )


def score() -> Findings:
    text = (
        "Mapping accuracy is 61.3 % [58.9 %, 63.6 %] (falling from 83.1 % to 50.2 % over the run), promise accuracy "
        "93.0 % [91.8 %, 94.1 %]: the traffic left what the mapping was made for, most of it lost to cold. Refit the "
        "entries to the shapes seen, and warm these at start (runtime lead)."
    )
    return Findings(
        stage="score",
        headline=text,
        findings=(Finding(text=text, owner="runtime"),),
        figures=_score_figures(),
        series=(_windows(), _loss(), _shapes(), _simulation()),
    )


def _score_figures() -> tuple[Figure, ...]:
    more = {"artifact": "traces/today-1/batches.parquet", "scope": "this run"}
    return (
        figure("score.mapping_accuracy", 0.613, "share", 0.589, 0.636, **more),
        figure("score.promise_accuracy_warm", 0.930, "share", 0.918, 0.941, **more),
        figure("score.promise_accuracy", 0.664, "share", 0.64, 0.69, **more),
        figure("score.bias_warm", 0.021, "share", 0.011, 0.03, **more),
        figure("score.coverage", 1.0, "share", **more),
        figure("score.fit", 0.88, "share", **more),
        figure("score.regret", 0.63, "share", 0.57, 0.70, **more),
        figure("score.gain", 0.43, "share", 0.38, 0.48, **more),
    )


def _windows() -> Series:
    rows: list[dict[str, Cell]] = []
    for k in range(16):
        drift = 1 / (1 + exp(-(k - 6) * 1.4))
        rows.append(
            {
                "window": k,
                "start": 2.9 * k,
                "requests": 207,
                "p95": 38 + 60 * drift,
                "miss_rate": 0.012 + 0.085 * drift * (1 - 0.03 * (k - 8)),
                "mapping_accuracy": 0.84 - 0.33 * drift + 0.01 * (k % 3),
                "promise_accuracy": 0.93 - 0.01 * (k % 4),
                "first_runs": round(2 + 22 * drift),
                "gain_p95": 0.02 * (k % 3 - 1) + 0.46 * drift,
            }
        )
    return series("score.windows", rows, "traces/today-1/requests.parquet")


def _loss() -> Series:
    shares = {"cold": 0.241, "interference": 0.052, "padding": 0.031, "premium": 0.063, "unprofiled": 0.0}
    rows: list[dict[str, Cell]] = [
        {"cause": cause, "share": s, "lo": s - 0.02 if s else None, "hi": s + 0.024 if s else None, "time": s * 9000}
        for cause, s in shares.items()
    ]
    return series("score.loss", rows)


def _shapes() -> Series:
    rows: list[dict[str, Cell]] = []
    for k in range(36):
        width = 48 + 25 * k
        promised = 0.6 + 0.0131 * width
        rows.append(
            {
                "entry": "any-width",
                "executed": f"1x{width}",
                "true": f"{width}..{width}",
                "promised": promised if k != 30 else None,
                "expected": promised * 1.4,
                "measured": promised * (1.01 + 0.02 * (k % 3)),
                "measured_p95": promised * (1.2 + 0.16 * (k % 5)),
                "n": max(140 - 4 * k, 1),
                "first_runs": 1 + k // 9,
                "error": 0.01 + 0.02 * (k % 3) if k != 30 else None,
            }
        )
    return series("score.shapes", rows, "traces/today-1/batches.parquet")


def _simulation() -> Series:
    rows: list[dict[str, Cell]] = [
        {"metric": "p50", "replayed": 9.9, "simulated": 9.6, "error": -0.03, "floor": 0.03, "floor_note": ""},
        {"metric": "p95", "replayed": 72.4, "simulated": 69.0, "error": -0.047, "floor": 0.06, "floor_note": ""},
        {"metric": "p99", "replayed": 118.0, "simulated": 127.0, "error": 0.076, "floor": 0.09, "floor_note": ""},
    ]
    return series("score.simulation", rows)


def _over_time() -> tuple[Series, ...]:
    windows: list[dict[str, Cell]] = []
    for run in range(3):
        for k in range(16):
            late = 0.012 + 0.07 / (1 + exp(6 - k)) + 0.004 * run
            windows.append(
                {"run": f"tune-today-{run + 1}", "plan": "today", "start": 2.9 * k, "requests": 207, "p50": 9.0,
                 "p95": 40 + 560 * late, "miss_rate": late}
            )  # fmt: skip
    cores: list[dict[str, Cell]] = [
        {"run": "tune-today-1", "plan": "today", "core": 0, "batches": 0, "work": 0.0, "busy": 0.0,
         "machine_busy": 0.34, "stolen": 0.001, "runqueue": None},
        {"run": "tune-today-1", "plan": "today", "core": 1, "batches": 3312, "work": 32000.0, "busy": 0.68,
         "machine_busy": 0.71, "stolen": 0.002, "runqueue": 212.4},
    ]  # fmt: skip
    sizes: list[dict[str, Cell]] = [
        {"run": "tune-today-1", "plan": "today", "size": k, "batches": 2400 // k**2, "requests": 2400 // k}
        for k in (1, 2, 3, 4)
    ]
    return series("replay.over_time", windows), series("replay.cores", cores), series("replay.batch_sizes", sizes)
