"""Output quality: how far a plan's answers lie from the reference plan's, request by request.

Theory. A plan may change numbers in three ways: the runtime computes in another precision, fuses in another order, or
runs a request padded and crops its output. What matters is whether the answer changes, so each metric compares one
request's outputs of the plan with the reference's at true dims, unpadded:

- ``argmax-agreement``: share of positions (all axes but the last) whose largest entry is the same one. For classifiers
  and sequence labelling. Formula: mean over positions p of [argmax_k test[p, k] = argmax_k ref[p, k]].
- ``max-error``: largest absolute difference of any element. Lower is better; the "floor" is then a ceiling.
- ``cosine``: cosine similarity of the flattened outputs; for embeddings. Two zero vectors agree (1).
- ``neighbour-agreement``: 1 where the request's nearest other request by cosine, among all that were sampled, is the
  one that the reference finds, else 0. For embeddings that are searched. Of neighbours that the reference holds to be
  equally near (within 1e-6) either will do. It needs outputs of one size, and three requests.
- ``agreement-function`` and ``error-function``: the user's own, computed elsewhere and taken as they are.

A request with several outputs scores its worst one. No answer, an answer of another shape (a shape that depends on the
data may come out longer where a request is padded), or one that is not finite where the reference is, scores the worst
value there is, and :func:`mismatch` says why. Where the reference itself is infinite (masked logits) the same infinity
agrees; ``cosine`` leaves such positions out.

Two metrics say nothing of an output with one value: the largest of one class is always the same one, and the cosine of
one number is its sign. Such an output is refused (:func:`require_judge`), for it would pass whatever a plan answers.

Limits: agreement with a reference is not accuracy against labels; near ties (two classes almost equal) disagree in any
precision, which the margin of the floor must allow. Nearest among a few samples is an easier question than nearest
among millions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.study import ERRORS, QualityMetric
from trimtab.errors import StudyError

Outputs: TypeAlias = Mapping[str, NDArray[Any]]
Floats: TypeAlias = NDArray[np.float64]

WORST: dict[QualityMetric, float] = {
    "argmax-agreement": 0.0,
    "max-error": float("inf"),
    "cosine": -1.0,
    "neighbour-agreement": 0.0,
    "agreement-function": 0.0,
    "error-function": float("inf"),
}

TIE = 1e-6
FEWEST_NEIGHBOURS = 3


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
    known = np.isfinite(two) & np.isfinite(one)
    one, two = one[known], two[known]
    norm = float(np.linalg.norm(one) * np.linalg.norm(two))
    if norm == 0.0:
        return 1.0 if not one.any() and not two.any() else 0.0
    return float(np.clip(one @ two / norm, -1.0, 1.0))


def neighbour_agreement(test: Floats, ref: Floats) -> NDArray[np.bool_]:
    """bool[n]: whether the nearest other row is the same one, of float64[n, d] embeddings. A row of nan in ``test`` has
    no neighbour and is nobody's."""
    own, theirs = _similarity(test), _similarity(ref)
    nearest = own.argmax(axis=1)
    as_near = theirs[np.arange(len(ref)), nearest] >= theirs.max(axis=1) - TIE
    return np.asarray(as_near & np.isfinite(own.max(axis=1)))


METRICS: dict[QualityMetric, Callable[[NDArray[Any], NDArray[Any]], float]] = {
    "argmax-agreement": argmax_agreement,
    "max-error": max_error,
    "cosine": cosine,
}


def mismatch(test: Outputs, ref: Outputs) -> str:
    """Why two answers cannot be compared; an empty string: they can."""
    if test.keys() != ref.keys():
        return f"it gives {', '.join(test) or 'nothing'}, the reference {', '.join(ref) or 'nothing'}"
    return next((why for name in ref if (why := _mismatch(name, test[name], ref[name]))), "")


def scores(metric: QualityMetric, given: Sequence[Outputs | None], reference: Sequence[Outputs | None]) -> Floats:
    """float64[n]: each request's value, over its worst output. nan where the reference has no answer; the worst value
    there is where only the plan has none. Not for FUNCTIONS."""
    if metric == "neighbour-agreement":
        return _neighbours(given, reference)
    pairs = zip(given, reference, strict=True)
    return np.array([np.nan if ref is None else _score(metric, test, ref) for test, ref in pairs], dtype=np.float64)


def require_judge(metric: QualityMetric, reference: Sequence[Outputs]) -> None:
    """StudyError where the metric is blind to an output in every answer of the reference."""
    for name in reference[0] if reference else ():
        said = [blind(metric, outputs[name]) for outputs in reference]
        if all(said):
            raise StudyError(
                f"{metric} cannot judge output {name!r} of shape {list(reference[0][name].shape)}: {said[0]}",
                where="quality.metric",
                fix="use max-error or a function of your own, or name another output in model.outputs",
            )


def blind(metric: QualityMetric, array: NDArray[Any]) -> str:
    """Why every answer of this shape agrees with every other; an empty string: answers can differ."""
    if metric == "argmax-agreement" and array.ndim and array.shape[-1] == 1:
        return "its last axis holds one class, which is always the largest"
    if metric in ("cosine", "neighbour-agreement") and array.size == 1:
        return "it holds one value, and a cosine sees nothing of it but the sign"
    return ""


def refusal(metric: QualityMetric, value: float) -> str:
    """Why a value cannot come from a user's function; an empty string: it can."""
    if metric == "error-function":
        return "" if value >= 0 else f"an error is a number from 0, not {value:g}"
    return "" if 0 <= value <= 1 else f"an agreement is a number from 0 to 1, not {value:g}"


def summary(metric: QualityMetric, values: Floats, weights: Floats | None = None) -> float:
    """One figure for all requests: the mean agreement or cosine, but the LARGEST error; nan where there are none.
    ``weights``: how many requests of traffic each stands for; every answer counts alike without them."""
    if not values.size:
        return float("nan")
    return float(values.max() if metric in ERRORS else np.average(values, weights=weights))


def meets(metric: QualityMetric, value: float, floor: float) -> bool:
    """Whether a value is good enough; nan never is."""
    return value <= floor if metric in ERRORS else value >= floor


def _score(metric: QualityMetric, test: Outputs | None, ref: Outputs) -> float:
    if test is None or mismatch(test, ref):
        return WORST[metric]
    values = [METRICS[metric](test[name], ref[name]) for name in ref]
    return max(values) if metric in ERRORS else min(values)


def _mismatch(name: str, test: NDArray[Any], ref: NDArray[Any]) -> str:
    if test.shape != ref.shape:
        return f"output {name!r} has shape {list(test.shape)}, the reference's {list(ref.shape)}"
    if not ref.size:
        return f"output {name!r} is empty"
    if (~np.isfinite(test) & (test != ref)).any():
        return f"output {name!r} is not finite where the reference is"
    return ""


def _neighbours(given: Sequence[Outputs | None], reference: Sequence[Outputs | None]) -> Floats:
    known = [row for row, ref in enumerate(reference) if ref is not None]
    values = np.full(len(reference), np.nan)
    if len(known) < FEWEST_NEIGHBOURS:
        return values
    refs = [reference[row] or {} for row in known]
    tests = [None if (test := given[row]) is None or mismatch(test, ref) else test
             for row, ref in zip(known, refs, strict=True)]  # fmt: skip
    same = [neighbour_agreement(*_embeddings(name, tests, refs)) for name in refs[0]]
    values[known] = np.all(same, axis=0)
    return values


def _embeddings(name: str, tests: Sequence[Outputs | None], refs: Sequence[Outputs]) -> tuple[Floats, Floats]:
    """One flattened output of every request: the plan's (nan where it has no answer) and the reference's."""
    shapes = sorted({ref[name].shape for ref in refs})
    if len({int(np.prod(shape)) for shape in shapes}) > 1:
        raise StudyError(
            f"neighbour-agreement compares outputs of one size; output {name!r} has shapes "
            f"{' and '.join(str(list(shape)) for shape in (shapes[0], shapes[-1]))}",
            where="quality.metric",
            fix="name only the embedding in model.outputs, or use cosine",
        )
    theirs = np.stack([ref[name].astype(np.float64).ravel() for ref in refs])
    nothing = np.full(theirs.shape[1], np.nan)
    own = np.stack([nothing if test is None else test[name].astype(np.float64).ravel() for test in tests])
    return own, theirs


def _similarity(rows: Floats) -> Floats:
    """Cosine of every pair of rows; -inf beside itself and where a row is not known. A zero row is like no other."""
    norm = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = np.divide(rows, norm, out=np.zeros_like(rows), where=norm > 0)
    alike = unit @ unit.T
    unknown = np.isnan(norm[:, 0])
    alike[unknown, :] = -np.inf
    alike[:, unknown] = -np.inf
    np.fill_diagonal(alike, -np.inf)
    return np.asarray(alike)
