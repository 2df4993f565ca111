"""What each run of an imported table should have taken, and where it did not.

Theory. T is the warm time learnt from the plain runs of the same table (:mod:`._warm`), D the executed and d the true
volume, T0 the warm time of a baseline table where it knows D, else T:

    on core = cold + interference + premium + padding + useful
    interference = on core - T(D)      premium = max(0, T(D) - T0(D))
    padding = T0(D) - T0(d)            useful = T0(d)

What a first, compiling or outside run takes beyond T(D) is cold, not interference. A changed run is cold as far as
changed runs typically take longer than unchanged ones, in this table or against a baseline that repeats its shapes (at
least 20 of each).

Limits. No machine can be asked again: T is what this system usually did, padding beyond the volumes that were seen is
extrapolated, and a cause that slows every run alike is part of T.
"""

from __future__ import annotations

import msgspec
import numpy as np

from trimtab.evidence.imported._columns import empty, filled, same, total
from trimtab.evidence.imported._warm import Warm, learn
from trimtab.evidence.imported.recorded import Bool, Calls
from trimtab.evidence.stats.quantiles import Floats

CHANGES_NEEDED = 20
SLOWER = 0.10  # changed runs must be slower than unchanged ones by more than this to be called cold


class Expected(msgspec.Struct, frozen=True):
    """What each call should have taken, and where it did not: float64 ns, 0 where a step is not known.

    ``known`` = the calls whose warm time is known; ``padding_known`` = whether any time at a true volume is.
    """

    warm: Warm
    known: Bool
    padding_known: bool
    cold: Floats
    interference: Floats
    premium: Floats
    padding: Floats
    useful: Floats


def expected(given: Calls, baseline: Calls | None) -> Expected:
    """The steps of every call's on-core time (see the module's theory)."""
    own, change = _learn(given, baseline)
    before = None if baseline is None else _learn(baseline, None)[0]
    warm, on_core = own(given.volume), given.on_core
    known = np.isfinite(warm) & np.isfinite(given.run)
    excess = np.where(known, on_core - warm, 0.0)
    cold = np.where(known, _cold(given, np.maximum(excess, 0.0), change, warm),
                    np.minimum(filled(given.compile), filled(on_core)))  # fmt: skip
    premium = same(0.0, warm.size)
    if before is not None:
        reference = np.where(before.covers(given.volume), before(given.volume), np.nan)
        premium = np.where(known, np.maximum(warm - np.where(np.isfinite(reference), reference, warm), 0.0), 0.0)
    padding, padding_known = _padding(given, own if before is None else own.with_more(before), known)
    padding = padding if empty(padding) else np.minimum(padding, filled(warm) - premium)
    return Expected(
        warm=own, known=known, padding_known=padding_known, cold=cold,
        interference=excess - np.where(known, cold, 0.0), premium=premium, padding=padding,
        useful=np.where(known, warm - total(premium, padding), 0.0),
    )  # fmt: skip


def _cold(given: Calls, over: Floats, change: float, warm: Floats) -> Floats:
    """What a run that started something takes beyond its warm time (``over``), a changed one as it typically does."""
    started = given.first | given.outside | (filled(given.compile) > 0)
    later = np.where(given.changed, np.minimum(over, change * filled(warm)), 0.0) if change else 0.0
    return np.where(started, over, later)


def _padding(given: Calls, floor: Warm, known: Bool) -> tuple[Floats, bool]:
    """Time at the executed volume beyond that at the true one, and whether any is known."""
    if given.true_volume is given.volume:
        return same(0.0, known.size), False
    at_true, at_executed = floor(given.true_volume), floor(given.volume)
    able = known & np.isfinite(at_true) & np.isfinite(at_executed)
    padding = np.where(able, np.maximum(at_executed - at_true, 0.0), 0.0)
    return padding, bool(able[given.true_volume < given.volume].any())


def _learn(given: Calls, baseline: Calls | None) -> tuple[Warm, float]:
    """T, and by what share of it a changed run is slower than an unchanged one (0 = no slower, or not known)."""
    on_core, plain = given.on_core, given.plain
    steady = plain & ~given.changed
    every = learn(given.volume[plain], on_core[plain])
    rows, slower = plain, 0.0
    if steady.sum() >= CHANGES_NEEDED and (plain & given.changed).sum() >= CHANGES_NEEDED:
        ratio = on_core / np.maximum(every(given.volume), 1.0)
        level = float(np.median(ratio[steady]))
        slower = float(np.median(ratio[plain & given.changed])) / level - 1 if level > 0 else 0.0
        if slower > SLOWER:
            return Warm(every.at, every.time * level), slower
        return every, 0.0
    if baseline is not None and steady.sum() < CHANGES_NEEDED:
        other = baseline.plain & ~baseline.changed
        if other.sum() > max(CHANGES_NEEDED, baseline.plain.sum() / 2):
            quiet = learn(baseline.volume[other], baseline.on_core[other])
            ratio = on_core / np.maximum(quiet(given.volume), 1.0)
            if rows.any() and np.isfinite(ratio[rows]).any():
                slower = float(np.nanmedian(ratio[rows])) - 1
                return (quiet, slower) if slower > SLOWER and given.changed[rows].mean() > 0.5 else (every, 0.0)
    return every, 0.0
