"""The prediction ledger: who was told what, and how far off it was."""

from __future__ import annotations

import numpy as np
from evidence_cases import SLA, Line, Ran, dynamic, trace
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.domain.figure import Series
from trimtab.domain.trace import Trace
from trimtab.evidence.figures import Desk
from trimtab.evidence.score import accuracy as score
from trimtab.evidence.score.batches import Yardstick, measure
from trimtab.evidence.score.ledger import ledger
from trimtab.evidence.score.reference import ReferenceSet

LINE = Line(fixed=1.0, slope=0.01)
STICK = Yardstick(LINE, LINE, "ref", ReferenceSet((dynamic("ref", batch=(1, 1)),), LINE, 1))


def told(run: Trace) -> tuple[Series, Desk]:
    desk = Desk("score", "this run", "")
    return ledger(run, measure(run, STICK), desk), desk


def test_errors_by_route_and_band() -> None:
    run = trace(
        [
            Ran((100,), wall=5, promised=4, route="padded", executed=300),
            Ran((120,), wall=3, promised=4, route="padded", executed=300, arrived=10),
            Ran((400,), wall=25, promised=5, first=True, arrived=20),
            Ran((900,), wall=9, arrived=50),  # nothing was promised
        ]
    )
    run.requests["predicted_at_dispatch"][2] = 23_000_000
    found, desk = told(run)
    assert [(r["by"], r["group"], r["n"], r["unpredicted"]) for r in found.rows] == [
        ("all", "all requests", 3, 1),
        ("route", "padded", 2, 0),
        ("route", "dynamic", 1, 1),
        ("band", "100..100", 1, 0),
        ("band", "120..120", 1, 0),
        ("band", "400..400", 1, 0),
        ("band", "900..900", 0, 1),
    ]
    everyone, padded, dynamic_ = found.rows[:3]
    assert (everyone["compile_bias"], everyone["compile_median"], everyone["compile_p95"]) == (0.606061, 1.0, 20.0)
    assert (everyone["dispatch_bias"], everyone["dispatch_median"], everyone["dispatch_p95"]) == (0.0606061, 1.0, 2.0)
    assert (padded["compile_bias"], padded["compile_p95"]) == (0.0, 1.0)  # one slower, one faster
    assert (dynamic_["compile_p95"], dynamic_["dispatch_p95"]) == (20.0, 2.0)
    assert {figure.id: figure.value for figure in desk.figures}["score.ledger.dispatch.p95"] == 2.0


def test_run_queue_delay_is_no_error_of_the_prediction() -> None:
    row = told(trace([Ran((100,), wall=7, promised=2, runqueue=5)]))[0].rows[0]
    assert (row["compile_bias"], row["compile_p95"]) == (0.0, 0.0)


def test_a_run_without_requests_has_no_ledger() -> None:
    found, desk = told(trace([]))
    assert (found.columns, desk.figures) == ({}, [])
    assert score.findings(trace([]), STICK, SLA, np.random.default_rng(1)).table("score.ledger") is None


@given(
    st.lists(st.tuples(st.integers(1, 900), st.floats(0.1, 50), st.sampled_from([0.0, 2.0])), min_size=1, max_size=9)
)
@settings(deadline=None, max_examples=40)
def test_every_request_that_ran_is_in_one_route_and_one_band(ran: list[tuple[int, float, float]]) -> None:
    run = trace([Ran((w,), wall=took, promised=p, arrived=60.0 * i) for i, (w, took, p) in enumerate(ran)])
    found = told(run)[0].rows
    for by in ("all", "route", "band"):
        assert sum(int(str(r["n"])) + int(str(r["unpredicted"])) for r in found if r["by"] == by) == len(ran)
