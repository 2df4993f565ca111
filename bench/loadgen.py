"""MLPerf LoadGen and trimtab's replay on the same arrivals, the same network, one worker: do their latencies agree?

LoadGen (`pip install mlcommons-loadgen==6.0.17`) drives the line recogniser in its Server scenario: Poisson arrivals
at ``--rate``, widths of the receipts' lines drawn by its own seeds. The system under test is one ONNX Runtime session
in one thread on the worker's core, first come, first served; LoadGen has the driver's core. Then trimtab replays
exactly the times that LoadGen's trace says were scheduled, with the widths that it asked for in that order, on one
worker that holds the same session. Both are repeated ``--repeats`` times, in turn, every round in the other direction;
each repeat of LoadGen is a process of its own, as each of our workers is.

Latency counts from the scheduled time on both sides. *A/A* = largest over smallest of a side's repeats, less 1. They
agree where the medians differ by no more than the larger A/A.

The harness does more for each request than LoadGen's side here: it checks every output, reads the kernel's counters
around every run, and talks to another process. That is its *handling* of a request, and inside its latency. The last
row takes each request's own handling away; those that queued behind it waited for it all the same.

    python bench/loadgen.py [--seconds 20] [--rate 45] [--repeats 3] [--out out/loadgen] [--page docs/benchmarks.md]
"""

from __future__ import annotations

import argparse
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from marked import percent, stamp, table, told
from msgspec.structs import replace
from numpy.typing import NDArray
from rig import ANY, DRIVER, WORKER, Rig, in_turn

from trimtab import backends
from trimtab.domain.plan import Entry
from trimtab.domain.ports import CompiledEntry
from trimtab.domain.profile import CompileFailure, CompileOptions
from trimtab.domain.workload import Workload
from trimtab.evidence.stats.quantiles import quantile
from trimtab.mapping.cost import CostModel
from trimtab.readers import loadgen_trace
from trimtab.store.codec import read_json, write_json

ROOT = Path(__file__).parents[1]
STUDY = ROOT / "examples" / "ocr" / "study.toml"
TRACE, ISSUED = "mlperf_log_trace.json", "issued.json"
SAMPLES = 400
"""Requests of the recorded traffic that LoadGen draws from."""
SEED = 7
PERCENTILES = (0.5, 0.9, 0.99)
JUDGED = (0.5, 0.99)
PATIENCE_S = 600


class Side(NamedTuple):
    """Latency of every request, and what the harness takes of it beside the run, s (LoadGen does not say: 0)."""

    latency: NDArray[np.float64]
    handling: NDArray[np.float64]


# --- LoadGen's side, in a process of its own ------------------------------------------------------------------------


class Session:
    """One compiled session behind one thread on the worker's core; says when each sample is done."""

    def __init__(self, entry: CompiledEntry, inputs: Sequence[Any], lg: Any) -> None:
        self._entry, self._inputs, self._lg = entry, inputs, lg
        self._waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.issued: list[int] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def issue(self, samples: Sequence[Any]) -> None:
        """Called by LoadGen at the scheduled time."""
        for sample in samples:
            self.issued.append(sample.index)
            self._waiting.put((sample.id, sample.index))

    def stop(self) -> None:
        """End the thread."""
        self._waiting.put(None)
        self._thread.join()

    def _serve(self) -> None:
        os.sched_setaffinity(0, {WORKER})
        while (asked := self._waiting.get()) is not None:
            number, index = asked
            self._entry.run(self._inputs[index])
            self._lg.QuerySamplesComplete([self._lg.QuerySampleResponse(number, 0, 0)])


def serve_loadgen(folder: Path, rate: float, seconds: float) -> None:
    """One run of LoadGen; its logs and the order of what it issued end up in ``folder``."""
    import mlperf_loadgen as lg

    os.sched_setaffinity(0, {DRIVER})
    rig = Rig(STUDY, folder)
    sample = rig.traffic(SAMPLES, rate)
    members = zip(sample.payload.tolist(), map(tuple, sample.dims.tolist()), strict=True)
    inputs = [rig.payloads.request(payload, dims) for payload, dims in members]
    session = Session(_compiled(rig), inputs, lg)
    settings = lg.TestSettings()
    settings.scenario, settings.mode = lg.TestScenario.Server, lg.TestMode.PerformanceOnly
    settings.server_target_qps, settings.server_target_latency_ns = rate, round(1e9)
    settings.min_query_count, settings.min_duration_ms = 100, round(seconds * 1000)
    settings.qsl_rng_seed = settings.sample_index_rng_seed = settings.schedule_rng_seed = SEED
    logs = lg.LogSettings()
    logs.enable_trace, logs.log_output.outdir = True, str(folder)
    sut = lg.ConstructSUT(session.issue, lambda: None)
    qsl = lg.ConstructQSL(SAMPLES, SAMPLES, lambda _: None, lambda _: None)
    lg.StartTestWithLogSettings(sut, qsl, settings, logs)
    lg.DestroyQSL(qsl)
    lg.DestroySUT(sut)
    session.stop()
    write_json(folder / ISSUED, session.issued)


def _compiled(rig: Rig) -> CompiledEntry:
    """The session that our worker makes of the same entry."""
    entry = Entry(id=ANY, kind="dynamic", lo=(rig.low,), hi=(rig.high,))
    made = backends.factory("onnxruntime")().compile(rig.model, entry, CompileOptions())
    if isinstance(made, CompileFailure):
        raise SystemExit(f"{made.kind}: {made.message}")
    return made


# --- both sides -----------------------------------------------------------------------------------------------------


def loadgen(folder: Path, rate: float, seconds: float) -> Side:
    """LoadGen's own latencies: kept, or measured now."""
    if not (folder / ISSUED).exists():
        folder.mkdir(parents=True, exist_ok=True)
        asked = ("--alone", str(folder), "--rate", str(rate), "--seconds", str(seconds))
        subprocess.run([sys.executable, __file__, *asked], check=True, timeout=PATIENCE_S)
    latency = loadgen_trace.read(folder / TRACE, True)[0].trace.latency
    return Side(latency, np.zeros_like(latency))


def scheduled(rig: Rig, folder: Path, rate: float) -> Workload:
    """What a run of LoadGen asked for: its times, in order, with the requests that it drew."""
    due = loadgen_trace.read(folder / TRACE, True)[0].trace.requests["scheduled"]
    drawn = np.array(read_json(folder / ISSUED, list[int]))
    if due.size != drawn.size:
        raise SystemExit(f"{folder}: {due.size} samples in the trace, {drawn.size} were issued")
    sample = rig.traffic(SAMPLES, rate)
    return replace(
        sample, id="loadgen", scheduled=due, dims=sample.dims[drawn], payload=sample.payload[drawn],
        stream=sample.stream[drawn], deadline=sample.deadline[drawn],
    )  # fmt: skip


def ours(rig: Rig, load: Workload, number: int) -> Side:
    """Our replay of the same times."""
    plan = rig.plan(load, "onnxruntime", 0)
    trace = rig.replay(plan, load, CostModel.from_profiles(()), number).trace
    at = trace.requests
    around = (at["done"] - at["dispatched"]) - (at["ended"] - at["started"])
    return Side(trace.latency, around / 1e9)


def tables(sides: dict[str, list[Side]], load: Workload, rate: float) -> str:
    """Percentiles of each repeat, and whether the sides agree."""
    found = {name: _percentiles([side.latency for side in repeats]) for name, repeats in sides.items()}
    theirs, mine = found.values()
    found["trimtab, without its own handling"] = _percentiles([s.latency - s.handling for s in sides["trimtab"]])
    body = [
        (name, *(f"{median(values):.2f} ({', '.join(f'{v:.2f}' for v in values)})" for values in at.values()))
        for name, at in found.items()
    ]
    words = []
    for q in JUDGED:
        apart = median(mine[q]) / median(theirs[q]) - 1
        spread = max(max(side[q]) / min(side[q]) - 1 for side in (theirs, mine))
        verdict = "agree" if abs(apart) <= spread else "do NOT agree"
        words.append(f"p{q * 100:g}: ours against LoadGen's {percent(apart)}, A/A {spread:.1%}: they {verdict}")
    handling = np.mean([side.handling.mean() for side in sides["trimtab"]]) * 1e3
    head = ("", *(f"p{q * 100:g}, ms: median (each repeat)" for q in PERCENTILES))
    facts = (
        f"{len(load)} requests at {rate:g} requests/s in LoadGen's Server scenario, ONNX Runtime, one worker. "
        f"Handling of a request by the replay, {handling:.2f} ms on average, is inside its latency."
    )
    return f"{facts}\n\n{table(head, body)}\n\n{'; '.join(words)}."


def _percentiles(repeats: Sequence[NDArray[np.float64]]) -> dict[float, list[float]]:
    return {q: [quantile(latency, q) * 1e3 for latency in repeats] for q in PERCENTILES}


def main(argv: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rate", type=float, default=45.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "loadgen")
    parser.add_argument("--page", type=Path, help="write the table into this page's section")
    parser.add_argument("--alone", type=Path, help="(its own use) one run of LoadGen into this folder")
    given = parser.parse_args(argv)
    if given.alone:
        serve_loadgen(given.alone, given.rate, given.seconds)
        return
    rig = Rig(STUDY, given.out)
    runs = given.out / f"loadgen-{given.rate:g}-{given.seconds:g}"
    sides: dict[str, list[Side]] = {"LoadGen": [], "trimtab": []}
    load = None
    for number, turn in in_turn(2, given.repeats):
        if number == 0:
            sides["LoadGen"].append(loadgen(runs / str(turn), given.rate, given.seconds))
            load = load or scheduled(rig, runs / str(turn), given.rate)
        else:
            assert load is not None, "LoadGen comes first"
            sides["trimtab"].append(ours(rig, load, turn))
        print(f"{('LoadGen', 'trimtab')[number]}, {turn} of {given.repeats}", flush=True)
    assert load is not None
    command = f"python bench/loadgen.py {' '.join(argv)}".strip()
    told(f"{tables(sides, load, given.rate)}\n\n{stamp(command)}", "loadgen", given.page)


if __name__ == "__main__":
    main(sys.argv[1:])
