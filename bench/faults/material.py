"""What all faults share: the network, the recorded traffic, plans with their profiles, and the one SLA.

Loads are given as a share of what one worker can do, going by the profile, and the bound of the SLA is a multiple of
the served requests' own 95th percentile; so the bench means the same on a slower machine.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from faults.recorded import profile_key
from trimtab import backends
from trimtab.domain.noun import EntryId
from trimtab.domain.plan import BatchPolicy, CompileSpec, Entry, Plan, Precision, ServePolicy
from trimtab.domain.profile import CompileFailure, CompileProfile
from trimtab.domain.study import Sla
from trimtab.domain.workload import Slice, Workload
from trimtab.evidence import quality
from trimtab.mapping import buckets
from trimtab.mapping.cost import CostModel
from trimtab.mapping.route import Router
from trimtab.readers.payload import payloads_of
from trimtab.readers.traffic import read_workload
from trimtab.runtime.grid import grid, prelude
from trimtab.runtime.profile import profile_plan
from trimtab.runtime.quality import answers, sample_members
from trimtab.store.study import load_study, resolve_model

DRIVER, WORKER = 0, 1
POINTS, REPEATS = 64, 12
LARGEST_BATCH = 4
NEW_SHAPES = 200
BOUND = 3.0
"""The SLA's bound over the 95th percentile of the fitted plan's own service times."""
FITTED, COARSE, FEW = 24, 2, 6
TYPICAL_TOP = 0.75
"""The narrow plan covers this share of requests; the rest falls outside."""

Profiles = tuple[CompileProfile, ...]


class Material:
    """Read once; every plan is profiled once, under the batch sizes of its policy."""

    def __init__(self, study_file: Path, say: Callable[[str], None]) -> None:
        self.folder = study_file.parent
        self.study = load_study(study_file)
        self.model = resolve_model(self.study, self.folder)
        self.payloads = payloads_of(self.study, self.folder)
        self.traffic = read_workload(self.study, self.folder)
        self.dim = self.study.dims[self.study.dim_names[0]]
        self._say = say
        self._profiles: dict[str, Profiles] = {}

    # --- plans --------------------------------------------------------------------------------------------------

    def dynamic(self, id: str, backend: str = "openvino", hi: int | None = None, batch: int = LARGEST_BATCH) -> Plan:  # noqa: A002
        """One dynamic entry, in the declared precision."""
        entry = Entry(id="any-width", kind="dynamic", lo=(self.dim.lo,), hi=(hi or self.dim.hi,), batch=(1, batch))
        spec = CompileSpec(backend=backend, entries=(entry,), fallback=entry.id, precision=self._precision(backend))
        return Plan(id=id, compile=spec)

    def bucketed(self, id: str, count: int, batch: tuple[int, int] = (1, 1), precision: Precision = "f32") -> Plan:  # noqa: A002
        """``count`` buckets fitted to the traffic by the reference's times, each of them warmed."""
        entries = self._buckets(self.traffic.dims, count, batch)
        warm = tuple((size, *entry.hi) for entry in entries for size in range(batch[0], batch[1] + 1))
        spec = CompileSpec(backend="openvino", entries=entries, precision=precision)
        return Plan(id=id, compile=spec, serve=ServePolicy(warm=warm))

    def narrow(self, id: str) -> Plan:  # noqa: A002
        """Buckets for the usual widths alone; what is wider falls back on a dynamic entry that declares them too."""
        dims = self.traffic.dims
        top = int(np.quantile(dims, TYPICAL_TOP, method="lower"))
        entries = self._buckets(dims[dims[:, 0] <= top], FITTED // 2, (1, 1))
        spare = Entry(id="spare", kind="dynamic", lo=(self.dim.lo,), hi=(top,))
        spec = CompileSpec(backend="openvino", entries=(*entries, spare), fallback=spare.id, precision="f32")
        return Plan(id=id, compile=spec, serve=ServePolicy(warm=tuple((1, *entry.hi) for entry in entries)))

    def _buckets(self, dims: np.ndarray, count: int, batch: tuple[int, int]) -> tuple[Entry, ...]:
        costs, entry = self.costs(self.reference), self.reference.compile.entries[0].id
        ends = buckets.fit(dims, lambda end: costs.estimate(entry, (1, end)) / 1e6, count)
        lo = (self.dim.lo,)
        return tuple(Entry(id=f"to-{end}", kind="bucket", lo=lo, hi=(end,), batch=batch) for end in ends)

    @staticmethod
    def _precision(backend: str) -> Precision:
        return "f32" if backend == "openvino" else "default"

    @cached_property
    def reference(self) -> Plan:
        """One dynamic entry that covers every shape, in the declared precision."""
        plan = self.dynamic("reference")
        return replace(plan, serve=replace(plan.serve, batch=BatchPolicy(kind="size-hold", max_size=LARGEST_BATCH)))

    @cached_property
    def fitted(self) -> Plan:
        return self.bucketed("fitted", FITTED)

    # --- profiles -----------------------------------------------------------------------------------------------

    def profiles(self, plan: Plan) -> Profiles:
        """Of the plan's compile half, measured once on the worker's core."""
        key = profile_key(plan)
        if key not in self._profiles:
            self._say(f"profiling {plan.id}: {len(plan.compile.entries)} entries")
            self._profiles[key] = self._measure(plan)
        return self._profiles[key]

    def _measure(self, plan: Plan) -> Profiles:
        points = grid(self.traffic, plan, POINTS)
        found = profile_plan(
            plan,
            self.model,
            backends.factory(plan.compile.backend),
            self.payloads,
            points,
            REPEATS,
            WORKER,
            prelude=prelude(self.traffic, plan, NEW_SHAPES),
        )
        failed = [each for each in found if isinstance(each, CompileFailure)]
        if failed:
            raise RuntimeError(f"plan {plan.id} does not compile: {failed[0].entry}: {failed[0].message}")
        return tuple(each for each in found if isinstance(each, CompileProfile))

    def keep(self, plan: Plan, profiles: Profiles) -> None:
        """Take profiles that an earlier run measured."""
        self._profiles[profile_key(plan)] = profiles

    def costs(self, plan: Plan) -> CostModel:
        return CostModel.from_profiles(self.profiles(plan), plan.compile.entries)

    def service_ns(self, plan: Plan, load: Workload) -> np.ndarray:
        """Promised service time of each request of ``load`` alone, ns."""
        costs, router = self.costs(plan), Router(plan.compile)
        routes = [router.route(tuple(row)) for row in load.dims.tolist()]
        return np.array([costs.estimate(_entry(route.entry), route.executed) for route in routes], dtype=np.float64)

    # --- traffic and SLA ----------------------------------------------------------------------------------------

    def window(self, seed: int, seeds: int, count: int) -> Workload:
        """``count`` requests in a row; each seed starts elsewhere, evenly over the recording."""
        start = (len(self.traffic) - count) * (seed % seeds) // seeds
        return self.traffic.take(Slice(name=f"seed-{seed}", start=start, stop=start + count))

    @cached_property
    def sla(self) -> Sla:
        own = float(np.quantile(self.service_ns(self.fitted, self.traffic), 0.95)) / 1e6
        return Sla(metric="p95", bound_ms=round(BOUND * own, 1))

    # --- quality ------------------------------------------------------------------------------------------------

    def quality_holds(self, plan: Plan) -> tuple[bool, float]:
        """Whether the plan's answers keep the study's floor against its reference runtime, and the value."""
        spec = self.study.quality
        members = sample_members(self.traffic, spec.samples, self.study.seeds.payload)
        truth = self.dynamic("answers", spec.reference)

        def given(each: Plan) -> list[quality.Outputs | None]:
            factory = backends.factory(each.compile.backend)
            return [one.outputs for one in answers(each, self.model, factory, self.payloads, members, WORKER)]

        scores = quality.scores(spec.metric, given(plan), given(truth))
        value = quality.summary(spec.metric, scores[~np.isnan(scores)])
        return quality.meets(spec.metric, value, spec.floor), value


def _entry(entry: EntryId | None) -> EntryId:
    assert entry is not None, "every plan of the bench covers every shape"
    return entry
