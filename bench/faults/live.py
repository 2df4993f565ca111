"""One live run: arrange the traffic, inject the fault, replay for real, take the fault away."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from faults.catalogue import Fault, Scene
from faults.material import DRIVER, WORKER, Material
from faults.recorded import Case, Recording, plans_of, profile_key
from trimtab import backends
from trimtab.domain.envelope import Envelope, EnvelopeCheck
from trimtab.domain.plan import Plan
from trimtab.domain.ports import BackendFactory
from trimtab.domain.score import ClassId
from trimtab.domain.trace import RunInfo, Trace
from trimtab.domain.workload import Workload
from trimtab.evidence.classify.symptoms import PACE_SHIFT
from trimtab.evidence.precision import executed_share
from trimtab.mapping.route import Router
from trimtab.runtime import probe
from trimtab.runtime.replay import ReplayRequest, replay
from trimtab.store.codec import workload_digest

START = "fresh workers, the plan's warm list run, empty queue"


class Bench:
    """The material, and the machine as it was when the bench began."""

    def __init__(self, material: Material, envelope: Envelope, checks: tuple[EnvelopeCheck, ...], seeds: int) -> None:
        self.material, self.envelope, self.checks, self.seeds = material, envelope, checks, seeds
        self._quality: dict[str, tuple[bool, float]] = {}

    def run(self, fault: Fault, seed: int, seconds: float) -> Recording:
        """Inject, replay, take away. Everything that does not belong to the run is done before the injection."""
        scene = fault.scene(self.material)
        load = self._load(scene, seed, seconds)
        rivals = (self.material.fitted,)
        case = self._case(fault, scene, seed, rivals)
        profiles = {profile_key(plan): self.material.profiles(plan) for plan in plans_of(case)}
        with scene.injection() as injected:
            case = replace(case, injected=injected.words)
            if fault.unfelt is not None:
                case = self._felt(case, fault.unfelt)
            trace = self._replay(scene, load, case.id, injected.factory(scene.plan.compile.backend))
        if not trace.run.complete:
            raise KeyboardInterrupt(trace.run.note)
        return Recording(case, trace, self.envelope, profiles)

    def _felt(self, case: Case, unfelt: ClassId) -> Case:
        """With the dose in the words, and with ``unfelt`` as the expected class where there is none."""
        quiet = next(pace for pace in self.envelope.pace if pace.core == WORKER)
        now = probe.pace_of(WORKER)
        shifts = now.compute_ns / quiet.compute_ns, now.stream_ns / quiet.stream_ns
        felt = max(shifts) >= PACE_SHIFT
        said = "felt" if felt else "not felt"
        words = f"{case.injected}; {said} by the pace kernel (compute x{shifts[0]:.2f}, stream x{shifts[1]:.2f})"
        return replace(case, injected=words, expected=case.expected if felt else unfelt)

    def _case(self, fault: Fault, scene: Scene, seed: int, rivals: tuple[Plan, ...]) -> Case:
        material, plan = self.material, scene.plan
        declared = material.study.quality.precision
        holds, value = self._judged(plan) if scene.judge_quality else (None, None)
        return Case(
            fault=fault.id,
            expected=fault.expected,
            seed=seed,
            injected="",
            plan=plan,
            reference=material.reference,
            rivals=rivals,
            sla=material.sla,
            checks=self.checks,
            declared=declared,
            executed=executed_share(material.profiles(plan), declared),
            quality=holds,
            quality_value=value,
        )

    def _judged(self, plan: Plan) -> tuple[bool, float]:
        key = profile_key(plan)
        if key not in self._quality:
            self._quality[key] = self.material.quality_holds(plan)
        return self._quality[key]

    def _load(self, scene: Scene, seed: int, seconds: float) -> Workload:
        """A window of the recording, stretched so that promised service takes the scene's share of the time."""
        material = self.material
        usual = float(material.service_ns(scene.plan, material.traffic).mean())
        count = round(seconds * scene.longer * scene.plan.serve.workers * 1e9 * scene.load / usual)
        window = material.window(seed, self.seeds, min(count, scene.limit or count))
        asked = float(material.service_ns(scene.plan, window).sum()) / scene.load / scene.plan.serve.workers
        timed = replace(window, scheduled=np.rint(window.scheduled * (asked / window.span)).astype(np.int64))
        return scene.arrange(timed, np.random.default_rng(seed))

    def _replay(self, scene: Scene, load: Workload, run_id: str, backend: BackendFactory) -> Trace:
        material, plan = self.material, scene.plan
        return replay(
            ReplayRequest(
                workload=load,
                plan=plan,
                model=material.model,
                backend=backend,
                payloads=material.payloads,
                router=Router(plan.compile),
                predictor=material.costs(plan),
                cores=scene.cores,
                driver_core=DRIVER,
                run=self._info(scene, load, run_id),
                share_driver_core=scene.share_driver_core,
            )
        )

    def _info(self, scene: Scene, load: Workload, run_id: str) -> RunInfo:
        return RunInfo(
            id=run_id,
            plan=scene.plan.id,
            slice=load.id.rpartition("/")[2],
            source="measured",
            workload_sha256=workload_digest(load),
            envelope_sha256="",
            start_state=START,
            seed=0,
            workers=scene.plan.serve.workers,
            cores=scene.cores,
            driver_core=DRIVER,
            versions=backends.info(scene.plan.compile.backend).versions,
        )
