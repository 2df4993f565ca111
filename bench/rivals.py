"""What the product's search is held against: random, hill climbing and TPE, on any grid of plans, under one budget.

Every search evaluates one plan at least, whatever the budget.

random    as many plans as the budget pays for, drawn, each evaluated once in full
climbing  from a drawn plan to the best of its neighbours in the grid (one step in one direction), while it pays
TPE       the tree-structured Parzen estimator of Optuna, if that is installed, each plan evaluated once in full
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import product
from typing import Protocol

import numpy as np

Point = tuple[int, ...]
"""A plan: its position on each axis."""


class Field(Protocol):
    """A grid of plans with a meter. ``axes``: how many positions each axis has; ``spent`` and ``whole``: what was spent
    so far, and what one evaluation in full costs, in one unit."""

    axes: tuple[int, ...]
    spent: float

    @property
    def whole(self) -> float: ...

    def evaluate(self, point: Point, share: float, seed: int) -> float:
        """Goodput of a plan on the first ``share`` of the traffic; adds to ``spent``."""
        ...


Search = Callable[[Field, float, int], Point]
"""``(field, budget, seed)`` -> the plan that is picked."""


def points(axes: Sequence[int]) -> tuple[Point, ...]:
    """All plans of a grid."""
    return tuple(product(*map(range, axes)))


def neighbours(point: Point, axes: Sequence[int]) -> list[Point]:
    """One step along one axis."""
    found = []
    for axis, step in product(range(len(axes)), (-1, 1)):
        moved = list(point)
        moved[axis] += step
        if 0 <= moved[axis] < axes[axis]:
            found.append(tuple(moved))
    return found


def at_random(field: Field, budget: float, seed: int) -> Point:
    everything, seen = points(field.axes), dict[Point, float]()
    for i in np.random.default_rng(seed).permutation(len(everything)):
        if seen and field.spent + field.whole > budget:
            break
        seen[everything[i]] = field.evaluate(everything[i], 1.0, 1000 * seed)
    return max(seen, key=lambda point: seen[point])


def climbing(field: Field, budget: float, seed: int) -> Point:
    everything, seen = points(field.axes), dict[Point, float]()
    here = everything[int(np.random.default_rng(seed).integers(len(everything)))]
    seen[here] = field.evaluate(here, 1.0, 1000 * seed)
    while True:
        around = neighbours(here, field.axes)
        for point in around:
            if point not in seen and field.spent + field.whole <= budget:
                seen[point] = field.evaluate(point, 1.0, 1000 * seed)
        best = max((p for p in (here, *around) if p in seen), key=lambda point: seen[point])
        if best == here or field.spent + field.whole > budget:
            return max(seen, key=lambda point: seen[point])
        here = best


def parzen(field: Field, budget: float, seed: int) -> Point:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler, seen = optuna.samplers.TPESampler(seed=seed, n_startup_trials=4), dict[Point, float]()
    study = optuna.create_study(direction="maximize", sampler=sampler)
    most = 10 * len(points(field.axes))
    while (not seen or field.spent + field.whole <= budget) and len(study.trials) < most:
        trial = study.ask()
        point = tuple(trial.suggest_int(f"axis {i}", 0, size - 1) for i, size in enumerate(field.axes))
        if point not in seen:  # a plan that is known costs nothing more
            seen[point] = field.evaluate(point, 1.0, 1000 * seed)
        study.tell(trial, seen[point])
    return max(seen, key=lambda point: seen[point])


def all_of_them() -> dict[str, Search]:
    """By name; without TPE where Optuna is not installed."""
    found: dict[str, Search] = {"random": at_random, "hill climbing": climbing}
    return found | ({"TPE": parzen} if find_spec("optuna") else {})
