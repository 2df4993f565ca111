"""Order statistics, independence, sample sizes; scipy is the oracle."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.evidence.stats import quantiles as stats

finite = st.floats(-1e6, 1e6)
samples = st.lists(finite, min_size=1, max_size=60)
shares = st.sampled_from([0.05, 0.5, 0.9, 0.95, 0.99])


def ar1(n: int, rho: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = np.empty(n)
    x[0] = rng.normal()
    for i, noise in enumerate(rng.normal(size=n - 1) * math.sqrt(1 - rho * rho), start=1):
        x[i] = rho * x[i - 1] + noise
    return x


@given(samples, shares)
@settings(deadline=None)
def test_a_quantile_is_numpys_inverted_cdf(values: list[float], q: float) -> None:
    # numpy multiplies n q in floats too: away from whole numbers both must agree
    if abs(len(values) * q - round(len(values) * q)) < 1e-9:
        return
    assert stats.quantile(values, q) == np.quantile(values, q, method="inverted_cdf")


def test_a_quantile_is_a_sample_and_failures_are_infinite() -> None:
    twenty = list(range(1, 21))
    assert stats.quantile(twenty, 0.95) == 19
    assert stats.quantile(range(1, 101), 0.07) == 7
    assert stats.quantile([1.0, 2.0, math.inf], 0.5) == 2.0
    assert stats.quantile([1.0, 2.0, math.inf], 0.95) == math.inf
    assert math.isnan(stats.quantile([], 0.5))


@pytest.mark.parametrize(
    ("values", "deadline", "text"),
    [
        ([0.0123] * 20, None, "12.3 ms"),
        ([0.01] * 17 + [math.inf] * 3, 500.0, "> 500 ms (3 failed)"),
        ([math.inf], None, "> deadline (1 failed)"),
        ([], None, "no samples"),
    ],
)
def test_a_percentile_among_the_failed_says_how_many(values: list[float], deadline: float | None, text: str) -> None:
    assert stats.tail_text(values, 0.95, deadline) == text


@given(st.integers(1, 3000), shares, st.sampled_from([0.8, 0.95, 0.99]))
@settings(deadline=None)
def test_order_ranks_are_the_binomials(n: int, q: float, level: float) -> None:
    half = (1 - level) / 2
    binomial = scipy.stats.binom(n, q)
    found = stats.order_ranks(n, q, level)
    if found is None:
        assert binomial.cdf(0) > half * (1 - 1e-9) or binomial.sf(n - 1) > half * (1 - 1e-9)
        return
    r, s = found
    assert binomial.cdf(r - 1) <= half * (1 + 1e-9) < binomial.cdf(r) * (1 + 2e-9)
    assert binomial.sf(s - 1) <= half * (1 + 1e-9) < binomial.sf(s - 2) * (1 + 2e-9)


def test_the_interval_of_a_median_of_twelve_repeats() -> None:
    interval = stats.beta_interval([12, 3, 5, 1, 2, 4, 6, 7, 8, 9, 10, 11], 0.5)
    assert interval is not None
    assert (interval.lo, interval.hi, interval.method) == (3, 10, "beta")


def test_too_few_samples_have_no_interval() -> None:
    assert stats.beta_interval(range(71), 0.95) is None
    assert stats.beta_interval(range(72), 0.95) is not None
    assert stats.beta_interval([], 0.5) is None


def test_the_autocorrelation_is_the_direct_sum() -> None:
    x = np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0])
    centred = x - x.mean()
    direct = [float((centred[: 8 - k] * centred[k:]).sum() / (centred**2).sum()) for k in range(8)]
    assert stats.autocorrelation(x) == pytest.approx(direct)
    assert stats.autocorrelation([2.0, 2.0, 2.0]) is None
    assert stats.autocorrelation([1.0]) is None


def test_windows_keep_a_drift_out_of_the_autocorrelation() -> None:
    steps = np.repeat([0.0, 100.0], 500) + np.random.default_rng(1).normal(size=1000)
    whole, windowed = stats.autocorrelation(steps), stats.autocorrelation(steps, windows=2)
    assert whole is not None
    assert windowed is not None
    assert whole[1] > 0.9
    assert abs(windowed[1]) < 0.1


def test_independent_samples_are_worth_themselves() -> None:
    worth = stats.effective_samples(np.random.default_rng(3).normal(size=4000), 0.95)
    assert worth.effective == pytest.approx(4000, rel=0.15)
    assert worth.enough


@pytest.mark.parametrize("rho", [0.5, 0.9])
def test_the_autocorrelation_time_of_an_ar1_indicator_matches_the_bivariate_normal(rho: float) -> None:
    x = ar1(40_000, rho, 7)
    z = scipy.stats.norm.ppf(0.95)
    lags = np.arange(1, 80)
    joint = [scipy.stats.multivariate_normal([0, 0], [[1, rho**k], [rho**k, 1]]).cdf([-z, -z]) for k in lags]
    tau = 0.5 + sum((p - 0.05**2) / (0.05 * 0.95) for p in joint)
    assert stats.effective_samples(x, 0.95).tau == pytest.approx(tau, rel=0.15)


def test_what_cannot_be_assessed_is_not_enough() -> None:
    constant = stats.effective_samples([1.0] * 500, 0.95)
    assert (constant.effective, constant.enough) == (None, False)
    assert "no sample lies above" in constant.reason
    assert not stats.effective_samples([], 0.95).enough


def test_a_percentile_among_the_failed_still_has_effective_samples() -> None:
    mixed = np.where(np.arange(1000) % 10 == 0, math.inf, 1.0)
    assert stats.effective_samples(mixed, 0.95).effective is not None


@pytest.mark.parametrize(("q", "needed"), [(0.95, 90), (0.99, 459), (0.5, 7)])
def test_effective_samples_that_a_percentile_needs(q: float, needed: int) -> None:
    assert stats.needed_effective(q) == needed
    assert q**needed <= 0.01 < q ** (needed - 1)


@given(samples)
@settings(deadline=None)
def test_ranks_are_scipys(values: list[float]) -> None:
    assert stats.ranks_of(values).tolist() == (scipy.stats.rankdata(values) - 1).tolist()


def test_the_relaxation_time_of_an_exponential_memory() -> None:
    noise = np.random.default_rng(1).normal(size=20_000)
    memory = 10 * ar1(20_000, math.exp(-1 / 20), 5)
    assert stats.relaxation_requests(memory) == pytest.approx(20, rel=0.2)
    assert stats.relaxation_requests(memory + 10 * noise) == pytest.approx(20, rel=0.3)
    assert stats.relaxation_requests(noise) == pytest.approx(1, abs=0.6)
    assert stats.relaxation_requests([math.inf] * 50) == 1.0


def test_a_drift_is_not_memory_but_a_random_walk_is() -> None:
    rng = np.random.default_rng(2)
    drift = np.linspace(3, 0, 4000) + rng.normal(size=4000)
    assert stats.relaxation_requests(drift) < 4
    assert stats.relaxation_requests(np.cumsum(rng.normal(size=4000))) > 4000 / 110


def test_requests_needed_is_the_power_formula() -> None:
    # 1,000 requests saw a standard error of 5 %; z = 1.95996 + 0.84162; (0.05 x 2.80158 / ln 1.1)^2 = 2.16018
    assert stats.requests_needed(1000, 0.05) == 2161
    assert stats.requests_needed(1000, math.nan) is None


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
@settings(deadline=None)
def test_holm_rejects_what_the_step_down_rejects(p: list[float]) -> None:
    adjusted = stats.holm(p)
    for alpha in (0.01, 0.05, 0.2):
        rejected = set()
        for step, index in enumerate(sorted(range(len(p)), key=p.__getitem__)):
            if p[index] * (len(p) - step) > alpha:
                break
            rejected.add(index)
        assert {i for i, value in enumerate(adjusted) if value <= alpha} == rejected


def test_holm_by_hand_and_what_is_unknown_is_not_rejected() -> None:
    assert stats.holm([0.01, 0.04, 0.03]) == pytest.approx((0.03, 0.06, 0.06))
    assert stats.holm([0.001, math.nan]) == (0.002, 1.0)


@given(st.floats(0.001, 0.999), st.integers(19, 500))
@settings(deadline=None)
def test_the_t_quantile_is_scipys(p: float, degrees: int) -> None:
    assert stats.t_quantile(p, degrees) == pytest.approx(scipy.stats.t.ppf(p, degrees), abs=1e-3)


def test_fairness() -> None:
    assert stats.jain([5, 5, 5, 5]) == pytest.approx(1.0)
    assert stats.jain([1, 0, 0, 0]) == pytest.approx(0.25)
    assert stats.jain([3, 1]) == pytest.approx(0.8)
    assert stats.jain([]) is None
    assert stats.jain([0, 0]) is None
    assert stats.jain([1, math.inf]) is None
    assert stats.worst_to_best([20, 50, 25]) == 2.5
    assert stats.worst_to_best([20, math.inf]) == math.inf
    assert stats.worst_to_best([math.inf, math.inf]) is None
    assert stats.worst_to_best([20]) is None
    assert stats.worst_to_best([0, 3]) is None
