"""Runs on disk: everything that the analysis of one run needs, so that it can be judged again without a machine.

DIR/envelope.json                          the machine, once
DIR/profiles/<digest>.json                 profiles of one compile half, shared by runs
DIR/runs/<fault>-<seed>/case.json + trace  what is known around the run, and the run
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np

from trimtab.domain.envelope import Envelope, EnvelopeCheck
from trimtab.domain.noun import Noun
from trimtab.domain.plan import Plan
from trimtab.domain.profile import CompileProfile
from trimtab.domain.score import ClassId
from trimtab.domain.study import Sla
from trimtab.domain.trace import Table, Trace
from trimtab.evidence.analysis import Analysis, Circumstances, analyse
from trimtab.evidence.score.batches import Yardstick
from trimtab.evidence.score.reference import ReferenceSet
from trimtab.mapping.cost import CostModel
from trimtab.store.codec import digest, read_json, read_trace, write_json, write_trace

CASE, ENVELOPE, PROFILES, RUNS = "case.json", "envelope.json", "profiles", "runs"
LONGEST = 1200
"""Requests of a shortened run."""


class Case(Noun, frozen=True, kw_only=True):
    """What is known around one run. ``rivals`` are plans whose entries the batches could have run on as well."""

    fault: str
    expected: ClassId
    seed: int
    injected: str
    plan: Plan
    reference: Plan
    rivals: tuple[Plan, ...]
    sla: Sla
    checks: tuple[EnvelopeCheck, ...]
    declared: str
    executed: float | None
    quality: bool | None = None
    quality_value: float | None = None

    @property
    def id(self) -> str:
        return f"{self.fault}-{self.seed}"


class Recording(msgspec.Struct, frozen=True):
    """One run with all that its analysis needs. ``profiles`` by digest of the compile half."""

    case: Case
    trace: Trace
    envelope: Envelope
    profiles: dict[str, tuple[CompileProfile, ...]]


def judge(recording: Recording) -> Analysis:
    """The product's own analysis, the same for a live run and for one that was recorded."""
    case = recording.case
    known = Circumstances(
        plan=case.plan,
        yardstick=_yardstick(recording),
        sla=case.sla,
        seed=case.seed,
        envelope=recording.envelope,
        checks=case.checks,
        declared=case.declared,
        executed=case.executed,
        quality=case.quality,
    )
    return analyse(recording.trace, known)


def _yardstick(recording: Recording) -> Yardstick:
    case = recording.case

    def costs(plan: Plan) -> CostModel:
        return CostModel.from_profiles(recording.profiles[profile_key(plan)], plan.compile.entries)

    best: ReferenceSet | None = None
    for plan in {profile_key(plan): plan for plan in plans_of(case)}.values():
        profiles = recording.profiles[profile_key(plan)]
        one = ReferenceSet.from_profiles(plan.compile.entries, profiles, plan.serve.batch.max_size)
        best = one if best is None else best | one
    assert best is not None
    return Yardstick(costs(case.plan), costs(case.reference), case.reference.compile.entries[0].id, best)


def profile_key(plan: Plan) -> str:
    """What a profile depends on: plans that compile alike and form the same batches share one."""
    return digest((plan.compile, plan.serve.threads, plan.serve.batch.max_size))


def plans_of(case: Case) -> tuple[Plan, ...]:
    """All plans whose profiles the analysis reads."""
    return (case.plan, case.reference, *case.rivals)


def write(folder: Path, recording: Recording) -> Path:
    """Keep a run; the folder of the run. Profiles that are there already are not written again."""
    run = folder / RUNS / recording.case.id
    run.mkdir(parents=True, exist_ok=True)
    (folder / PROFILES).mkdir(exist_ok=True)
    write_json(folder / ENVELOPE, recording.envelope)
    for key, profiles in recording.profiles.items():
        path = folder / PROFILES / f"{key}.json"
        if not path.exists():
            write_json(path, profiles)
    write_trace(run, recording.trace)
    write_json(run / CASE, recording.case)
    return run


def read(folder: Path, run: str) -> Recording:
    """The run that :func:`write` kept. PacketError if a file is missing or broken."""
    case = read_json(folder / RUNS / run / CASE, Case)
    keys = dict.fromkeys(profile_key(plan) for plan in plans_of(case))
    return Recording(
        case=case,
        trace=read_trace(folder / RUNS / run),
        envelope=read_json(folder / ENVELOPE, Envelope),
        profiles={k: read_json(folder / PROFILES / f"{k}.json", tuple[CompileProfile, ...]) for k in keys},
    )


def names(folder: Path) -> tuple[str, ...]:
    """The runs kept in ``folder``, in order."""
    return tuple(sorted(path.parent.name for path in folder.glob(f"{RUNS}/*/{CASE}")))


def trimmed(recording: Recording) -> Recording:
    """Small enough to be kept for ever: a shortened run, profiles without operators (no analysis of a run reads them,
    and they are most of the file), and nothing that tells one machine from its like."""
    profiles = {key: tuple(_bare(one) for one in each) for key, each in recording.profiles.items()}
    envelope = msgspec.structs.replace(recording.envelope, host="", cgroup="")
    return Recording(recording.case, shortened(recording.trace), envelope, profiles)


def _bare(profile: CompileProfile) -> CompileProfile:
    inspection = msgspec.structs.replace(profile.inspection, operators=())
    return msgspec.structs.replace(profile, inspection=inspection)


def shortened(trace: Trace, most: int = LONGEST) -> Trace:
    """The first requests of a run, at most ``most``, cut where no batch is torn apart, with their batches, and the
    marks and samples up to their end."""
    count = _cut(trace, most)
    if count == len(trace.requests):
        return trace
    requests = trace.requests.take(np.arange(count))
    batches = trace.batches.take(np.isin(trace.batches["id"], requests["batch"]))
    end = max(int(requests["done"].max()), int(requests["scheduled"].max()))
    return msgspec.structs.replace(
        trace,
        requests=requests,
        batches=batches,
        marks=_until(trace.marks, end),
        samples=_until(trace.samples, end),
    )


def _until(table: Table, end: int) -> Table:
    return table.take(table["t"] <= end)


def _cut(trace: Trace, most: int) -> int:
    """The largest count up to ``most`` after which no request shares a batch with one before."""
    batch = trace.requests["batch"]
    for count in range(min(most, batch.size), 0, -1):
        mine = batch[:count][batch[:count] >= 0]
        if not np.isin(batch[count:], mine).any():
            return count
    raise ValueError(f"run {trace.run.id} has a batch that ties all requests together")
