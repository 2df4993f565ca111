"""An imported table against a baseline table: memory, run time by shape, and whether every shape moved alike."""

from __future__ import annotations

import numpy as np

from trimtab.evidence.classify.classes import SAME_FACTOR
from trimtab.evidence.imported._removals import Removals
from trimtab.evidence.imported._warm import learn
from trimtab.evidence.imported.recorded import Calls
from trimtab.evidence.stats.quantiles import Floats, quantile

FIFTH = 0.20
NO_PREMIUM = 0.02
FEWEST_PLAIN = 20


class Side:
    """What is known beside the calls: numbers by name, words by name. ``baseline`` = the same of the baseline."""

    def __init__(self, numbers: dict[str, float], texts: dict[str, str], baseline: dict[str, float]) -> None:
        self.numbers, self.texts, self.baseline = numbers, texts, baseline

    def get(self, name: str) -> float | None:
        return self.numbers.get(name)


def premium(given: Calls, found: Removals, before: Calls | None, grown: float | None) -> float | None:
    """Run time beyond the baseline's at the same volume; None where a growing peak says memory instead, or where every
    shape is slower alike, which is no matter of the mapping."""
    if before is None or (grown is not None and grown > 1) or alike(given, before):
        return None
    whole = float(np.nansum(given.run[given.head]))
    share = float(found.found.premium[given.head].sum()) / whole if whole else 0.0
    return share if share >= NO_PREMIUM else 0.0


def against(given: Calls, before: Calls | None, side: Side) -> tuple[float | None, float | None]:
    """Peak memory over the baseline's, and the share of its typical run time that is saved."""
    own, other = side.get("peak_mb"), side.baseline.get("peak_mb")
    grown = own / other if own and other else None
    if before is None:
        return grown, None
    now, then = _typical(given), _typical(before)
    return grown, 1 - now / then if now is not None and then else None


def _typical(given: Calls) -> float | None:
    run = given.on_core[given.plain]
    return float(np.median(run)) if run.size else None


def over_baseline(given: Calls, before: Calls | None) -> tuple[Floats, Floats, Floats]:
    """(volume, run time, the baseline's at that volume) of plain runs, ns; empty without a baseline.

    Where one of the two has hardly a plain run, because nearly every shape is new, all runs of both are compared.
    """
    none = np.empty(0)
    if before is None:
        return none, none, none
    rows, other = given.plain, before.plain
    if min(rows.sum(), other.sum()) < FEWEST_PLAIN:
        rows, other = given.head & np.isfinite(given.run), before.head & np.isfinite(before.run)
    if not other.any():
        return none, none, none
    base = learn(before.volume[other], before.on_core[other])(given.volume)
    keep = rows & (given.on_core > 0) & np.isfinite(base) & (base > 0)
    return given.volume[keep], given.on_core[keep], base[keep]


def alike(given: Calls, before: Calls | None) -> bool:
    """Whether plain runs of every fifth of volumes are slower (or faster) than the baseline's by the same factor."""
    volume, run, base = over_baseline(given, before)
    if not volume.size:
        return False
    edges = np.unique([quantile(volume, share) for share in (0.2, 0.4, 0.6, 0.8)])
    group = np.searchsorted(edges, volume)
    factors = [float(np.median(run[group == k] / base[group == k])) for k in np.unique(group)]
    return max(factors) <= (1 + SAME_FACTOR) * min(factors)


def by_volume(given: Calls, before: Calls | None) -> tuple[float | None, float | None]:
    """Plain run time over the baseline's at the same volume, - 1: at the smallest and the largest fifth of volumes."""
    volume, run, base = over_baseline(given, before)
    if not volume.size:
        return None, None
    small, large = volume <= quantile(volume, FIFTH), volume >= quantile(volume, 1 - FIFTH)
    return float(run[small].sum() / base[small].sum()) - 1, float(run[large].sum() / base[large].sum()) - 1
