"""An example's network with its recorded traffic, on this machine: profiles and replays, and the product's simulation.

What was measured is kept in a folder, under the digest of all that it depends on, and found there again: a bench that
was ended goes on where it stopped. Profiles, replays and simulations are made as ``trimtab run`` makes them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from trimtab import backends
from trimtab.domain.noun import Noun
from trimtab.domain.plan import BatchPolicy, CompileSpec, Entry, Plan, ServePolicy
from trimtab.domain.profile import CompileFailure, CompileProfile
from trimtab.domain.trace import RunInfo, Source, Trace
from trimtab.domain.workload import Slice, Workload
from trimtab.loop.compiling import bucket_cost
from trimtab.loop.context import profile_digest
from trimtab.mapping import buckets
from trimtab.mapping.cost import CostModel
from trimtab.mapping.route import Router
from trimtab.mapping.service import ProfileService
from trimtab.readers.payload import payloads_of
from trimtab.readers.traffic import read_workload
from trimtab.runtime.grid import AGAIN, NEW_SHAPES, grid, prelude
from trimtab.runtime.profile import profile_plan
from trimtab.runtime.replay import ReplayRequest, replay
from trimtab.serving.simulate import simulate
from trimtab.store.codec import digest, read_json, read_trace, workload_digest, write_json, write_trace
from trimtab.store.study import load_study, resolve_model

DRIVER, WORKER = 0, 1
HANG_S = 30.0
ANY = "any"
SINGLE = BatchPolicy()


class KeptProfile(Noun, frozen=True, kw_only=True):
    """``seconds``: how long compiling and profiling kept the machine."""

    profiles: tuple[CompileProfile, ...]
    seconds: float


class KeptRun(Noun, frozen=True, kw_only=True):
    """``seconds``: how long a replay kept the machine, the start of its worker included."""

    seconds: float


class Replayed(NamedTuple):
    trace: Trace
    seconds: float


class Rig:
    """One study's network and traffic. ``out``: where measurements are kept; ``repeats``: of a profile's grid."""

    def __init__(self, study_file: Path, out: Path, repeats: int = 8) -> None:
        folder, self._repeats = study_file.parent, repeats
        self.study, self.out = load_study(study_file), out
        self.model = resolve_model(self.study, folder)
        self.payloads = payloads_of(self.study, folder)
        self.whole = read_workload(self.study, folder)
        ((self.low, self.high),) = ((dim.lo, dim.hi) for dim in self.study.dims.values())
        self._fed = (self.model.sha256, self.study.workload.payload, self.study.seeds.payload)

    # --- traffic ------------------------------------------------------------------------------------------------

    def traffic(self, requests: int, rate: float, start: int = 0) -> Workload:
        """``requests`` requests from number ``start`` on: shapes and order as recorded, gaps in proportion, ``rate`` a
        second on average."""
        part = self.whole.take(Slice(name="bench", start=start, stop=start + requests))
        times = part.scheduled * ((requests - 1) / rate * 1e9 / part.span)
        return replace(part, scheduled=np.rint(times).astype(np.int64))

    # --- plans --------------------------------------------------------------------------------------------------

    def plan(self, seen: Workload, backend: str, count: int, batch: BatchPolicy = SINGLE, order: str = "fifo") -> Plan:
        """``count`` entries fitted to ``seen`` (0 = none) beside one dynamic entry, every batch size of them warmed."""
        most = batch.max_size
        anything = Entry(id=ANY, kind="dynamic", lo=(self.low,), hi=(self.high,), batch=(1, most))
        ends = self._ends(seen, count) if count else ()
        fitted = tuple(Entry(id=f"to-{end}", kind="bucket", lo=(self.low,), hi=(end,), batch=(1, most)) for end in ends)
        words = [backend, f"{count}-entries" if count else "dynamic"]
        words += [f"batch-{most}-hold-{batch.hold_ms:g}ms"] if most > 1 else []
        words += [order] if order != "fifo" else []
        warm = tuple((size, end) for end in ends for size in range(1, most + 1))
        return Plan(
            id="-".join(words),
            compile=CompileSpec(backend=backend, entries=(*fitted, anything), fallback=ANY),
            serve=ServePolicy(batch=batch, order=order, warm=warm),
        )

    def _ends(self, seen: Workload, count: int) -> tuple[int, ...]:
        """Fitted to the measured times of one dynamic OpenVINO entry, as the product fits to its reference."""
        known = self.costs(self.plan(seen, "openvino", 0), seen)
        return buckets.fit(seen.dims, bucket_cost(known, ANY), count, limit=self.high)

    # --- what is known beforehand -------------------------------------------------------------------------------

    def profile(self, plan: Plan, seen: Workload, number: int = 1) -> KeptProfile:
        """The profile ``number`` of the plan's entries on the shapes of ``seen``; plans that compile alike share it."""
        inputs = (
            profile_digest(plan),
            workload_digest(seen),
            self._repeats,
            NEW_SHAPES,
            AGAIN,
            self._versions(plan),
        )
        path = self.out / "profiles" / f"{digest((*inputs, self._fed))[:16]}-{number}.json"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path, self._profiled(plan, seen))
        return read_json(path, KeptProfile)

    def costs(self, plan: Plan, seen: Workload, number: int = 1) -> CostModel:
        """Its service times, from that profile."""
        return CostModel.from_profiles(self.profile(plan, seen, number).profiles, plan.compile.entries)

    def _profiled(self, plan: Plan, seen: Workload) -> KeptProfile:
        began, points = time.monotonic(), grid(seen, plan, self.study.budget.profile_points)
        found = profile_plan(
            plan, self.model, backends.factory(plan.compile.backend), self.payloads, points, self._repeats,
            WORKER, prelude=prelude(seen, plan),
        )  # fmt: skip
        failed = [one for one in found if isinstance(one, CompileFailure)]
        if failed:
            raise SystemExit(f"{plan.id}: {failed[0].kind}: {failed[0].message}")
        profiles = tuple(one for one in found if isinstance(one, CompileProfile))
        return KeptProfile(profiles=profiles, seconds=time.monotonic() - began)

    # --- runs ---------------------------------------------------------------------------------------------------

    def simulate(self, plan: Plan, load: Workload, costs: CostModel, seed: int) -> Trace:
        """``load`` under the virtual clock, service times drawn from ``costs``."""
        service = ProfileService(costs, seed)
        run = self._info(plan, "simulated", seed)
        return simulate(load, plan, Router(plan.compile), costs, service, run, handling=service.handling)

    def replay(self, plan: Plan, load: Workload, costs: CostModel, number: int) -> Replayed:
        """The replay ``number`` of ``load``, on a fresh worker: kept, or made now."""
        inputs = (plan, workload_digest(load), self._versions(plan), self._fed)
        folder = self.out / "replays" / f"{plan.id}-{digest(inputs)[:16]}-{number}"
        note = folder / "kept.json"
        if not note.exists():
            folder.mkdir(parents=True, exist_ok=True)
            began = time.monotonic()
            trace = self._replayed(plan, load, costs)
            write_trace(folder, trace)
            write_json(note, KeptRun(seconds=time.monotonic() - began))
        return Replayed(read_trace(folder), read_json(note, KeptRun).seconds)

    def _replayed(self, plan: Plan, load: Workload, costs: CostModel) -> Trace:
        trace = replay(
            ReplayRequest(
                workload=load, plan=plan, model=self.model, backend=backends.factory(plan.compile.backend),
                payloads=self.payloads, router=Router(plan.compile), predictor=costs, cores=(WORKER,),
                driver_core=DRIVER, run=self._info(plan, "measured", 0), hang_s=HANG_S,
            )
        )  # fmt: skip
        failed = int((trace.requests["error"] != 0).sum())
        if failed or not trace.run.complete:
            raise SystemExit(f"{plan.id}: {failed} requests failed: {trace.run.note}")
        return trace

    def _info(self, plan: Plan, source: Source, seed: int) -> RunInfo:
        return RunInfo(
            id="bench", plan=plan.id, slice="bench", source=source, workload_sha256="", envelope_sha256="",
            start_state="fresh worker, the plan's warm list run, empty queue", seed=seed, workers=1, cores=(WORKER,),
            driver_core=DRIVER,
        )  # fmt: skip

    def _versions(self, plan: Plan) -> dict[str, str]:
        return backends.info(plan.compile.backend).versions


def in_turn(count: int, times: int) -> Iterator[tuple[int, int]]:
    """(number from 0, time from 1) of ``count`` things, each ``times`` times, every round in the other direction."""
    for turn in range(1, times + 1):
        order: Sequence[int] = range(count) if turn % 2 else range(count - 1, -1, -1)
        yield from ((number, turn) for number in order)
