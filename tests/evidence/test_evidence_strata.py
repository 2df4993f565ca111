"""Resamples that draw groups apart."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from trimtab.evidence.stats import strata
from trimtab.evidence.stats.quantiles import quantile


@pytest.mark.parametrize(("q", "few", "spare"), [(0.5, 30, 3), (0.9, 8, 3), (0.95, 5, 1), (0.9, 60, 1), (0.99, 40, 3)])
def test_groups_drawn_apart_have_the_quantiles_of_drawing_everything(
    q: float, few: int, spare: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With little to spare most draws miss the quantile at first, and are completed."""
    monkeypatch.setattr(strata, "SPARE", spare)
    g = np.random.default_rng(few)
    before = g.exponential(size=400)
    touched = np.zeros(400, dtype=bool)
    touched[g.choice(400, few, replace=False)] = True
    before[touched] += 2
    after = before - touched * g.uniform(0, 2, 400)
    found = strata.quantiles((before, after), (touched, ~touched), q, np.random.default_rng(1), 1500)
    groups = [np.flatnonzero(touched), np.flatnonzero(~touched)]
    direct = []
    for _ in range(1500):
        rows = np.concatenate([g.choice(group, group.size) for group in groups])
        direct.append((quantile(before[rows], q), quantile(after[rows], q)))
    for one, other in zip(found.T, np.array(direct).T, strict=True):
        assert scipy.stats.ks_2samp(one, other).pvalue > 0.001
    assert scipy.stats.ks_2samp(found[:, 1] / found[:, 0], [b / a for a, b in direct]).pvalue > 0.001
