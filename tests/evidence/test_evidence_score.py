"""Mapping accuracy, its loss, promises, and what adapting wins."""

from __future__ import annotations

import math

import numpy as np
import pytest
from evidence_cases import SLA, Line, Ran, Silent, dynamic, trace
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.domain.figure import Interval
from trimtab.domain.score import LOSS_CAUSES
from trimtab.domain.trace import Trace
from trimtab.evidence.score import accuracy as score
from trimtab.evidence.score import gain
from trimtab.evidence.score.batches import Batches, Yardstick, coverage, measure
from trimtab.evidence.score.measured import Measured
from trimtab.evidence.score.reference import ReferenceSet
from trimtab.evidence.stats.floor import aa_floor

LINE = Line(fixed=1.0, slope=0.01)  # a width of 100 takes 2 ms alone
ALONE = ReferenceSet((dynamic("ref", batch=(1, 1)),), LINE, 1)


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def yardstick(promise: Line | Silent = LINE, best: ReferenceSet = ALONE) -> Yardstick:
    return Yardstick(promise, LINE, "ref", best)


def shares(batches: Batches) -> dict[str, float]:
    return {cause: round(batches.lost(cause), 6) for cause in LOSS_CAUSES}


NOTHING = dict.fromkeys(LOSS_CAUSES, 0.0)


@pytest.mark.parametrize(
    ("batch", "accuracy", "lost"),
    [
        # width 100: promised 2 ms, ran 2 ms
        (Ran((100,), wall=2, promised=2), 1.0, {}),
        # the first run took 10 ms: 8 of 10 lost to cold
        (Ran((100,), wall=10, promised=2, first=True), 0.2, {"cold": 0.8}),
        # the same without being a first run
        (Ran((100,), wall=10, promised=2), 0.2, {"interference": 0.8}),
        # faster than promised: above 1, negative interference
        (Ran((100,), wall=1.6, promised=2), 1.25, {"interference": -0.25}),
        # run-queue delay is no run time
        (Ran((100,), wall=7, promised=2, runqueue=5), 1.0, {}),
        # width 100 in a bucket of 300: 4 ms for what takes 2
        (Ran((100,), wall=4, promised=4, executed=300), 0.5, {"padding": 0.5}),
        # two members of width 100 and 300 ran as one batch of 2 x 300: 7 ms; alone 2 + 4
        (Ran((100, 300), wall=7, promised=7), 6 / 7, {"padding": 1 / 7}),
    ],
)
def test_one_batch(batch: Ran, accuracy: float, lost: dict[str, float]) -> None:
    found = measure(trace([batch]), yardstick())
    assert found.mapping() == pytest.approx(accuracy)
    assert shares(found) == pytest.approx(NOTHING | lost, abs=1e-6)


def test_a_dearer_kernel_is_premium() -> None:
    # the plan's entry takes 3 times as long as the reference at every shape
    found = measure(trace([Ran((100,), wall=6, promised=6)]), yardstick(Line(dyn=3.0)))
    assert shares(found) == pytest.approx(NOTHING | {"premium": 4 / 6}, abs=1e-6)


def test_an_entry_faster_than_the_reference_is_no_loss() -> None:
    fast = Line(dyn=0.5)
    best = ReferenceSet((dynamic("dyn"),), fast, 1) | ALONE
    found = measure(trace([Ran((100,), wall=1, promised=1)]), yardstick(fast, best))
    assert (found.mapping(), shares(found)) == (1.0, NOTHING)


def test_what_no_profile_knows_is_unprofiled_and_not_dropped() -> None:
    found = measure(trace([Ran((100,), wall=5)]), Yardstick(Silent(), Silent(), "ref", ReferenceSet((), Silent(), 1)))
    assert (found.mapping(), found.promise()) == (0.0, 0.0)
    assert shares(found) == NOTHING | {"unprofiled": 1.0}


def test_a_missing_promise_leaves_the_best_time_known() -> None:
    found = measure(trace([Ran((100,), wall=5)]), yardstick(Silent()))
    assert found.mapping() == pytest.approx(0.4)
    assert shares(found) == pytest.approx(NOTHING | {"unprofiled": 0.6}, abs=1e-6)


ran = st.builds(
    Ran,
    widths=st.lists(st.integers(1, 900), min_size=1, max_size=4).map(tuple),
    wall=st.floats(0.1, 50),
    promised=st.sampled_from([0.0, 2.0, 9.0]),
    runqueue=st.floats(0, 0.1),
    first=st.booleans(),
    executed=st.sampled_from([0, 950]),
    error=st.sampled_from(["none", "none", "crash"]),
)


@given(st.lists(ran, min_size=1, max_size=8), st.sampled_from([LINE, Line(dyn=2.0), Silent()]))
@settings(deadline=None, max_examples=60)
def test_the_losses_add_up_to_what_accuracy_lacks(batches: list[Ran], promise: Line | Silent) -> None:
    found = measure(trace(batches), yardstick(promise))
    assert np.array_equal(sum(found.loss.values()), found.measured - found.best)
    assert found.failed == sum(one.error != "none" for one in batches)
    assert found.row.size + found.failed == len(batches)


def test_promise_accuracy_with_and_without_first_runs() -> None:
    found = measure(
        trace(
            [
                Ran((100,), wall=12, promised=2, first=True, arrived=0),
                Ran((100,), wall=3, promised=2, arrived=50),
                Ran((100,), wall=1, promised=2, arrived=100),
            ]
        ),
        yardstick(),
    )
    warm = ~found.first
    assert found.promise() == pytest.approx(1 - (10 + 1 + 1) / 16)
    assert found.promise(warm) == pytest.approx(1 - (1 + 1) / 4)
    assert found.bias() == pytest.approx((10 + 1 - 1) / 16)
    assert found.bias(warm) == 0.0


def test_coverage_counts_requests_on_compiled_routes() -> None:
    kinds = ["exact", "padded", "dynamic", "fallback"]
    batches = [Ran((100,), wall=2, route=kind, arrived=i) for i, kind in enumerate(kinds)]
    assert coverage(trace(batches)) == 0.75


# --- findings -----------------------------------------------------------------------------------------------


def traffic(n: int = 600, cold: int = 0, slow: float = 1.0, **info: object) -> Trace:
    """n requests 20 ms apart, widths 100..299 in turn; the first ``cold`` are first runs of 30 ms."""
    batches = []
    for i in range(n):
        width = 100 + (i * 7) % 200
        warm = 1 + 0.01 * width
        wall = 30.0 if i < cold else warm * slow * (1 + 0.02 * math.sin(i))
        batches.append(
            Ran((width,), wall=wall, promised=warm, first=i < cold, arrived=20.0 * i, started=20.0 * i + 0.1)
        )
    return trace(batches, **info)


def test_findings_of_a_fitting_run() -> None:
    found = score.findings(traffic(), yardstick(), SLA, rng())
    mapping = found.figure("score.mapping_accuracy")
    assert mapping is not None
    assert mapping.value == pytest.approx(1.0, abs=0.01)
    assert mapping.interval is not None
    assert mapping.interval.lo <= mapping.value <= mapping.interval.hi
    assert "the mapping fits its traffic" in found.headline
    assert found.findings[0].owner == "observability"
    assert {s.id for s in found.series} == {
        "score.windows", "score.loss", "score.bands", "score.routes", "score.shapes", "score.ledger",
    }  # fmt: skip
    assert len({figure.id for figure in found.figures}) == len(found.figures)


def test_windows_hold_at_least_200_requests_and_show_the_drift() -> None:
    windows = score.findings(traffic(cold=150), yardstick(), SLA, rng()).table("score.windows")
    assert windows is not None
    assert windows.columns["requests"] == (200, 200, 200)
    assert windows.columns["first_runs"] == (150, 0, 0)
    first, second, third = windows.columns["mapping_accuracy"]
    assert isinstance(first, float)
    assert first < 0.2
    assert second == pytest.approx(1.0, abs=0.02)
    assert third == pytest.approx(1.0, abs=0.02)


def test_a_cold_run_is_read_as_such() -> None:
    found = score.findings(traffic(cold=300), yardstick(), SLA, rng())
    assert "cold is the largest loss" in found.headline
    assert found.headline.endswith("Refit the entries to the shapes seen, and warm these at start (runtime lead).")


def test_predicted_against_measured_by_shape() -> None:
    batches = [Ran((100,), wall=w, promised=2, arrived=i * 20.0) for i, w in enumerate((2.2, 2.0, 2.4))]
    batches += [Ran((90,), wall=9, promised=2, executed=100, first=True, arrived=60, route="padded")]
    batches += [Ran((300,), wall=4, arrived=80)]
    shapes = score.findings(trace(batches), yardstick(), SLA, rng()).table("score.shapes")
    assert shapes is not None
    row = {name: column[0] for name, column in shapes.columns.items()}
    assert row == {
        "entry": "dyn", "executed": "1x100", "true": "90..100", "promised": 2.0, "expected": 2.0, "measured": 2.2,
        "measured_p95": 2.4, "n": 3, "first_runs": 1, "error": 0.1,
    }  # fmt: skip
    assert [shapes.columns[name][1] for name in ("promised", "error", "n")] == [None, None, 1]


def test_bands_and_routes_count_every_request_once() -> None:
    found = score.findings(traffic(cold=10), yardstick(), SLA, rng())
    bands, routes = found.table("score.bands"), found.table("score.routes")
    assert bands is not None
    assert routes is not None
    assert sum(v for v in bands.columns["requests"] if isinstance(v, int)) == 600
    assert bands.columns["lo"][0] == 100
    assert routes.columns["route"] == ("dynamic", "(first runs)")
    assert routes.columns["requests"] == (600, 10)


def test_simulated_beside_replayed() -> None:
    replayed = [traffic(slow=slow) for slow in (1.0, 1.1, 1.2)]
    found = score.findings(replayed[0], yardstick(), SLA, rng(), simulated=[traffic(slow=0.99)], replayed=replayed)
    table = found.table("score.simulation")
    assert table is not None
    assert table.columns["metric"] == ("p50", "p95", "p99")
    error, floor = table.columns["error"][1], table.columns["floor"][1]
    assert error == pytest.approx(0.99 / 1.1 - 1, abs=0.01)
    assert floor == pytest.approx(0.2, abs=0.02)


def test_an_empty_run_has_no_accuracy_and_says_so() -> None:
    found = score.findings(trace([]), yardstick(), SLA, rng())
    mapping = found.figure("score.mapping_accuracy")
    assert mapping is not None
    assert (mapping.value, found.status) == (None, "partial")
    assert found.headline.startswith("Mapping accuracy cannot be read (no samples)")


# --- gain, headroom, capture --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "static", "adapted", "expected"),
    [
        ("p95", 100.0, 80.0, 0.2),
        ("p99", 100.0, 120.0, -0.2),
        ("goodput", 0.8, 0.9, 0.125),
        ("goodput", 0.8, 0.6, -0.25),
        ("p95", 0.0, 1.0, None),
        ("p95", math.inf, 1.0, None),
    ],
)
def test_gain_is_positive_where_it_is_better(
    metric: str, static: float, adapted: float, expected: float | None
) -> None:
    found = gain.gain(metric, static, adapted)  # type: ignore[arg-type]
    assert found == (None if expected is None else pytest.approx(expected))


def test_the_gain_of_a_faster_run_has_an_interval() -> None:
    measured = Measured(static=(traffic(),), adapted=(traffic(slow=0.8),))
    found = score.findings(traffic(), yardstick(), SLA, rng(), measured=measured)
    figure = found.figure("score.measured_gain")
    assert figure is not None
    assert figure.value == pytest.approx(0.2, abs=0.01)
    assert figure.interval is not None
    assert figure.interval.lo > 0.15
    assert "run-time adaptation wins back" in found.headline
    windows = found.table("score.windows")
    assert windows is not None
    assert windows.columns["gain_p95"][0] == pytest.approx(0.2, abs=0.01)


def test_runs_that_differ_have_no_gain() -> None:
    measured = Measured(static=(traffic(),), adapted=(traffic(workload_sha256="other"),))
    found = score.findings(traffic(), yardstick(), SLA, rng(), measured=measured)
    figure = found.figure("score.measured_gain")
    assert figure is not None
    assert figure.value is None
    assert figure.note == "refused: the runs differ in workload"


def test_the_clairvoyant_takes_the_best_plan_of_each_window() -> None:
    values = np.array([[5.0, 3.0], [math.nan, 9.0], [2.0, 2.0], [math.inf, 4.0]])
    assert gain.clairvoyant(values, "p95").tolist() == [1, 1, 0, 1]
    assert gain.clairvoyant(np.array([[0.9, 0.8], [math.nan, 0.1]]), "goodput").tolist() == [0, 1]


HELD = aa_floor([[1.0, 1.01, 1.03]])


@pytest.mark.parametrize(
    ("interval", "floor", "value", "reason"),
    [
        (Interval(lo=0.2, hi=0.4), HELD, 0.5, ""),
        (Interval(lo=0.02, hi=0.4), HELD, None, "nothing to capture"),
        (None, HELD, None, "headroom has no interval: nothing to capture is shown"),
        (Interval(lo=0.2, hi=0.4), aa_floor([[1.0, 1.1]]), None, "the floor does not hold yet"),
    ],
)
def test_capture(interval: Interval | None, floor: object, value: float | None, reason: str) -> None:
    found = gain.capture(0.15, 0.3, interval, floor)  # type: ignore[arg-type]
    assert found.value == value
    assert found.reason.startswith(reason)
