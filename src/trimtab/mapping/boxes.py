"""Fit the entries of two or more dynamic dims to the shapes that really arrive, over measured milliseconds.

Question. A request of dims ``s`` may run in any box ``b`` with ``s <= b`` in every dim, padded up to ``b``, at
``cost(b)`` ms. Which ``k`` boxes make the whole workload cheapest?

Method. With two dims boxes overlap, so the recurrence of :mod:`.buckets` does not hold: this is the uncapacitated
p-median problem. Let ``y_b`` say that box ``b`` is compiled, ``x_sb`` which share of requests of shape ``s`` it runs:

    min  sum_sb n_s cost(b) x_sb + sum_b price y_b
    with sum_b x_sb = 1,   x_sb <= y_b,   sum_b y_b <= k,   y_b in {0, 1}

Only ``y`` has to be whole: for given boxes each shape takes the cheapest that covers it. HiGHS solves it as a mixed
integer programme (Q. Huangfu, J. Hall, "Parallelizing the dual revised simplex method", Math. Prog. Comp. 2018).
Candidate boxes are the corners of a grid over the distinct values of each dim, thinned to ``grid`` values a dim that
hold about equal numbers of requests; the largest value always stays. On the grid the answer is exact.

``price`` is what one more entry costs, in the milliseconds that it must win back over these requests: compile time,
warm-up and memory as the caller weighs them.

Limits. As in :mod:`.buckets`: the total is minimised, not the tail; costs are per request at batch size 1. A thinned
grid rounds shapes up before the fit, so its total may lie above the best one by that rounding. HiGHS comes with the
optional dependency scipy (MissingTool without it); its own Python package prints to the standard output.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.noun import Dims, Noun
from trimtab.errors import MissingTool, RunError, StudyError

Cost = Callable[[Dims], float]
"""Milliseconds of one request in an entry compiled at these dims."""

GRID = 10
"""Candidate values a dim: 100 boxes with two dims, some 3,000 assignments, a second or two."""


class BoxFit(Noun, frozen=True, kw_only=True):
    """The chosen boxes, smallest first, and what they cost: ``total_ms`` over all requests, ``mean_ms`` per request,
    ``padding`` the share of executed positions that are padding."""

    boxes: tuple[Dims, ...]
    total_ms: float
    mean_ms: float
    padding: float


def fit(
    dims: NDArray[np.int64],
    cost: Cost,
    k: int,
    *,
    price_ms: float = 0.0,
    grid: int = GRID,
    limit: Dims | None = None,
) -> BoxFit:
    """The cheapest at most ``k`` boxes for ``dims`` int64[n, d]; every shape is covered. ``limit``: no box beyond it.

    Raises StudyError for a slice without requests or ``k`` below 1, MissingTool without scipy.
    """
    if dims.ndim != 2 or not len(dims):
        raise StudyError("Boxes cannot be fitted to a slice without requests.", fix="Choose a longer tune slice.")
    if k < 1:
        raise StudyError(f"Cannot fit {k} boxes.", fix="Ask for at least one.")
    axes = [_axis(dims[:, d], grid, limit[d] if limit else None) for d in range(dims.shape[1])]
    shapes, counts = _shapes(dims, axes)
    boxes = np.stack([column.ravel() for column in np.meshgrid(*axes, indexing="ij")], axis=1)
    price = np.array([cost(tuple(box)) for box in boxes.tolist()])
    covers = np.all(shapes[:, None, :] <= boxes[None, :, :], axis=2)
    chosen = boxes[_solve(counts, price, covers, k, price_ms)]
    return measure(dims, [tuple(box) for box in chosen.tolist()], cost)


def measure(dims: NDArray[np.int64], boxes: list[Dims], cost: Cost) -> BoxFit:
    """What ``boxes`` cost for ``dims``: each shape takes the cheapest box that covers it. StudyError if none does."""
    found, counts = np.unique(dims, axis=0, return_counts=True)
    ends = np.array(boxes, dtype=np.int64)
    price = np.array([cost(box) for box in boxes])
    covered = np.all(found[:, None, :] <= ends[None, :, :], axis=2)
    bare = np.flatnonzero(~covered.any(axis=1))
    if bare.size:
        shape = tuple(found[bare[0]].tolist())
        raise StudyError(f"No box covers the shape {shape}.", where="boxes", fix="Add a larger one.")
    taken = np.argmin(np.where(covered, price, np.inf), axis=1)
    total = float(counts @ price[taken])
    executed = float(counts @ ends[taken].prod(axis=1))
    used = sorted({tuple(ends[i].tolist()) for i in np.unique(taken)})
    return BoxFit(
        boxes=tuple(used),
        total_ms=total,
        mean_ms=total / float(counts.sum()),
        padding=1.0 - float(counts @ found.prod(axis=1)) / executed,
    )


def _axis(column: NDArray[np.int64], grid: int, limit: int | None) -> NDArray[np.int64]:
    """At most ``grid`` candidate values of one dim, about equally many requests between two; the largest is kept."""
    if limit is not None and int(column.max()) > limit:
        raise StudyError(
            f"The shapes reach {int(column.max())}, beyond the limit {limit}.",
            where="dims",
            fix="Raise the upper end of the dim's range, or drop those requests.",
        )
    shares = (np.arange(grid) + 1) / grid
    return np.unique(np.quantile(column, shares, method="inverted_cdf")).astype(np.int64)


def _shapes(dims: NDArray[np.int64], axes: list[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct shapes, rounded up to the grid, and how often each came."""
    up = [axis[np.searchsorted(axis, dims[:, d])] for d, axis in enumerate(axes)]
    found, counts = np.unique(np.stack(up, axis=1), axis=0, return_counts=True)
    return found.astype(np.int64), counts.astype(np.int64)


def _solve(
    counts: NDArray[np.int64], price: NDArray[np.float64], covers: NDArray[np.bool_], k: int, price_ms: float
) -> NDArray[np.int64]:
    """Positions of the chosen boxes. Columns of the programme: y of every box, then x of every pair that fits."""
    try:
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import coo_array
    except ImportError:
        raise MissingTool(
            "scipy is not installed", where="buckets of two dims", fix="pip install 'trimtab[search]'"
        ) from None
    shape, box = np.nonzero(covers)
    boxes, shapes, pairs = price.size, counts.size, shape.size
    x, pair = boxes + np.arange(pairs), np.arange(pairs)
    row = np.concatenate((shape, shapes + pair, shapes + pair, np.full(boxes, shapes + pairs)))
    column = np.concatenate((x, x, box, np.arange(boxes)))
    value = np.concatenate((np.ones(pairs), np.ones(pairs), -np.ones(pairs), np.ones(boxes)))
    matrix = coo_array((value, (row, column)), shape=(shapes + pairs + 1, boxes + pairs)).tocsr()
    low = np.concatenate((np.ones(shapes), np.full(pairs + 1, -np.inf)))
    high = np.concatenate((np.ones(shapes), np.zeros(pairs), [float(k)]))
    whole = float(counts.max())  # costs near 1 keep the solver's tolerances meaningful
    found = milp(
        np.concatenate((np.full(boxes, price_ms), counts[shape] * price[box])) / whole,
        integrality=np.concatenate((np.ones(boxes), np.zeros(pairs))),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(matrix, low, high),
        options={"mip_rel_gap": 0.0},
    )
    if not found.success:
        raise RunError(f"HiGHS ends with {found.message!r}", where="boxes", fix="fit fewer boxes, or a coarser grid")
    return np.flatnonzero(found.x[:boxes] > 0.5)
