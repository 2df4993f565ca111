"""What all stages of one run share: the study, the packet, and what earlier stages left in it, read once."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

from msgspec.structs import replace

from trimtab import backends
from trimtab.domain.envelope import Envelope
from trimtab.domain.noun import EntryId
from trimtab.domain.plan import Entry, Plan
from trimtab.domain.ports import ModelFile, Progress
from trimtab.domain.profile import CompileFailure, CompileProfile
from trimtab.domain.study import Study
from trimtab.domain.workload import Slice, Workload
from trimtab.errors import StudyError
from trimtab.loop.machine import backend_versions
from trimtab.loop.schedule import Schedule, plan_time, profiling_s, starting_s
from trimtab.loop.shipped import Shipped
from trimtab.loop.trials.executor import Executor, Material
from trimtab.loop.trials.local import Local
from trimtab.mapping.cost import CostModel
from trimtab.retuning.moves import Options
from trimtab.retuning.rollback import Rehearsal
from trimtab.runtime.quality import Answered
from trimtab.runtime.wire import Member
from trimtab.store.checkpoint import PROGRESS
from trimtab.store.codec import digest, workload_digest
from trimtab.store.packet import Packet
from trimtab.store.study import resolve_model

Profiles = tuple[CompileProfile | CompileFailure, ...]
TUNE = "tune"
NETWORKS = f"{PROGRESS}/networks"


@dataclass
class Context:
    """One run of the loop. ``written`` lists the files that the current stage has made."""

    study: Study
    folder: Path
    packet: Packet
    budget_s: float
    progress: Progress
    executor: Executor = field(default_factory=Local)
    written: list[Path] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)
    shipped: Shipped | None = None  # the change that runs already and is judged; None = one is looked for
    options: Options | None = None  # the moves that this study allows, listed once
    answered: dict[tuple[str, Member], Answered] = field(default_factory=dict)  # by digest of a compile half
    rehearsed: dict[str, Rehearsal | str] = field(default_factory=dict)  # by plan
    _costs: dict[str, CostModel] = field(default_factory=dict)

    def keep(self, paths: Path | Iterable[Path]) -> None:
        """Note what a stage wrote, for its checkpoint."""
        self.written += [paths] if isinstance(paths, Path) else list(paths)

    @property
    def left_s(self) -> float:
        """What is left of the budget, s; negative where it is spent."""
        return self.budget_s - (time.monotonic() - self.started)

    # --- the study, resolved -----------------------------------------------------------------------------------

    @cached_property
    def model(self) -> ModelFile:
        """The network. What is made from it is kept for later workers, beside the packet's checkpoints: no evidence."""
        return replace(resolve_model(self.study, self.folder), kept=str((self.packet.folder / NETWORKS).resolve()))

    @cached_property
    def fed(self) -> str:
        """Digest of the network and of all that says how it is fed: padding, crops, dims, calibration, payloads."""
        study = self.study
        files = (self.model.sha256, self.model.torch_sha256, self.model.calibration_sha256)
        return digest((*files, study.model, study.dims, study.workload.payload, study.seeds.payload))

    @cached_property
    def material(self) -> Material:
        """What trials are made from."""
        return Material(self.study, self.folder, self.model, self.packet.read_envelope()[0])

    @property
    def runtimes(self) -> tuple[str, ...]:
        """Every runtime that the study can use."""
        return runtimes_of(self.study)

    @cached_property
    def versions(self) -> dict[str, str]:
        """Their versions: the same for all of its runs."""
        return backend_versions(self.runtimes)

    @cached_property
    def schedule(self) -> Schedule:
        study, budget = self.study, self.study.budget
        entry_s = cache(lambda name: backends.info(name).entry_s)
        return plan_time(
            self.budget_s,
            budget.replays,
            profiling_s(study, entry_s),
            budget.replay_s,
            conditions=len(study.conditions),
            adapting=2 * budget.replays if study.adapt.replay else 0,
            starting=starting_s(study, entry_s),
        )

    @property
    def driver_core(self) -> int:
        envelope = self.study.envelope
        return envelope.driver_core if envelope.driver_core is not None else envelope.cores[-1]

    def worker_cores(self, plan: Plan) -> tuple[int, ...]:
        """One core for each worker of ``plan``; never the driver's."""
        free, need = self.study.envelope.worker_cores, plan.serve.workers
        if need > len(free):
            raise StudyError(
                f"plan {plan.id} wants {need} workers, but only {len(free)} cores are left beside the driver's",
                where="envelope.cores",
                fix="list more cores, or lower serve.workers",
            )
        return free[:need]

    # --- what earlier stages left --------------------------------------------------------------------------------

    @cached_property
    def workload(self) -> Workload:
        return self.packet.read_workload()

    def slice(self, name: str) -> Slice:
        """The slice named ``name``; StudyError if the workload has none."""
        found = next((part for part in self.workload.slices if part.name == name), None)
        if found is None:
            raise StudyError(
                f"there is no slice {name!r}",
                where="workload.slices",
                fix=f"known: {', '.join(part.name for part in self.workload.slices)}",
            )
        return found

    @cached_property
    def workload_sha256(self) -> str:
        return workload_digest(self.workload)

    @cached_property
    def envelope_sha256(self) -> str:
        """Digest of the envelope of the home machine."""
        return digest(self.packet.read_envelope()[0])

    def envelope_of(self, sha256: str) -> Envelope:
        """The envelope that made a run: the home machine's, or that of a machine beside it."""
        return self.packet.read_machine(sha256) if self.machine_file(sha256) else self.packet.read_envelope()[0]

    def machine_file(self, sha256: str) -> tuple[Path, ...]:
        """Where the packet keeps that envelope, if it is of a machine beside the home one."""
        path = self.packet.machine_path(sha256) if sha256 else None
        return (path,) if path is not None and path.is_file() else ()

    def machine_files(self, envelope: Envelope) -> tuple[Path, ...]:
        """The same for a machine that has just made something: it is kept."""
        return () if digest(envelope) == self.envelope_sha256 else (self.packet.write_machine(envelope),)

    @cached_property
    def profile_owners(self) -> dict[str, str]:
        """Digest of a compile half -> the plan under whose id its profile is stored, for the plans of this packet."""
        stored = {path.stem for path in self.packet.folder.glob("profiles/*.json")}
        return {profile_digest(plan): plan.id for plan in self.packet.read_plans() if plan.id in stored}

    def profile_id(self, plan: Plan) -> str:
        """The id under which the profile of ``plan`` is stored: plans that compile and batch alike share one."""
        return self.profile_owners.get(profile_digest(plan), plan.id)

    def profiles(self, plan: Plan) -> Profiles:
        return self.packet.read_profiles(self.profile_id(plan))

    def compiled(self, plan: Plan) -> tuple[CompileProfile, ...]:
        """Profiles of the entries of ``plan`` that compiled."""
        return tuple(result for result in self.profiles(plan) if isinstance(result, CompileProfile))

    def failed(self, plan: Plan) -> tuple[CompileFailure, ...]:
        """Why the other entries of ``plan`` did not."""
        return tuple(result for result in self.profiles(plan) if isinstance(result, CompileFailure))

    def costs(self, plan: Plan) -> CostModel:
        """Predicted service times of ``plan``: fitted once, for the profile of a plan does not change within a run."""
        key = profile_digest(plan)
        if key not in self._costs:
            self._costs[key] = CostModel.from_profiles(self.compiled(plan), plan.compile.entries)
        return self._costs[key]

    def any_shape(self, entry: EntryId, most: int = 1) -> Entry:
        """A dynamic entry that covers every shape of the study, in batches of up to ``most``."""
        dims = self.study.dims.values()
        lo, hi = tuple(dim.lo for dim in dims), tuple(dim.hi for dim in dims)
        return Entry(id=entry, kind="dynamic", lo=lo, hi=hi, batch=(1, most))


def profile_digest(plan: Plan) -> str:
    """What a profile depends on: the compiled programs, and the batch sizes that run through them. (Larger batches
    leave other traces in the caches: timed in one process with them, single requests come out slower.)"""
    return digest((plan.compile, plan.serve.threads, plan.serve.batch.max_size))


def runtimes_of(study: Study) -> tuple[str, ...]:
    """Every runtime that ``study`` can use, by name: none where a server runs what it has."""
    if study.workload.target:
        return ()
    plans = (study.baseline, *study.candidates)
    return tuple(dict.fromkeys((*(plan.compile.backend for plan in plans), *study.space.backends)))
