"""Two arms and the matrix of their cells, for the tests of what passes and what fails."""

from __future__ import annotations

from typing import Any

import numpy as np
from retuning_cases import noisy

from trimtab.domain.study import Guard, Metric, Sla
from trimtab.domain.verdict import MatrixCell
from trimtab.retuning.arms import Arms
from trimtab.retuning.validate import Matrix, validate

P95 = Sla(metric="p95", bound_ms=60.0)
N = 1500


def arm(seed: int, scale: float, replays: int = 3, n: int = N) -> tuple[Any, ...]:
    return tuple(noisy(seed + r, n, scale) for r in range(replays))


def arms(scale: float, *, replays: int = 3, n: int = N, refusal: str = "", condition: str = "normal") -> Arms:
    return Arms(condition, arm(0, 1.0, replays, n), arm(50, scale, replays, n), refusal=refusal)


def judged(given: Arms, *guards: Guard, slices: dict[str, Any] | None = None, sla: Sla = P95) -> Matrix:
    n = len(given.baseline[0]) if given.baseline else 0
    return validate(sla, guards, [given], slices or {"held-out": np.arange(n)}, seed=4, resamples=300)


def guard(metric: Metric, margin: float, slice: str = "held-out") -> Guard:  # noqa: A002
    return Guard(metric=metric, margin=margin, slice=slice)


def the(matrix: Matrix, id_: str) -> MatrixCell:
    return next(cell for cell in matrix.cells if cell.id == id_)
