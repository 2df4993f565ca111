"""The paired block bootstrap and the A/A floor."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parts import run_info
from trimtab.evidence.stats import _blocks, bootstrap, floor
from trimtab.evidence.stats.quantiles import quantile


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def queue(arrivals: np.ndarray, service: np.ndarray) -> np.ndarray:
    """Latencies of one FIFO worker (Lindley's recursion, as a running minimum)."""
    step = np.concatenate(([0.0], service[:-1] - np.diff(arrivals)))
    total = np.cumsum(step)
    return total - np.minimum.accumulate(total) + service


def pair(seed: int, n: int = 3000, load: float = 0.6, faster: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Two replays of the same arrivals and shapes; the second's service times are ``faster`` times the first's."""
    g = rng(seed)
    arrivals, shapes = np.cumsum(g.exponential(1, n)), g.lognormal(-0.125, 0.5, n) * load
    a, b = (shapes * g.lognormal(-0.005, 0.1, n) for _ in range(2))
    return queue(arrivals, a), queue(arrivals, b * faster)


def test_a_clear_change_is_seen_and_its_size_is_inside_the_interval() -> None:
    a, b = pair(1, faster=0.8)
    found = bootstrap.paired_quantile(a, b, 0.95, rng())
    assert found.value == quantile(b, 0.95) / quantile(a, 0.95)
    assert found.interval is not None
    assert found.interval.lo < found.value < found.interval.hi < 0.9
    assert found.p_at_least(1.0) < 0.01
    assert found.p_at_most(1.0) > 0.99
    assert found.reason == ""


def test_the_same_arm_twice_has_ratio_one_and_no_width() -> None:
    a, _ = pair(1)
    found = bootstrap.paired_quantile(a, a, 0.95, rng())
    assert found.interval is not None
    assert (found.value, found.interval.lo, found.interval.hi) == (1.0, 1.0, 1.0)


def test_the_same_seed_gives_the_same_interval() -> None:
    a, b = pair(2)
    one, two = (bootstrap.paired_quantile(a, b, 0.99, rng(5)) for _ in range(2))
    assert one.interval == two.interval


@pytest.mark.parametrize(
    ("baseline", "candidate", "reason"),
    [
        ([], [], "no samples"),
        ([1.0] * 10, [1.0] * 9, "not the same arrivals: 10 against 9 requests"),
        ([1.0] * 10, [1.0] * 10, "10 samples hold 10 blocks of 1; 20 would do"),
        ([math.inf] * 50, [1.0] * 50, "the figure falls among failed requests"),
        ([1.0] * 50, [math.inf] * 50, "the figure falls among failed requests"),
    ],
)
def test_what_cannot_be_computed_is_inconclusive(baseline: list[float], candidate: list[float], reason: str) -> None:
    found = bootstrap.paired_quantile(baseline, candidate, 0.95, rng(), relaxation=0.2)
    assert found.interval is None
    assert found.reason.startswith(reason)
    assert (found.p_at_least(2.0), found.p_at_most(0.5)) == (1.0, 1.0)
    assert math.isnan(found.se_log)


def test_failures_near_the_percentile_are_inconclusive_too() -> None:
    a, b = pair(3)
    b[:140] = math.inf  # p95 itself is finite, not so in many resamples
    found = bootstrap.paired_quantile(a, b, 0.95, rng())
    assert found.value is not None
    assert found.interval is None
    assert "in some resamples" in found.reason


def test_a_long_memory_asks_for_more_requests() -> None:
    a, b = pair(1)
    found = bootstrap.paired_quantile(a, b, 0.95, rng(), relaxation=100)
    assert (found.interval, found.length, found.blocks) == (None, 500, 6)
    assert found.reason == "3000 samples hold 6 blocks of 500; 10000 would do"


@pytest.mark.parametrize(("n", "relaxation", "length"), [(5000, 1, 200), (5000, 60, 300), (10, 1.0, 5), (10, 0.1, 1)])
def test_block_length(n: int, relaxation: float, length: int) -> None:
    assert bootstrap.block_length(n, relaxation) == length


def test_a_percentile_with_few_effective_samples_carries_a_caution() -> None:
    a, b = pair(4, n=3000, load=0.6)
    assert bootstrap.paired_quantile(a, b, 0.95, rng(), resamples=50).caution == ""
    assert "459 are needed" in bootstrap.paired_quantile(a, b, 0.999, rng(), resamples=50).caution.replace(
        "4603", "459"
    )


def test_several_replays_an_arm_share_their_blocks() -> None:
    a, b = pair(1, faster=0.8)
    stacked = bootstrap.paired_quantile(np.stack([a, a]), np.stack([b, b]), 0.95, rng())
    single = bootstrap.paired_quantile(a, b, 0.95, rng())
    assert stacked.value == single.value
    assert stacked.interval is not None
    assert single.interval is not None
    assert stacked.interval.lo == pytest.approx(single.interval.lo, rel=0.01)


@given(st.integers(20, 300), st.integers(1, 10), st.integers(0, 99))
@settings(deadline=None, max_examples=30)
def test_block_sums_are_circular_sums(n: int, length: int, start: int) -> None:
    x = rng(n).normal(size=n)
    direct = sum(x[(start % n + i) % n] for i in range(length))
    assert bootstrap._block_sums(x, length)[start % n] == pytest.approx(direct)


@given(st.integers(20, 200), st.integers(1, 10), st.integers(1, 3), st.sampled_from((0.5, 0.95, 0.99)), st.booleans())
@settings(deadline=None, max_examples=60)
def test_the_quantile_of_each_draw_is_that_of_all_its_values(
    n: int, length: int, replays: int, q: float, crowded: bool
) -> None:
    """``crowded``: the largest values stand together, so that many draws hold too few of them or too many."""
    arm = np.sort(rng(n).normal(size=(replays, n)).round(1)) if crowded else rng(n).normal(size=(replays, n))
    arm[0, 0] = math.inf
    starts = rng(n + 1).integers(0, n, size=(50, math.ceil(n / length)))
    rows = (starts[:, :, None] + np.arange(length)).reshape(50, -1)[:, :n] % n
    direct = [quantile(arm[:, drawn].reshape(-1), q) for drawn in rows]
    assert _blocks.quantiles(arm, starts, length, q).tolist() == direct


def test_a_ratio_of_sums_has_the_interval_that_theory_gives_for_independent_batches() -> None:
    g = rng(8)
    measured = g.uniform(1, 3, 5000)
    best = 0.7 * measured + g.normal(0, 0.2, 5000)
    found = bootstrap.ratio_of_sums(best, measured, rng())
    deviation = (best - 0.7 * measured).std() / (measured.mean() * math.sqrt(5000))
    assert found.value == pytest.approx(best.sum() / measured.sum())
    assert found.interval is not None
    assert found.interval.hi - found.interval.lo == pytest.approx(2 * 1.96 * deviation, rel=0.4)
    assert found.interval.method == "block bootstrap"


def test_a_difference_of_shares_works_where_the_baseline_has_none() -> None:
    nothing, some = np.zeros(2000), (np.arange(2000) % 10 == 0).astype(float)
    assert bootstrap.paired_mean(nothing, some, rng()).interval is None
    found = bootstrap.paired_difference(nothing, some, rng())
    assert found.value == pytest.approx(0.1)
    assert found.interval is not None
    assert found.interval.lo == pytest.approx(0.1, abs=0.01)


@pytest.mark.slow
def test_identical_plans_are_told_apart_in_about_five_percent() -> None:
    alarms = 0
    for seed in range(200):
        a, b = pair(seed, n=4000, load=0.75)
        found = bootstrap.paired_quantile(a, b, 0.95, rng(seed), resamples=200)
        alarms += found.interval is not None and not found.interval.lo <= 1 <= found.interval.hi
    assert 1 <= alarms <= 20


def test_the_floor_is_the_largest_difference_within_a_plan() -> None:
    found = floor.aa_floor([[100.0, 104.0, 102.0], [200.0, 210.0, 220.0]])
    assert found.value == pytest.approx(0.10)
    assert len(found.differences) == 6
    assert not found.provisional


def test_a_floor_of_shares_is_absolute() -> None:
    found = floor.aa_floor([[0.0, 0.01, 0.03]], "absolute")
    assert found.value == pytest.approx(0.03)


@pytest.mark.parametrize(
    ("arms", "value", "reason"),
    [
        ([[1.0, 1.1]], 0.1, "provisional: 2 replays an arm, 3 are needed"),
        ([[1.0, 1.1, 1.0], [2.0]], 0.1, "provisional: 1 replays an arm, 3 are needed"),
        ([[1.0]], None, "one replay an arm: no difference to see"),
        ([], None, "one replay an arm: no difference to see"),
        ([[1.0, math.inf, 1.0]], None, "the figure falls among failed requests in a replay"),
    ],
)
def test_a_floor_that_does_not_hold_is_provisional(arms: list[list[float]], value: float | None, reason: str) -> None:
    found = floor.aa_floor(arms)
    assert found.provisional
    assert found.value == (None if value is None else pytest.approx(value))
    assert found.reason == reason


def test_with_many_replays_the_floor_is_a_quantile_of_the_differences() -> None:
    replays = rng(4).normal(100, 1, 10)
    found = floor.aa_floor([replays.tolist()])
    assert found.value == sorted(found.differences)[math.ceil(0.95 * 45) - 1]


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        ({"plan": "other", "id": "s", "seed": 2}, ()),
        ({"workload_sha256": "x"}, ("workload",)),
        ({"envelope_sha256": "x", "start_state": "cold"}, ("envelope", "start state")),
        ({"versions": {"onnxruntime": "1"}}, ("versions",)),
        ({"source": "measured", "slice": "tune"}, ("source", "slice")),
    ],
)
def test_runs_that_differ_are_not_comparable(change: dict[str, object], differs: tuple[str, ...]) -> None:
    assert floor.incomparable(run_info(), run_info(**change)) == differs
