"""The facts that a diagnosis reads off one run, from literal runs."""

from __future__ import annotations

import numpy as np
from evidence_cases import Line, Ran, Silent, dynamic, trace

from parts import envelope
from trimtab.domain.envelope import Envelope, EnvelopeCheck, Pace
from trimtab.domain.plan import CompileSpec, Plan
from trimtab.domain.trace import MARK_COLUMNS, MARK_KINDS, SAMPLE_COLUMNS, Table, Trace, empty
from trimtab.evidence.attribute.account import account
from trimtab.evidence.classify import facts as observed
from trimtab.evidence.classify.known import Facts
from trimtab.evidence.score.batches import Yardstick, measure
from trimtab.evidence.score.reference import ReferenceSet

PLAN = Plan(id="plan", compile=CompileSpec(backend="null", entries=(dynamic(),)))


def test_facts_of_a_literal_run() -> None:
    samples = empty(SAMPLE_COLUMNS, 2)
    columns = {"core": [0, 0], "t": [0, 10**9], "stolen": [0.01, 0.03], "throttled_ns": [0, 2 * 10**8]}
    samples = Table(samples.columns | {k: np.array(v, dtype=samples[k].dtype) for k, v in columns.items()})
    batches = [
        Ran((100,), wall=4, promised=2, arrived=100.0 * i, executed=200, runqueue=1, route="padded", first=i == 9,
            peak=7) for i in range(10)
    ]  # fmt: skip
    run = trace(batches, samples=samples)
    line = Line()
    scored = measure(run, Yardstick(line, line, "dyn", ReferenceSet((dynamic(),), line, 1)))
    split = account(run, line, line, "dyn", PLAN)
    checks = [EnvelopeCheck(name="governor", assumed="performance", probed="powersave", status="differs")]
    known = observed.gather(run, scored, split, {}, PLAN, None, checks)
    assert (known.padding, known.fallback, known.stolen, known.throttled) == (2.0, 0.0, 0.02, 0.2)
    assert (known.runqueue, known.out_of_memory, known.pace, known.peak) == (0.25, 0, None, None)
    assert known.differs == ("governor is powersave, assumed performance",)
    assert (known.threads, known.cores, known.mean_size, known.max_size) == (1, 1, 1.0, 1)


def known_of(run: Trace, promise: object, envelope: Envelope | None = None) -> Facts:
    stick = Yardstick(promise, promise, "dyn", ReferenceSet((dynamic(),), promise, 1))  # type: ignore[arg-type]
    split = account(run, promise, promise, "dyn", PLAN)  # type: ignore[arg-type]
    return observed.gather(run, measure(run, stick), split, {}, PLAN, envelope)


def test_cores_that_workers_share_are_counted_once() -> None:
    batches = [Ran((100,), wall=4, promised=2, arrived=100.0 * i) for i in range(3)]
    assert known_of(trace(batches, cores=(0, 0, 1), workers=3), Line()).cores == 2
    assert known_of(trace(batches, cores=(), workers=3), Line()).cores is None


def test_the_fallbacks_share_of_time_without_a_promise() -> None:
    """Two runs of 6 ms on the fallback and one of 4 ms elsewhere; where all is promised there is nothing to share."""
    batches = [
        Ran((100,), wall=wall, arrived=100.0 * i, route=route)
        for i, (wall, route) in enumerate([(6, "fallback"), (4, "dynamic"), (6, "fallback")])
    ]
    assert known_of(trace(batches), Silent()).fallback_time == 0.75
    assert known_of(trace(batches), Line()).fallback_time is None


def test_pace_is_the_median_over_the_reference_of_its_own_core() -> None:
    """Worker 1 ran on core 1: three paces there, and one on a core whose reference nobody knows."""
    marks = empty(MARK_COLUMNS, 4)
    marks["kind"][:] = MARK_KINDS.index("pace")
    marks["worker"][:] = [1, 1, 1, 2]
    marks["value"][:], marks["value2"][:] = [110, 120, 900, 5], [40, 44, 40, 5]
    run = trace([Ran((100,), wall=4, core=core, arrived=100.0 * core) for core in (1, 2)], marks=marks)
    known = known_of(run, Line(), envelope(pace=(Pace(core=1, compute_ns=100, stream_ns=40, runs=200),)))
    assert (known.pace, known.stream_pace) == (1.2, 1.0)
