"""Invented slow requests: six of sixty, each behind the same two batches."""

from __future__ import annotations

from sample_findings import series

from trimtab.domain.figure import Cell, Series

SLOW = range(40, 46)


def slow_requests() -> tuple[Series, ...]:
    """Requests 40 to 45 are slow, 0.7 s apart; 40 and 41 have a story."""
    artifact = "accounts/today-1.parquet"
    shown: list[dict[str, Cell]] = [
        {
            "request": k,
            "t": 0.7 * k,
            "latency": 148.0 - k if k in SLOW else 6.0 + k % 9,
            "size": 24 + 13 * k,
            "stream": f"client-{k % 3 + 1}",
            "cause": "cold" if k in SLOW else "useful",
            "tail": k in SLOW,
        }
        for k in range(60)
    ]
    parts: list[dict[str, Cell]] = [
        {"request": k, "cause": cause, "own": own, "inherited": inherited}
        for k in SLOW
        for cause, own, inherited in (
            ("cold", 20.0 if k % 2 else 10.0, 60.0), ("capacity", 0.0, 18.0), ("useful", 10.0, 0.0)
        )
    ]  # fmt: skip
    stories: list[dict[str, Cell]] = [
        {"request": k, "stream": f"client-{k % 3 + 1}", "dims": f"{24 + 13 * k}", "latency": 148.0 - k, "waited": 78.0,
         "blockers": 3, "sentence": f"Of {148 - k} ms: 70 ms the cost of cold runs.", "batch": k, "worker": 0,
         "entry": "any-width", "first": True, "enqueued": 0.0, "batched": 0.0, "dispatched": 78.0, "started": 78.5,
         "ended": 147.5 - k, "done": 148.0 - k}
        for k in (40, 41)
    ]  # fmt: skip
    front: list[dict[str, Cell]] = [
        {"request": k, "batch": batch, "worker": 0, "entry": "any-width", "members": 1, "charged": charged,
         "start": start, "end": start + 45.0, "cause": cause, "part": part}
        for k in (40, 41)
        for batch, start, charged in ((38, -12.0, 33.0), (39, 33.0, 45.0))
        for cause, part in (("useful", 12.0), ("cold", 33.0))
    ]  # fmt: skip
    waits: list[dict[str, Cell]] = [
        {"start": start, "requests": 30, "hold_mean": 0.0, "hold_p95": 0.0, "busy_mean": 4.5, "busy_p95": 31.0}
        for start in (0.0, 21.0)
    ]
    bands: list[dict[str, Cell]] = [{"band": band, "cause": "cold"} for band in ("24–284", "297–544", "557–791")]
    served: list[dict[str, Cell]] = [
        {"t": 0.7 * k, "end": 0.7 * k + 0.7, "worker": 0, "stream": f"client-{k % 3 + 1}", "size": 24 + 13 * k,
         "busy": 0.4, "waiting": 2.0 if k in SLOW else 0.0}
        for k in range(60)
    ]  # fmt: skip
    note = "6 of the 6 requests of the p95 set, the slowest; 54 of the 54 others that ended"
    return (
        series("requests.shown", shown, artifact, note=note),
        series("requests.parts", parts, artifact, note=note),
        series("requests.stories", stories, artifact, note=note),
        series("requests.front", front, artifact, note=note),
        series("requests.served", served, artifact),
        series("queue.waits", waits, artifact),
        series("tail.p95.by_band", bands, artifact),
    )
