"""The slow requests one by one: which are kept, what each owes to what, and who was in front."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from account_cases import Formula, Scene, simulate
from msgspec.structs import replace

from trimtab.domain.figure import Findings
from trimtab.domain.trace import Table
from trimtab.evidence.attribute import slowest
from trimtab.evidence.attribute.account import build, findings

MS = 1_000_000


def found(requests: int = 100) -> Findings:
    """One worker, 8 ms of work every 10 ms, one stall of 100 ms at request 40: its backlog drains by 2 ms a request."""
    off_core = np.zeros(requests, dtype=np.int64)
    off_core[40] = 100 * MS
    scene = Scene(
        arrivals=np.arange(requests, dtype=np.int64) * 10 * MS,
        dims=np.full(requests, 7, dtype=np.int64),
        off_core=off_core,
        reference=Formula(fixed=8 * MS, slope=0),
    )
    trace = simulate(scene)
    return findings(build(trace, scene.promise, scene.reference, "reference", scene.plan, scene.by_entry), trace)


def rows(found: Findings, name: str, **where: Any) -> list[dict[str, Any]]:
    table = found.table(name)
    assert table is not None, name
    every = [dict(zip(table.columns, cells, strict=True)) for cells in zip(*table.columns.values(), strict=True)]
    return [row for row in every if all(row[key] == value for key, value in where.items())]


def test_each_slow_request_stands_at_its_time_size_and_cause() -> None:
    tail = rows(found(), "requests.shown", tail=True)
    assert [(row["request"], row["t"], row["latency"], row["cause"]) for row in tail] == [
        (40, 0.40, 108, "off_core"),
        (41, 0.41, 106, "off_core"),
        (42, 0.42, 104, "off_core"),
        (43, 0.43, 102, "off_core"),
        (44, 0.44, 100, "off_core"),
        (45, 0.45, 98, "off_core"),
    ]
    assert {row["size"] for row in tail} == {7}
    assert len(rows(found(), "requests.shown")) == 100


def test_its_parts_sum_to_its_latency() -> None:
    parts = rows(found(), "requests.parts", request=42)
    assert [(row["cause"], row["own"], row["inherited"]) for row in parts] == [
        ("off_core", 0, pytest.approx(96)),
        ("useful", 8, 0),
    ]


def test_the_story_of_the_third_names_the_stalled_batch_and_the_one_behind_it() -> None:
    told = rows(found(), "requests.stories", request=42)[0]
    assert (told["latency"], told["waited"], told["blockers"]) == (104, 96, 2)
    assert (told["enqueued"], told["started"], told["done"]) == (0, 96, 104)
    front = rows(found(), "requests.front", request=42)
    # request 40 began at 400 ms and ran 108 ms, 41 ran 8 ms after it; request 42 came at 420 ms
    assert [(row["batch"], row["start"], row["end"], row["charged"], row["cause"], row["part"]) for row in front] == [
        (40, -20, 88, 88, "useful", 8),
        (40, -20, 88, 88, "off_core", 100),
        (41, 88, 96, 8, "useful", 8),
    ]


def test_a_long_run_is_thinned_and_says_of_what(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, most in (("TAIL", 4), ("OTHERS", 20), ("STORIES", 2), ("FRONT", 1)):
        monkeypatch.setattr(slowest, name, most)
    kept = found()
    table = kept.table("requests.shown")
    assert table is not None
    assert table.note == "4 of the 6 requests of the p95 set, the slowest; 19 of the 94 others that ended"
    assert [row["request"] for row in rows(kept, "requests.shown", tail=True)] == [40, 41, 42, 43]
    assert [row["request"] for row in rows(kept, "requests.stories")] == [40, 41]
    assert {row["batch"] for row in rows(kept, "requests.front", request=41)} == {40}


def test_without_a_request_that_ended_there_is_nothing_to_show() -> None:
    scene = Scene(arrivals=np.zeros(3, dtype=np.int64), dims=np.ones(3, dtype=np.int64))
    trace = simulate(scene)
    columns = trace.requests.columns | {"error": np.ones(3, dtype=np.int8), "done": np.full(3, -1)}
    lost = replace(trace, requests=Table(columns))
    account = build(lost, scene.promise, scene.reference, "reference", scene.plan, scene.by_entry)
    assert findings(account, lost).table("requests.shown") is None
