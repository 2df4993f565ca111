"""One entry more, or one entry less: the smallest changes of what is compiled.

Both are priced on the tune slice by measured time. A request costs what the entry that takes it costs: at its end if
the request is padded, at its own dims if the entry is dynamic. There every new shape also pays its first run, once:

    cost(plan) = sum over shapes s of  n_s T(executed dims of s)  +  first-run excess of s, where s runs cold

An entry that ends at ``e`` takes the shapes below ``e`` that no smaller entry takes already (the router's own rule), so
each end that traffic shows is tried, exactly. Every entry that may go is left out once, and routing done again.

Limits. Batches of one, one worker; a shape's excess is that of the entry's profile, zero where it has none.
"""

from __future__ import annotations

import math

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from trimtab.domain.noun import Dims
from trimtab.domain.plan import Entry, Plan
from trimtab.domain.verdict import Move
from trimtab.mapping.route import Router
from trimtab.retuning._change import add_entry, bucket, drop_entry, rank
from trimtab.retuning._collector import Collector


def entry_moves(found: Collector) -> None:
    """Offer the entry whose addition saves most, and the entry whose loss costs least, where the space names them."""
    for change in found.study.space.entries:
        name = f"{change}-entry"
        sentence = "Add the entry that saves most." if change == "add" else "Drop the entry whose loss costs least."
        if found.known.box_cost is None:
            found.refuse(name, sentence, "no measured time to price it with")
            continue
        reason = _add(found, name) if change == "add" else _drop(found, name)
        if reason:
            found.refuse(name, sentence, reason)


def _add(found: Collector, name: str) -> str:
    """Offer the best addition; or why there is none."""
    study = found.study
    base, allowed = study.baseline, study.space.max_entries
    if len(base.compile.entries) >= allowed:
        return f"{len(base.compile.entries) + 1} entries are more than the study allows ({allowed})"
    end, saved, share = _best_end(found)
    if saved <= 0:
        return "no end saves more in first runs and padding than it costs in padding"
    low = tuple(dim.lo for dim in study.dims.values())
    plan = replace(add_entry(base, end, low), id=name, note="")
    sentence = f"Add one entry for {' x '.join(study.dims)} that ends at {_text(end)}, and warm it at start."
    risk = f"It takes {share * 100:.0f} % of the requests, and pads them up to {_text(end)}."
    found.add(Move(kind="entries", sentence=sentence, owner="runtime", plan=plan, size=rank("entries", 1), risk=risk))
    return ""


def _best_end(found: Collector) -> tuple[Dims, float, float]:
    """The end that saves most on the tune slice: its dims, the ms saved, the share of requests that it would take."""
    base, cost = found.study.baseline, found.known.box_cost
    assert cost is not None
    shapes, counts = np.unique(found.known.dims, axis=0, return_counts=True)
    router, taken_ids = Router(base.compile), {entry.id for entry in base.compile.entries}
    now = _prices(found, base, shapes, counts)
    volume = np.array([_volume(router, tuple(shape)) for shape in shapes.tolist()])
    low = tuple(dim.lo for dim in found.study.dims.values())
    best: tuple[Dims, float, float] = (tuple(shapes[0].tolist()), 0.0, 0.0)
    for row in shapes.tolist():
        end: Dims = tuple(row)
        if bucket(base, end, low).id in taken_ids:
            continue
        takes = np.all(shapes <= row, axis=1) & (volume > math.prod(end))
        saved = float(now[takes].sum() - counts[takes].sum() * cost(end))
        if saved > best[1]:
            best = (end, saved, float(counts[takes].sum() / counts.sum()))
    return best


def _volume(router: Router, shape: Dims) -> float:
    """The volume that a new padded entry must undercut to take ``shape``: infinite where a dynamic one runs it."""
    route = router.route(shape)
    if route.entry is None or router.entries[route.entry].kind == "dynamic":
        return math.inf
    return 0.0 if route.kind == "exact" else math.prod(router.entries[route.entry].hi)


def _prices(found: Collector, plan: Plan, shapes: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """ms that all requests of each shape cost under ``plan``. Rejected ones cost nothing."""
    router, cost = Router(plan.compile), found.known.box_cost
    assert cost is not None
    warmed = set(plan.serve.warm)
    prices = np.zeros(len(shapes))
    for i, (row, count) in enumerate(zip(shapes.tolist(), counts.tolist(), strict=True)):
        route = router.route(tuple(row))
        if route.entry is None:
            continue
        prices[i] = count * cost(route.executed[1:])
        if router.entries[route.entry].kind == "dynamic" and route.executed not in warmed:
            predictor = found.known.predictor
            warm = predictor.warm(route.entry, route.executed)
            prices[i] += (predictor.expected(route.entry, route.executed, True) - warm) / 1e6 if warm else 0.0
    return prices


def _drop(found: Collector, name: str) -> str:
    """Offer the entry whose loss costs least; or why none may go."""
    base = found.study.baseline
    candidates = [entry for entry in base.compile.entries if _may_go(base, entry)]
    if not candidates:
        return "no entry may go: none is covered by another"
    shapes, counts = np.unique(found.known.dims, axis=0, return_counts=True)
    now = float(_prices(found, base, shapes, counts).sum())
    totals = {e.id: float(_prices(found, drop_entry(base, e.id), shapes, counts).sum()) for e in candidates}
    gone = min(candidates, key=lambda entry: (totals[entry.id], entry.id))
    extra = (totals[gone.id] - now) / counts.sum()
    found.add(
        Move(
            kind="entries",
            sentence=f"Drop entry {gone.id}: others cover its shapes.",
            owner="runtime",
            plan=replace(drop_entry(base, gone.id), id=name, note=""),
            size=rank("entries", 1),
            compile_s=0.0,
            memory_mib=0.0,
            risk=f"By profile a request takes {extra:.3g} ms more on average.",
        )
    )
    return ""


def _may_go(plan: Plan, entry: Entry) -> bool:
    """Whether one other entry covers all that ``entry`` covers, in every batch size."""
    return entry.id != plan.compile.fallback and any(
        other.id != entry.id
        and other.kind != "static"
        and all(lo <= mine for lo, mine in zip(other.lo, entry.lo, strict=True))
        and all(mine <= hi for mine, hi in zip(entry.hi, other.hi, strict=True))
        and other.batch[0] <= entry.batch[0]
        and entry.batch[1] <= other.batch[1]
        for other in plan.compile.entries
    )


def _text(dims: Dims) -> str:
    return "x".join(map(str, dims))
