"""One visit: a plan is compiled, timed and inspected in a fresh worker, and right after it the reference plan.

The reference beside every visit makes ratios local: a slow hour of the machine slows both. Answers are compared with
the reference at true dims, requests of every band for themselves.
"""

from __future__ import annotations

from functools import cached_property
from math import isnan

import numpy as np
from msgspec.structs import replace

from plans.catalogue import REFERENCE, Band, Choice, Network, plan_of
from trimtab import backends
from trimtab.domain.noun import Noun
from trimtab.domain.plan import Plan
from trimtab.domain.profile import CompileFailure, CompileProfile
from trimtab.domain.study import CalibrationSpec, QualityMetric, Study
from trimtab.domain.workload import Slice, Workload
from trimtab.errors import TrimtabError
from trimtab.evidence import quality as measure
from trimtab.evidence.quality import Floats
from trimtab.readers.payload import payloads_of
from trimtab.readers.traffic import read_workload
from trimtab.runtime.grid import GridPoint
from trimtab.runtime.profile import profile_plan
from trimtab.runtime.quality import Answered, answers, sample_members
from trimtab.store.codec import digest
from trimtab.store.study import load_study, resolve_model

WORKER = 1
SAMPLES = 16
"""Requests of each band whose answers are compared."""


class Quality(Noun, frozen=True, kw_only=True):
    """``values`` by metric; empty: nothing to compare, and ``note`` says why."""

    band: str
    values: dict[str, float]
    samples: int
    note: str = ""


class Visit(Noun, frozen=True, kw_only=True):
    """What one visit found. ``inputs``: digest of all that it depends on; ``quality`` only in the first round."""

    inputs: str
    network: str
    plan: Plan
    mapping: str
    round: int
    profiles: tuple[CompileProfile, ...]
    failures: tuple[CompileFailure, ...]
    reference: tuple[CompileProfile, ...]
    quality: tuple[Quality, ...] = ()
    payloads: str = ""


class Bench:
    """A network with its traffic, and the machine's core to measure on."""

    def __init__(self, network: Network, repeats: int) -> None:
        self.network, self.repeats = network, repeats
        folder = network.study.parent
        self.study = _calibrated(with_torch(load_study(network.study), network))
        self.model = resolve_model(self.study, folder)
        self.payloads = payloads_of(self.study, folder)
        self.workload = read_workload(self.study, folder)
        self.reference = plan_of(REFERENCE, network)

    def inputs(self, choice: Choice) -> str:
        """Digest of what a visit depends on."""
        plan, versions = plan_of(choice, self.network), backends.info(choice.backend).versions
        traffic = (self.study.workload.shapes, self.study.workload.payload, self.study.seeds.payload)
        return digest((plan, versions, self.model, traffic, self.network.metrics, SAMPLES, self.repeats))

    def visit(self, choice: Choice, number: int) -> Visit:
        """Measure ``choice``, then the reference; in the first round compare answers too."""
        plan = plan_of(choice, self.network)
        found = self._profile(plan)
        beside = self._profile(self.reference)
        profiles = tuple(one for one in found if isinstance(one, CompileProfile))
        compares = number == 1 and bool(profiles)
        return Visit(
            inputs=self.inputs(choice),
            network=self.network.name,
            plan=plan,
            mapping=choice.mapping,
            round=number,
            profiles=profiles,
            failures=tuple(one for one in found if isinstance(one, CompileFailure)),
            reference=tuple(one for one in beside if isinstance(one, CompileProfile)),
            quality=self._quality(plan) if compares else (),
            payloads=self.workload.payload_kind,
        )

    def _profile(self, plan: Plan) -> tuple[CompileProfile | CompileFailure, ...]:
        """What a runtime refuses before it compiles, a network that it cannot read for instance, is a failure too."""
        points = {entry.id: self._points(entry.lo[0], entry.hi[0]) for entry in plan.compile.entries}
        factory = backends.factory(plan.compile.backend)
        try:
            return profile_plan(plan, self.model, factory, self.payloads, points, self.repeats, WORKER)
        except TrimtabError as error:
            entry = plan.compile.entries[0].id
            return (CompileFailure(plan=plan.id, entry=entry, kind="unsupported", message=error.what),)

    def _points(self, lo: int, hi: int) -> tuple[GridPoint, ...]:
        return tuple(
            GridPoint((1, band.hi), (self._longest(band),)) for band in self.network.bands if lo <= band.hi <= hi
        )

    def _longest(self, band: Band) -> tuple[int, tuple[int, ...]]:
        """The largest request that fits into a band's end."""
        sizes = np.where(self.workload.dims[:, 0] <= band.hi, self.workload.dims[:, 0], 0)
        row = int(sizes.argmax())
        return int(self.workload.payload[row]), tuple(self.workload.dims[row].tolist())

    def _quality(self, plan: Plan) -> tuple[Quality, ...]:
        """Neighbours are looked for among the requests of all bands, so all are scored together."""
        factory = backends.factory(plan.compile.backend)
        reference = [one for _, one in self._truth]
        given = answers(plan, self.model, factory, self.payloads, [one.member for one in reference], WORKER)
        values = {
            metric: measure.scores(metric, [one.outputs for one in given], [one.outputs for one in reference])
            for metric in self.network.metrics
        }
        rows = {band: [row for row, (own, _) in enumerate(self._truth) if own == band] for band in self.network.bands}
        return tuple(
            _summed(band, {metric: scores[mine] for metric, scores in values.items()}, [given[row] for row in mine])
            for band, mine in rows.items()
        )

    @cached_property
    def _truth(self) -> list[tuple[Band, Answered]]:
        """The reference's answers at true dims, of requests evenly over each band."""
        factory = backends.factory(REFERENCE.backend)
        found: list[tuple[Band, Answered]] = []
        for band in self.network.bands:
            members = sample_members(_within(self.workload, band), SAMPLES, self.study.seeds.payload)
            said = answers(self.reference, self.model, factory, self.payloads, members, WORKER)
            found += [(band, one) for one in said]
        return found


def _summed(band: Band, values: dict[QualityMetric, Floats], given: list[Answered]) -> Quality:
    note = next((one.message for one in given if one.message), "")
    figures = {metric: measure.summary(metric, scores) for metric, scores in values.items()}
    known = {str(metric): figure for metric, figure in figures.items() if not isnan(figure)}
    return Quality(band=band.label, values=known, samples=len(given), note=note)


def _within(workload: Workload, band: Band) -> Workload:
    part = Slice(name=band.label, start=0, stop=len(workload), band={workload.dim_names[0]: (band.lo, band.hi)})
    return workload.take(part)


def with_torch(study: Study, network: Network) -> Study:
    """The study with a torch network, where the bench knows one and it does not."""
    return replace(study, model=replace(study.model, torch=study.model.torch or network.torch))


def _calibrated(study: Study) -> Study:
    """A study without calibration inputs is calibrated with its own payloads."""
    if study.model.calibration.bank:
        return study
    payload = study.workload.payload
    spec = CalibrationSpec(bank=payload.bank, scale=payload.scale, offset=payload.offset)
    return replace(study, model=replace(study.model, calibration=spec))
