"""MLPerf LoadGen and trimtab's replay on the same arrivals, the same network, one worker: do their latencies agree?

LoadGen (`pip install mlcommons-loadgen==6.0.17`) drives the line recogniser on ONNX Runtime in its Server scenario:
Poisson arrivals at ``--rate``, widths of the receipts' lines drawn by its own seeds, first come, first served. It
drives two systems:

session   one session in one thread on the worker's core: nothing but the network
worker    trimtab's own worker process, which also assembles batches, reads the kernel's counters around every run and
          checks every output

Then trimtab replays exactly the times that LoadGen's trace says were scheduled, with the widths that it asked for in
that order, on one worker. LoadGen and our driver have the same other core. All three are repeated ``--repeats`` times,
in turn, every round in the other direction; every repeat starts processes of its own. Latency counts from the scheduled
time everywhere. *A/A* = largest over smallest of a side's repeats, less 1. Replay and LoadGen agree where, on the same
worker, their medians differ by no more than the larger A/A; against the bare session stands what our worker adds.

    python bench/loadgen.py [--seconds 15] [--rate 45] [--repeats 3] [--out out/loadgen] [--page docs/benchmarks.md]
"""

from __future__ import annotations

import argparse
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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
from trimtab.domain.profile import CompileFailure, CompileOptions
from trimtab.domain.workload import Workload
from trimtab.evidence.stats.quantiles import quantile
from trimtab.mapping.cost import CostModel
from trimtab.readers import loadgen_trace
from trimtab.runtime import wire
from trimtab.runtime.solo import solo
from trimtab.runtime.worker import Job
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
SIDES = ("session", "worker", "replay")
Run = Callable[[int], None]
"""Answers one sample, by its number."""


# --- LoadGen's side, in a process of its own ------------------------------------------------------------------------


class Served:
    """A queue before one thread that answers; says when each sample is done. ``system`` is opened in that thread."""

    def __init__(self, system: Callable[[], Any], lg: Any) -> None:
        self._system, self._lg = system, lg
        self._waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._ready = threading.Event()
        self.issued: list[int] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        if not self._ready.wait(PATIENCE_S):
            raise SystemExit("the system under test does not start")

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
        with self._system() as run:
            self._ready.set()
            while (asked := self._waiting.get()) is not None:
                number, index = asked
                run(index)
                self._lg.QuerySamplesComplete([self._lg.QuerySampleResponse(number, 0, 0)])


class Systems:
    """What LoadGen may drive; ``members`` are the samples: payload and dims."""

    def __init__(self, rig: Rig, sample: Workload) -> None:
        self._rig = rig
        self._members = list(zip(sample.payload.tolist(), map(tuple, sample.dims.tolist()), strict=True))
        self._entry = Entry(id=ANY, kind="dynamic", lo=(rig.low,), hi=(rig.high,))
        self._backend = backends.factory("onnxruntime")

    @contextmanager
    def session(self) -> Iterator[Run]:
        """The session that our worker makes of the same entry, in this thread."""
        os.sched_setaffinity(0, {WORKER})
        made = self._backend().compile(self._rig.model, self._entry, CompileOptions())
        if isinstance(made, CompileFailure):
            raise SystemExit(f"{made.kind}: {made.message}")
        inputs = [self._rig.payloads.request(payload, dims) for payload, dims in self._members]
        yield lambda index: made.run(inputs[index]) and None

    @contextmanager
    def worker(self) -> Iterator[Run]:
        """Our worker process, asked one request at a time."""
        with solo(Job(self._backend, self._rig.model, self._rig.payloads), WORKER) as worker:
            worker.ask(wire.Load(tuple(self._members)), PATIENCE_S)
            worker.ask(wire.Compile(self._entry, CompileOptions(), ()), PATIENCE_S)

            def run(index: int) -> None:
                member = self._members[index]
                reply = worker.ask(wire.Run(index, ANY, (1, *member[1]), (member,)))
                if not isinstance(reply, wire.Ran) or reply.error != "none":
                    raise SystemExit(f"sample {index}: {reply}")

            yield run


def serve_loadgen(folder: Path, side: str, rate: float, seconds: float) -> None:
    """One run of LoadGen; its logs and the order of what it issued end up in ``folder``."""
    import mlperf_loadgen as lg

    rig = Rig(STUDY, folder)
    served = Served(getattr(Systems(rig, rig.traffic(SAMPLES, rate)), side), lg)
    os.sched_setaffinity(0, {DRIVER})  # this thread, and those that LoadGen starts
    settings = lg.TestSettings()
    settings.scenario, settings.mode = lg.TestScenario.Server, lg.TestMode.PerformanceOnly
    settings.server_target_qps, settings.server_target_latency_ns = rate, round(1e9)
    settings.min_query_count, settings.min_duration_ms = 100, round(seconds * 1000)
    settings.qsl_rng_seed = settings.sample_index_rng_seed = settings.schedule_rng_seed = SEED
    logs = lg.LogSettings()
    logs.enable_trace, logs.log_output.outdir = True, str(folder)
    sut = lg.ConstructSUT(served.issue, lambda: None)
    qsl = lg.ConstructQSL(SAMPLES, SAMPLES, lambda _: None, lambda _: None)
    lg.StartTestWithLogSettings(sut, qsl, settings, logs)
    lg.DestroyQSL(qsl)
    lg.DestroySUT(sut)
    served.stop()
    write_json(folder / ISSUED, served.issued)


# --- all sides ------------------------------------------------------------------------------------------------------


class Drawn(NamedTuple):
    """What a run of LoadGen asked for, in order: when (ns from the first), and which sample."""

    due: NDArray[np.int64]
    samples: NDArray[np.int64]


def loadgen(folder: Path, side: str, rate: float, seconds: float) -> tuple[NDArray[np.float64], Drawn]:
    """LoadGen's own latencies, s, and its arrivals: kept, or measured now."""
    if not (folder / ISSUED).exists():
        folder.mkdir(parents=True, exist_ok=True)
        asked = ("--alone", str(folder), "--side", side, "--rate", str(rate), "--seconds", str(seconds))
        subprocess.run([sys.executable, __file__, *asked], check=True, timeout=PATIENCE_S)
    trace, _ = loadgen_trace.read(folder / TRACE, True)
    drawn = Drawn(trace.trace.requests["scheduled"], np.array(read_json(folder / ISSUED, list[int])))
    if drawn.due.size != drawn.samples.size:
        raise SystemExit(f"{folder}: {drawn.due.size} samples in the trace, {drawn.samples.size} were issued")
    return trace.trace.latency, drawn


def asked_for(sample: Workload, drawn: Drawn) -> Workload:
    """LoadGen's arrivals as a workload."""
    at = drawn.samples
    return replace(
        sample, id="loadgen", scheduled=drawn.due, dims=sample.dims[at], payload=sample.payload[at],
        stream=sample.stream[at], deadline=sample.deadline[at],
    )  # fmt: skip


def replayed(rig: Rig, load: Workload, number: int) -> NDArray[np.float64]:
    """Latencies of our replay of the same times, s."""
    return rig.replay(rig.plan(load, "onnxruntime", 0), load, CostModel.from_profiles(()), number).trace.latency


def measure(rig: Rig, rate: float, seconds: float, repeats: int) -> tuple[dict[str, list[NDArray[np.float64]]], int]:
    """Latencies of each side's repeats, and the number of requests."""
    sample, found = rig.traffic(SAMPLES, rate), {side: list[NDArray[np.float64]]() for side in SIDES}
    load: Workload | None = None
    for number, turn in in_turn(len(SIDES), repeats):
        side = SIDES[number]
        if side == "replay":
            assert load is not None, "LoadGen comes first"
            found[side].append(replayed(rig, load, turn))
        else:
            latency, drawn = loadgen(rig.out / f"{side}-{rate:g}-{seconds:g}-{turn}", side, rate, seconds)
            load = load or asked_for(sample, drawn)
            if not np.array_equal(load.dims, sample.dims[drawn.samples]):
                raise SystemExit("LoadGen's seeds do not repeat its samples")
            found[side].append(latency)
        print(f"{side}, {turn} of {repeats}", flush=True)
    assert load is not None
    return found, len(load)


NAMES = {
    "session": "LoadGen, a bare session",
    "worker": "LoadGen, trimtab's worker",
    "replay": "trimtab's replay",
}


def tables(found: dict[str, list[NDArray[np.float64]]], requests: int, rate: float) -> str:
    """Percentiles of each repeat, and whether the sides agree."""
    at = {s: {q: [quantile(one, q) * 1e3 for one in runs] for q in PERCENTILES} for s, runs in found.items()}
    body = [
        (NAMES[s], *(f"{median(values):.2f} ({', '.join(f'{v:.2f}' for v in values)})" for values in each.values()))
        for s, each in at.items()
    ]
    words = []
    for q in JUDGED:
        apart = median(at["replay"][q]) / median(at["worker"][q]) - 1
        added = median(at["replay"][q]) - median(at["session"][q])
        spread = max(max(at[s][q]) / min(at[s][q]) - 1 for s in ("worker", "replay"))
        verdict = "agree" if abs(apart) <= spread else "do NOT agree"
        words.append(
            f"- p{q * 100:g}: the replay against LoadGen on the same worker {percent(apart)}, A/A {spread:.1%}: they "
            f"{verdict}. Against the bare session: {added:+.2f} ms."
        )
    head = ("", *(f"p{q * 100:g}, ms: median (each repeat)" for q in PERCENTILES))
    facts = f"{requests} requests at {rate:g} requests/s in LoadGen's Server scenario, ONNX Runtime, one worker."
    return f"{facts}\n\n{table(head, body)}\n\n" + "\n".join(words)


def main(argv: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--rate", type=float, default=45.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "loadgen")
    parser.add_argument("--page", type=Path, help="write the table into this page's section")
    parser.add_argument("--alone", type=Path, help="(its own use) one run of LoadGen into this folder")
    parser.add_argument("--side", choices=SIDES[:2], default="session", help="(its own use) what that run drives")
    given = parser.parse_args(argv)
    if given.alone:
        serve_loadgen(given.alone, given.side, given.rate, given.seconds)
        return
    found, requests = measure(Rig(STUDY, given.out), given.rate, given.seconds, given.repeats)
    command = f"python bench/loadgen.py {' '.join(argv)}".strip()
    told(f"{tables(found, requests, given.rate)}\n\n{stamp(command)}", "loadgen", given.page)


if __name__ == "__main__":
    main(sys.argv[1:])
