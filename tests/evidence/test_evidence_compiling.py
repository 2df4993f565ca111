"""What a runtime compiled while it served, in the evidence of cold shapes and of fallbacks: literal runs and marks."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from evidence_cases import Line, Ran, dynamic, ns, trace

from trimtab.domain.plan import CompileSpec, Plan
from trimtab.domain.trace import MARK_COLUMNS, MARK_KINDS, Trace, empty
from trimtab.evidence.attribute.account import account
from trimtab.evidence.classify import facts as observed
from trimtab.evidence.classify.classes import Effect, Suspect
from trimtab.evidence.classify.compiling import Compiling
from trimtab.evidence.classify.symptoms import Facts, suspects
from trimtab.evidence.score.batches import Yardstick, measure
from trimtab.evidence.score.reference import ReferenceSet

PLAN = Plan(id="plan", compile=CompileSpec(backend="torch", entries=(dynamic(),)))
LINE = Line()
SURE = Effect(0.6, 0.4, 0.8)
GUARD = "x.size()[3] == 192"
LIMIT = f"recompile limit reached: {GUARD}"

Event = tuple[int, str, str]
"""(batch, kind, reason)."""


def marked(run: Trace, events: Sequence[Event]) -> Trace:
    """``run`` with these compile events, as the recorder writes them."""
    marks = empty(MARK_COLUMNS, len(events))
    for row, (batch, kind, reason) in enumerate(events):
        marks["kind"][row] = MARK_KINDS.index(kind)
        marks["value"][row], marks["value2"][row] = ns(8), batch
        marks["detail"][row] = [reason for _, _, reason in events].index(reason)
        run.batches["compile_events"][batch] += 1
    return msgspec.structs.replace(run, marks=marks, details=tuple(reason for _, _, reason in events))


def served(walls: Sequence[float], cores: Sequence[int] = ()) -> Trace:
    """One batch of width 100 each 100 ms, 2 ms promised."""
    where = cores or (0,) * len(walls)
    return trace(
        [Ran((100,), wall=wall, promised=2, arrived=100.0 * i, core=where[i]) for i, wall in enumerate(walls)],
        workers=max(where) + 1,
    )


def known_of(run: Trace, events: Sequence[Event]) -> Facts:
    run = marked(run, events)
    scored = measure(run, Yardstick(LINE, LINE, "dyn", ReferenceSet((dynamic(),), LINE, 1)))
    return observed.gather(run, scored, account(run, LINE, LINE, "dyn", PLAN), {}, PLAN)


def suspect(kind: str, known: Facts, *causes: str) -> Suspect:
    sure = msgspec.structs.replace(known, effects=dict.fromkeys(causes, SURE))
    return next(one for one in suspects(sure) if one.id == kind)


def test_compile_events_inside_the_slowest_batches_are_the_evidence_of_a_cold_shape() -> None:
    """Of 20 batches the last two are slow; the last one recompiled, and so did one of the ten fast ones."""
    known = known_of(served([2.0] * 18 + [12.0, 12.0]), [(3, "compile", "first run"), (19, "recompile", GUARD)])
    assert known.compiling is not None
    assert (known.compiling.slow, known.compiling.fast, known.compiling.guard) == (0.5, 1 / 18, GUARD)
    found = suspect("cold-shape", known, "cold")
    assert found.named
    assert found.evidence == (
        "first runs are 50.0 % of the slowest batches, 5.6 % of the faster",
        f"compile events in 50.0 % of the slowest batches, 5.6 % of the faster; first guard: {GUARD}",
    )


def test_a_first_compile_fails_no_guard() -> None:
    known = known_of(served([2.0] * 18 + [12.0, 12.0]), [(18, "compile", "first run"), (19, "compile", "first run")])
    assert known.compiling is not None
    assert known.compiling.inside == "compile events in 100.0 % of the slowest batches, 0.0 % of the faster"


def test_events_in_fast_batches_alone_are_no_evidence() -> None:
    known = known_of(served([2.0] * 18 + [12.0, 12.0]), [(3, "recompile", GUARD)])
    assert known.compiling is not None
    assert known.compiling.guard == ""
    found = suspect("cold-shape", known, "cold")
    assert (found.evidence, found.named) == ((), False)


def test_one_batch_is_neither_slow_nor_fast() -> None:
    known = known_of(served([12.0]), [(0, "compile", "first run")])
    assert known.compiling is not None
    assert (known.compiling.slow, known.compiling.fast, known.first_slow, known.first_fast) == (0.0, 0.0, None, None)


def test_without_events_nothing_is_said_of_them() -> None:
    assert known_of(served([2.0] * 10), []).compiling is None


def test_the_fall_to_eager_is_the_evidence_of_a_fallback_and_owns_the_time_after_it() -> None:
    """Batch 5 is refused a compile; the four after it take 6 ms instead of 2, one before it 4: 16 of 18 ms."""
    walls = [2.0, 4.0, 2.0, 2.0, 2.0, 12.0, 6.0, 6.0, 6.0, 6.0]
    known = known_of(served(walls), [(5, "eager", LIMIT)])
    assert known.compiling is not None
    assert known.compiling.uncompiled == pytest.approx(16 / 18)
    found = suspect("mapping-fallback", known, "interference")
    assert (found.named, found.effect) == (True, SURE)
    assert found.evidence[0] == (
        f"the runtime gave up compiling once and runs uncompiled: {LIMIT}; 88.9 % of the time above promise came after "
        "it"
    )


def test_what_another_worker_runs_is_not_charged_to_the_fall() -> None:
    """Worker 1 falls at batch 1 and keeps its promise after it; the slow runs are worker 0's."""
    known = known_of(served([2.0, 12.0, 6.0, 2.0, 6.0, 2.0], (0, 1, 0, 1, 0, 1)), [(1, "eager", LIMIT)])
    assert known.compiling is not None
    assert known.compiling.uncompiled == 0.0
    assert suspect("mapping-fallback", known, "interference").effect is None


@pytest.mark.parametrize(("uncompiled", "named"), [(0.5, True), (0.4, False), (None, False)])
def test_only_most_of_the_time_above_promise_makes_interference_the_falls(
    uncompiled: float | None, named: bool
) -> None:
    fell = Compiling(slow=0.1, fast=0.0, guard="", falls=2, why=LIMIT, uncompiled=uncompiled)
    found = suspect("mapping-fallback", Facts(effects={}, compiling=fell), "interference")
    assert found.named is named
    assert found.evidence[0].startswith(f"the runtime gave up compiling 2 times and runs uncompiled: {LIMIT}")


def test_recompiles_without_a_fall_are_no_fallback() -> None:
    compiled = Compiling(slow=0.5, fast=0.0, guard=GUARD, falls=0, why="", uncompiled=0.0)
    found = suspect("mapping-fallback", Facts(effects={}, compiling=compiled, fallback=0.0), "premium")
    assert found.against == ("no fallback route, no premium over the best entry",)


def test_a_batch_that_failed_is_in_neither_end() -> None:
    """Its event counts as a fall, but it has no run time to be slow by."""
    run = served([2.0] * 9 + [12.0])
    run.batches["error"][0] = 1
    known = known_of(run, [(0, "eager", LIMIT)])
    assert known.compiling is not None
    assert (known.compiling.slow, known.compiling.fast, known.compiling.falls) == (0.0, 0.0, 1)
    assert np.isclose(known.compiling.uncompiled or 0.0, 1.0)
