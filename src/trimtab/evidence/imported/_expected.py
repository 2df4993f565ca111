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
    warm = own(given.volume)
    known = np.isfinite(warm) & np.isfinite(given.run)
    excess = np.where(known, given.on_core - warm, 0.0)
    started = given.first | given.outside | (np.nan_to_num(given.compile) > 0)
    compiled = np.minimum(np.nan_to_num(given.compile), np.nan_to_num(given.on_core))
    over = np.maximum(excess, 0.0)
    cold = np.where(started, over, np.where(given.changed, np.minimum(over, change * np.nan_to_num(warm)), 0.0))
    cold = np.where(known, cold, compiled)
    reference = np.where(before.covers(given.volume), before(given.volume), np.nan) if before is not None else warm
    reference = np.where(np.isfinite(reference), reference, warm)
    premium = np.where(known, np.maximum(warm - reference, 0.0), 0.0)
    floor = own if before is None else own.with_more(before)
    at_true = floor(given.true_volume)
    able = known & np.isfinite(at_true) & np.isfinite(floor(given.volume))
    padding = np.where(able, np.maximum(floor(given.volume) - at_true, 0.0), 0.0)
    padding = np.minimum(padding, np.nan_to_num(warm) - premium)
    return Expected(
        warm=own, known=known, padding_known=bool(able[given.true_volume < given.volume].any()), cold=cold,
        interference=excess - np.where(known, cold, 0.0), premium=premium, padding=padding,
        useful=np.where(known, warm - premium - padding, 0.0),
    )  # fmt: skip


def _learn(given: Calls, baseline: Calls | None) -> tuple[Warm, float]:
    """T, and by what share of it a changed run is slower than an unchanged one (0 = no slower, or not known)."""
    on_core, plain = given.on_core, given.plain
    same = plain & ~given.changed
    every = learn(given.volume[plain], on_core[plain])
    rows, slower = plain, 0.0
    if same.sum() >= CHANGES_NEEDED and (plain & given.changed).sum() >= CHANGES_NEEDED:
        ratio = on_core / np.maximum(every(given.volume), 1.0)
        level = float(np.median(ratio[same]))
        slower = float(np.median(ratio[plain & given.changed])) / level - 1 if level > 0 else 0.0
        if slower > SLOWER:
            return Warm(every.at, every.time * level), slower
        return every, 0.0
    if baseline is not None and same.sum() < CHANGES_NEEDED:
        other = baseline.plain & ~baseline.changed
        if other.sum() > max(CHANGES_NEEDED, baseline.plain.sum() / 2):
            quiet = learn(baseline.volume[other], baseline.on_core[other])
            ratio = on_core / np.maximum(quiet(given.volume), 1.0)
            if rows.any() and np.isfinite(ratio[rows]).any():
                slower = float(np.nanmedian(ratio[rows])) - 1
                return (quiet, slower) if slower > SLOWER and given.changed[rows].mean() > 0.5 else (every, 0.0)
    return every, 0.0
