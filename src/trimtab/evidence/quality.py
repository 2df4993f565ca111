"""Output quality: how far a plan's answers lie from the reference plan's, request by request.

Theory. A plan may change numbers in three ways: the runtime computes in another precision, fuses in another order, or
runs a request padded and crops its output. What matters is whether the answer changes, so each metric compares one
request's outputs of the plan with the reference's at true dims, unpadded:

- ``argmax-agreement``: share of positions (all axes but the last) whose largest entry is the same one. For classifiers
  and sequence labelling. Formula: mean over positions p of [argmax_k test[p, k] = argmax_k ref[p, k]].
- ``max-error``: largest absolute difference of any element. Lower is better; the "floor" is then a ceiling.
- ``cosine``: cosine similarity of the flattened outputs; for embeddings. Two zero vectors agree (1).

A request with several outputs scores its worst one. No answer, an answer of another shape, or one that is not finite
where the reference is, scores the worst value there is. Limits: agreement with a reference is not accuracy against
labels; near ties (two classes almost equal) disagree in any precision, which the margin of the floor must allow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.study import QualityMetric

Outputs: TypeAlias = Mapping[str, NDArray[Any]]

WORST: dict[QualityMetric, float] = {"argmax-agreement": 0.0, "max-error": float("inf"), "cosine": -1.0}


def argmax_agreement(test: NDArray[Any], ref: NDArray[Any]) -> float:
    """Share of positions with the same largest class along the last axis, 0..1."""
    return float(np.mean(test.argmax(axis=-1) == ref.argmax(axis=-1)))


def max_error(test: NDArray[Any], ref: NDArray[Any]) -> float:
    """Largest absolute difference, in the output's own unit. Equal infinities differ by 0."""
    one, two = test.astype(np.float64), ref.astype(np.float64)
    same = one == two
    return float(np.abs(np.where(same, 0.0, one) - np.where(same, 0.0, two)).max())


def cosine(test: NDArray[Any], ref: NDArray[Any]) -> float:
    """Cosine of the angle between the flattened outputs, -1..1. A zero vector agrees only with another."""
    one, two = test.astype(np.float64).ravel(), ref.astype(np.float64).ravel()
    norm = float(np.linalg.norm(one) * np.linalg.norm(two))
    if norm == 0.0:
        return 1.0 if not one.any() and not two.any() else 0.0
    return float(np.clip(one @ two / norm, -1.0, 1.0))


METRICS: dict[QualityMetric, Callable[[NDArray[Any], NDArray[Any]], float]] = {
    "argmax-agreement": argmax_agreement,
    "max-error": max_error,
    "cosine": cosine,
}


def score(metric: QualityMetric, test: Outputs | None, ref: Outputs) -> float:
    """One request: the worst of its outputs; the worst value there is where it has no comparable answer."""
    if test is None or test.keys() != ref.keys():
        return WORST[metric]
    values = [_one(metric, test[name], ref[name]) for name in ref]
    return max(values) if metric == "max-error" else min(values)


def scores(metric: QualityMetric, pairs: Sequence[tuple[Outputs | None, Outputs]]) -> NDArray[np.float64]:
    """float64[n]: :func:`score` of each (plan's outputs, reference's outputs)."""
    return np.array([score(metric, test, ref) for test, ref in pairs], dtype=np.float64)


def summary(metric: QualityMetric, values: NDArray[np.float64]) -> float:
    """One figure for all requests: the mean agreement or cosine, but the LARGEST error. nan where there are none."""
    if not values.size:
        return float("nan")
    return float(values.max() if metric == "max-error" else values.mean())


def meets(metric: QualityMetric, value: float, floor: float) -> bool:
    """Whether a value is good enough; nan never is."""
    return value <= floor if metric == "max-error" else value >= floor


def _one(metric: QualityMetric, test: NDArray[Any], ref: NDArray[Any]) -> float:
    if test.shape != ref.shape or not ref.size or (np.isfinite(ref) & ~np.isfinite(test)).any():
        return WORST[metric]
    return METRICS[metric](test, ref)
