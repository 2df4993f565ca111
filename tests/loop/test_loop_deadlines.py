"""Deadlines of streams: a study that gives them can try the order that serves by them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from loop_kit import STUDY, Silent, need_two_cores, write_study

from trimtab.domain.verdict import Move
from trimtab.errors import DataError
from trimtab.loop import compiling, runs
from trimtab.loop.context import TUNE, Context
from trimtab.loop.loop import run_until
from trimtab.store.packet import Packet
from trimtab.store.study import load_study

OWN = "deadlines_ms = { client-0 = 5.0, client-1 = 400.0 }"
TEXT = STUDY.replace("rate = 250.0", f"rate = 250.0\n{OWN}").replace("buckets = [2]", 'orders = ["deadline"]')


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Context:
    """Profiled: the null backend serves it at four fifths of what the worker can do."""
    need_two_cores()
    folder = tmp_path_factory.mktemp("deadlines")
    text = TEXT.replace('base_us = "300"', 'base_us = "2900"')
    path, out = write_study(folder, text, requests=1200), folder / "packet"
    run_until(path, "compile", out=out, budget=None, fresh=False, progress=Silent())
    return Context(study=load_study(path), folder=folder, packet=Packet(out), budget_s=60.0, progress=Silent())


def by_deadline(context: Context) -> Move:
    return next(move for move in compiling.candidates(context).moves if move.kind == "order")


def test_the_order_is_offered_and_who_has_less_time_waits_less(context: Context) -> None:
    tune = context.workload.take(context.slice(TUNE))
    waits = []
    for plan in (context.study.baseline, by_deadline(context).plan):
        trace = runs.simulated(context, plan, tune, TUNE, f"order-{plan.serve.order}", 1)
        wait = trace.requests["started"] - trace.requests["scheduled"]
        streams = np.array(trace.streams)[trace.requests["stream"]]
        waits.append([float(wait[streams == name].mean()) for name in ("client-0", "client-1", "client-2")])
    fifo, deadline = waits
    assert deadline[0] < fifo[0]
    assert deadline[0] < deadline[1] < deadline[2]  # client-2 has none, and goes last


def test_a_deadline_of_a_stream_that_is_not_there_stops_the_study(tmp_path: Path) -> None:
    path = write_study(tmp_path, TEXT.replace("client-1 =", "client-9 ="), requests=300)
    with pytest.raises(DataError, match="there is no stream 'client-9'"):
        run_until(path, "workload", out=tmp_path / "packet", budget=None, fresh=False, progress=Silent())
