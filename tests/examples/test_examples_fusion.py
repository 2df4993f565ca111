"""The fusion example: its study loads, its candidates are single changes, and its traffic is what it says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from msgspec.structs import replace

from trimtab.backends._options import refuse
from trimtab.backends.iree import CHOICES, arguments
from trimtab.domain.plan import CompileSpec
from trimtab.domain.profile import CompileOptions
from trimtab.domain.study import PayloadSpec
from trimtab.readers.traffic import read_workload
from trimtab.retuning.moves import changed
from trimtab.store.study import load_study

EXAMPLE = Path(__file__).parents[2] / "examples" / "fusion"
STUDY = load_study(EXAMPLE / "study.toml")
OCR = load_study(EXAMPLE.parent / "ocr" / "study.toml")


def told(spec: CompileSpec) -> tuple[str, ...]:
    return arguments(CompileOptions(optimisation=spec.optimisation, extra=spec.options))


def test_each_candidate_changes_how_operators_are_fused_and_nothing_else() -> None:
    base = STUDY.baseline
    assert {plan.id: changed(base, plan) for plan in STUDY.candidates} == {
        "aggressive": ("optimisation",),
        "highest": ("optimisation",),
        "im2col": ("optimisation",),
        "im2col-aggressive": ("optimisation",),
    }
    for plan in STUDY.candidates:
        same = replace(plan.compile, optimisation=base.compile.optimisation, options=base.compile.options)
        assert (same, plan.serve) == (base.compile, base.serve)


def test_the_compiler_is_told_something_else_for_each_plan() -> None:
    plans = (STUDY.baseline, *STUDY.candidates)
    assert all(refuse(plan.id, plan.compile.options, CHOICES, {}) is None for plan in plans)
    assert len({told(plan.compile) for plan in plans}) == len(plans)
    assert "--iree-opt-level=O0" in told(STUDY.baseline.compile)


def test_the_network_and_the_sources_of_traffic_are_those_of_the_recogniser() -> None:
    assert (STUDY.model, STUDY.dims) == (OCR.model, OCR.dims)
    ours, theirs = STUDY.workload, OCR.workload
    files = [(EXAMPLE / one).resolve() for one in (ours.arrivals.file, ours.shapes.file, ours.payload.bank)]
    folder = EXAMPLE.parent / "ocr"
    assert files == [folder / one for one in (theirs.arrivals.file, theirs.shapes.file, theirs.payload.bank)]


def test_every_line_has_an_entry_and_the_load_is_even() -> None:
    """The bank of images is made, not kept, so the traffic is read without it."""
    traffic = replace(STUDY.workload, payload=PayloadSpec(kind="random"))
    found = read_workload(replace(STUDY, workload=traffic), EXAMPLE)
    ends = [entry.hi[0] for entry in STUDY.baseline.compile.entries]
    assert len(found) == 4000
    assert int(found.dims.max()) <= max(ends)
    assert all(((found.dims > low) & (found.dims <= high)).any() for low, high in zip([0, *ends], ends, strict=False))
    by_minute = np.bincount(found.scheduled // 60_000_000_000)[:-1] / 60
    assert 4.5 < by_minute.min() < by_minute.max() < 8
