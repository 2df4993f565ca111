"""Conditions are applied for real, to both arms alike, and become cells of the matrix. Null backend: plumbing only."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from loop_kit import STUDY, Silent, need_two_cores, write_study
from msgspec.structs import replace

from trimtab.domain.study import Condition
from trimtab.domain.trace import Trace
from trimtab.loop import conditions, runs
from trimtab.loop.context import Context
from trimtab.loop.loop import run_until
from trimtab.store.packet import Packet
from trimtab.store.study import load_study

pytestmark = pytest.mark.slow

KINDS = (
    "higher load",
    "one core less",
    "CPU neighbour",
    "memory neighbour",
    "cold start",
    "drifted shapes",
    "later traffic",
    "second trace",
)
SECOND = """arrivals = { file = "second.csv", time = "s" }
shapes = { dims = { width = "w" } }
"""
TEXT = (
    STUDY.replace("replays = 2", "replays = 1")
    + "".join(f'[[conditions]]\nkind = "{kind}"\n' for kind in KINDS)
    + SECOND
)


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Context:
    """The baseline as recorded on the held-out slice, and under every condition."""
    need_two_cores()
    folder = tmp_path_factory.mktemp("conditions")
    path, out = write_study(folder, TEXT, requests=2500), folder / "packet"
    rows = [f"{0.01 * i:.2f},{1 + i % 7}" for i in range(800)]
    (folder / "second.csv").write_text("\n".join(["s,w", *rows]) + "\n")
    run_until(path, "compile", out=out, budget=None, fresh=False, progress=Silent())
    ctx = Context(study=load_study(path), folder=folder, packet=Packet(out), budget_s=60.0, progress=Silent())
    plans = [ctx.study.baseline]
    runs.in_turn(ctx, plans, ctx.slice("held-out"), 1, label="held-out", stage="validate")
    assert [kind for kind, _ in conditions.replays(ctx, plans)] == [kind for kind in KINDS if kind != "one core less"]
    return ctx


@pytest.fixture(scope="module")
def packet(context: Context) -> Path:
    return context.packet.folder


def run(packet: Path, label: str) -> Trace:
    return Packet(packet).read_trace(f"{label}-today-1")


def test_what_cannot_be_applied_here_says_why(context: Context) -> None:
    assert conditions.refused(context) == {
        "one core less": "the baseline has one worker, and nothing can be taken from it"
    }


def test_a_second_time_nothing_is_replayed(context: Context) -> None:
    before = {path: path.stat().st_mtime_ns for path in (context.packet.folder / "traces").rglob("*.parquet")}
    for _, found in conditions.replays(context, [context.study.baseline]):
        assert [trace.run.complete for trace in found["today"]] == [True]
    assert {path: path.stat().st_mtime_ns for path in (context.packet.folder / "traces").rglob("*.parquet")} == before


def test_a_higher_load_has_the_same_requests_closer_together(packet: Path) -> None:
    held, dense = run(packet, "held-out"), run(packet, "higher-load")
    assert np.array_equal(dense.requests["scheduled"], np.rint(held.requests["scheduled"] / 1.2).astype(np.int64))
    assert np.array_equal(dense.requests["dim.width"], held.requests["dim.width"])


def test_drifted_shapes_come_from_the_larger_half_at_the_same_times(packet: Path) -> None:
    held, drifted = run(packet, "held-out"), run(packet, "drifted-shapes")
    middle = np.quantile(held.requests["dim.width"], 0.5, method="inverted_cdf")
    assert drifted.requests["dim.width"].min() > middle
    assert np.array_equal(drifted.requests["scheduled"], held.requests["scheduled"])


def test_a_drifted_request_keeps_the_deadline_of_its_stream(context: Context) -> None:
    load = context.workload.take(context.slice("held-out"))
    by_stream = replace(load, deadline=load.stream.astype(np.int64) * 1_000)
    drifted = conditions.apply(context, Condition(kind="drifted shapes")).setting.load(by_stream)
    assert np.array_equal(drifted.deadline, drifted.stream * 1_000)
    assert not np.array_equal(drifted.stream, load.stream)


def test_a_cold_start_warms_nothing_and_later_traffic_ends_the_trace(packet: Path) -> None:
    workload = Packet(packet).read_workload()
    later = run(packet, "later-traffic").requests
    assert later["dim.width"].tolist() == workload.dims[-len(later) :, 0].tolist()
    for label in ("cold-start", "cpu-neighbour", "memory-neighbour"):
        assert run(packet, label).run.start_state != run(packet, "held-out").run.start_state
    assert "nothing is warmed" in run(packet, "cold-start").run.start_state
    assert "computes on core 1" in run(packet, "cpu-neighbour").run.start_state


def test_a_second_trace_is_served_from_its_start_at_the_rate_of_the_study(packet: Path) -> None:
    held, second = run(packet, "held-out"), run(packet, "second-trace")
    n = len(held.requests)
    assert second.requests["dim.width"].tolist() == [1 + i % 7 for i in range(n)]
    assert np.diff(second.requests["scheduled"]).tolist() == [4_000_000] * (n - 1)
    assert f"{n} requests of a second trace, second.csv, sha256 " in second.run.start_state


def test_runs_under_a_condition_are_not_taken_for_runs_as_recorded(packet: Path) -> None:
    shas = {label: run(packet, label).run.workload_sha256 for label in ("held-out", "higher-load", "drifted-shapes")}
    assert len(set(shas.values())) == 3
