"""From a compile profile to service times: what a batch is promised to take, and what a simulated one takes.

Theory
  Points     Each measured executed shape D = (n, *dims) gives one fitted value, the median of its raw warm wall times:
             the median of a dozen repeats ignores the odd interrupted run, and stays a value that was seen.
  Between    Linear along each axis, batch size first, then dim by dim: the two neighbouring values of an axis are
             found, each is worked out over the remaining axes, and the two are mixed by distance. On a tensor grid this
             is multilinear interpolation. On a ragged one (each batch size with its own widths) it is exact for one
             dynamic dim: each row is read at the width, then the rows are mixed. Between neighbours the value never
             leaves theirs, so it is monotone there; across points nothing is smoothed, a real kernel may be faster at
             a wider shape.
  Beyond     The line through an axis' last two points. Such a value is a promise (``warm``) only inside the range that
             the entry was compiled for, and its ``support`` is still "none"; outside that range nothing is promised,
             0. Where the entry itself is not known, only the measured box is promised.
  Static     A static or bucket entry runs at its own dims only; any other executed dims promise nothing.
  First run  What a new shape costs beyond its fitted value, never below 0. Where the profile ran new shapes of traffic
             once each, in order of arrival, a shape among them costs what it cost there; another one costs a draw from
             the later half of them (expected: its mean), for neighbouring shapes share kernels and a process that has
             seen many pays less than a fresh one. Without such runs: the first run at the measured point nearest by the
             sum over axes of abs(log(ratio)), for sizes matter by their proportion.
  Scatter    A simulated time is the fitted value times a ratio raw/fitted drawn from the nearest measured point. The
             draw is a hash of (seed, oldest member), so that the same requests meet the same luck whatever the plan or
             the order of calls: plans are compared on common random numbers.
Limits
  Times are assumed independent from batch to batch; a machine's slow spells are not (see the pace). The first-run
  excess is one sample per shape. Wall time is used: profile on a quiet core.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from math import log
from typing import Literal, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.domain.events import BatchReport, Dispatch
from trimtab.domain.noun import EntryId, Executed, Ns
from trimtab.domain.plan import Entry
from trimtab.domain.profile import CompileProfile
from trimtab.errors import DataError

Support = Literal["measured", "interpolated", "none"]


class _Point(msgspec.Struct, frozen=True):
    """One measured shape: fitted warm ns, first-run excess ns, raw warm / fitted."""

    fitted: float
    excess: Ns
    ratios: NDArray[np.float64]


class _Axis(msgspec.Struct, frozen=True):
    """The measured values of one axis in rising order, and below each one the next axis or the fitted value."""

    keys: tuple[int, ...]
    below: tuple[_Node, ...]


_Node: TypeAlias = "_Axis | float"


class _Surface(msgspec.Struct, frozen=True):
    points: dict[Executed, _Point]
    tree: _Node
    cover: Entry | None
    excesses: dict[Executed, Ns] = {}


class _Fit(msgspec.Struct, frozen=True):
    """Everything about one (entry, executed) pair, worked out once."""

    warm: Ns
    estimate: Ns
    support: Support
    near: _Point | None
    excesses: tuple[Ns, ...] = ()

    @property
    def excess(self) -> Ns:
        """Mean cost of a first run beyond a warm one."""
        return sum(self.excesses) // len(self.excesses) if self.excesses else 0


_NOTHING = _Fit(0, 0, "none", None)


class CostModel:
    """Predicted service times of the entries of ONE plan; a :class:`~trimtab.domain.ports.Predictor`."""

    def __init__(self, surfaces: dict[EntryId, _Surface]) -> None:
        self._surfaces = surfaces
        self._fits: dict[tuple[EntryId, Executed], _Fit] = {}

    @classmethod
    def from_profiles(cls, profiles: Iterable[CompileProfile], entries: Iterable[Entry] = ()) -> CostModel:
        """Fit every profile. ``entries`` (the plan's) say how far each may be promised beyond its measured points."""
        cover = {entry.id: entry for entry in entries}
        surfaces: dict[EntryId, _Surface] = {}
        for profile in profiles:
            if profile.entry in surfaces:
                raise DataError(
                    f"two profiles of the entry {profile.entry!r}",
                    where=f"plan {profile.plan}",
                    fix="build one cost model per plan",
                )
            points = _points(profile)
            if points:
                surfaces[profile.entry] = _surface(profile, points, cover.get(profile.entry))
        return cls(surfaces)

    def warm(self, entry: EntryId, executed: Executed) -> Ns:
        """Promised warm service time, ns; 0 = no promise."""
        return self._fit(entry, executed).warm

    def expected(self, entry: EntryId, executed: Executed, first_seen: bool) -> Ns:
        """Warm time plus, on a first run, its excess, ns; 0 = no promise."""
        fit = self._fit(entry, executed)
        return fit.warm + fit.excess if first_seen and fit.warm else fit.warm

    def estimate(self, entry: EntryId, executed: Executed) -> Ns:
        """The line continued beyond what is promised, ns; 0 where not even that is possible. Never a promise."""
        return self._fit(entry, executed).estimate

    def support(self, entry: EntryId, executed: Executed) -> Support:
        """``measured`` at a grid point, ``interpolated`` between grid points, else ``none``."""
        return self._fit(entry, executed).support

    def ratios(self, entry: EntryId, executed: Executed) -> NDArray[np.float64]:
        """Raw warm wall times over their fitted value, at the nearest measured point; empty for an unknown entry."""
        near = self._fit(entry, executed).near
        return near.ratios if near is not None else np.empty(0)

    def first_excess(self, entry: EntryId, executed: Executed) -> Ns:
        """What a first run is expected to cost beyond a warm one, ns."""
        return self._fit(entry, executed).excess

    def first_excesses(self, entry: EntryId, executed: Executed) -> tuple[Ns, ...]:
        """The sample of what first runs cost beyond warm ones, ns; empty for an unknown entry."""
        return self._fit(entry, executed).excesses

    def _fit(self, entry: EntryId, executed: Executed) -> _Fit:
        key = (entry, executed)
        fit = self._fits.get(key)
        if fit is None:
            surface = self._surfaces.get(entry)
            fit = self._fits[key] = _NOTHING if surface is None else _fit(surface, executed)
        return fit


class ProfileService:
    """Simulated service times drawn from a profile; a :class:`~trimtab.domain.ports.Service`."""

    def __init__(self, costs: CostModel, seed: int) -> None:
        self._costs = costs
        self._seed = seed
        self._units: list[float] = []
        self._first_units: list[float] = []
        self._known: dict[tuple[EntryId, Executed], tuple[tuple[Ns, ...], tuple[Ns, ...]]] = {}

    def draw(self, batch: Dispatch) -> tuple[Ns, BatchReport]:
        """Wall time of ``batch``, ns; all of it on the core, none of it in the run queue."""
        key = (batch.entry, batch.executed)
        walls, excesses = self._known.get(key) or self._learn(*key)
        members = batch.members
        oldest = members[0] if len(members) == 1 else min(members)
        units = self._units
        if oldest >= len(units):
            count = max(4096, 2 * (oldest + 1))
            units = self._units = unit_draws(self._seed, count).tolist()
            self._first_units = unit_draws(~self._seed, count).tolist()
        wall = walls[int(units[oldest] * len(walls))]
        if batch.first_seen:
            wall += excesses[int(self._first_units[oldest] * len(excesses))]
        return wall, BatchReport(wall, 0)

    def _learn(self, entry: EntryId, executed: Executed) -> tuple[tuple[Ns, ...], tuple[Ns, ...]]:
        fitted = self._costs.estimate(entry, executed)
        if not fitted:
            raise DataError(
                f"the profile cannot say how long entry {entry!r} takes at {executed}",
                where="compile profile",
                fix="profile this entry at this batch size and on both sides of these dims",
            )
        walls = tuple(max(1, round(fitted * ratio)) for ratio in self._costs.ratios(entry, executed).tolist())
        known = self._known[entry, executed] = (walls, self._costs.first_excesses(entry, executed))
        return known


def unit_draws(seed: int, count: int) -> NDArray[np.float64]:
    """float64[count] in [0, 1): draw i depends on (seed, i) alone.

    SplitMix64 as a counter-based generator: its finaliser over a Weyl sequence that starts at the hashed seed
    (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
    """
    start = _mix(np.array([seed & 0xFFFF_FFFF_FFFF_FFFF], dtype=np.uint64))
    steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E37_79B9_7F4A_7C15)
    high: NDArray[np.uint64] = _mix(start + steps) >> np.uint64(11)
    return high.astype(np.float64) * 2.0**-53


def _mix(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
    return value ^ (value >> np.uint64(31))


def _surface(profile: CompileProfile, points: dict[Executed, _Point], cover: Entry | None) -> _Surface:
    bare = _Surface(points, _tree(points), cover)
    excesses = {run.executed: max(0, run.ns - _fit(bare, run.executed).estimate) for run in profile.first_runs}
    return msgspec.structs.replace(bare, excesses=excesses)


def _points(profile: CompileProfile) -> dict[Executed, _Point]:
    walls: dict[Executed, list[Ns]] = {}
    firsts: dict[Executed, Ns] = {}
    for timing in profile.timings:
        if not timing.wall_ns or min(timing.wall_ns) <= 0:
            raise DataError(
                f"no usable warm times at {timing.executed}",
                where=f"profile of entry {profile.entry!r}, plan {profile.plan}",
                fix="each profiled shape needs at least one repeat, longer than 0 ns",
            )
        walls.setdefault(timing.executed, []).extend(timing.wall_ns)
        firsts.setdefault(timing.executed, timing.first_ns)
    if len({len(executed) for executed in walls}) > 1:
        raise DataError(
            "profiled shapes have different numbers of dims",
            where=f"profile of entry {profile.entry!r}, plan {profile.plan}",
            fix="profile every shape as (batch size, *dims)",
        )
    return {executed: _point(raw, firsts[executed]) for executed, raw in walls.items()}


def _point(raw: list[Ns], first: Ns) -> _Point:
    walls = np.array(raw, dtype=np.float64)
    fitted = float(np.median(walls))
    return _Point(fitted, max(0, round(first - fitted)), walls / fitted)


def _tree(points: dict[Executed, _Point]) -> _Node:
    return _grow({executed: point.fitted for executed, point in points.items()})


def _grow(values: dict[Executed, float]) -> _Node:
    if () in values:
        return values[()]
    rows: dict[int, dict[Executed, float]] = {}
    for at, value in values.items():
        rows.setdefault(at[0], {})[at[1:]] = value
    keys = tuple(sorted(rows))
    return _Axis(keys, tuple(_grow(rows[key]) for key in keys))


def _read(node: _Node, at: Executed) -> tuple[float, bool] | None:
    """Value at ``at`` and whether it lies between measured points; None where an axis has one value, and not this."""
    if not isinstance(node, _Axis):
        return node, True
    head, rest = at[0], at[1:]
    i = bisect_left(node.keys, head)
    if i < len(node.keys) and node.keys[i] == head:
        return _read(node.below[i], rest)
    if len(node.keys) < 2:
        return None
    between = 0 < i < len(node.keys)
    left = min(max(i - 1, 0), len(node.keys) - 2)
    a, b = _read(node.below[left], rest), _read(node.below[left + 1], rest)
    if a is None or b is None:
        return None
    share = (head - node.keys[left]) / (node.keys[left + 1] - node.keys[left])
    return a[0] + share * (b[0] - a[0]), between and a[1] and b[1]


def _fit(surface: _Surface, executed: Executed) -> _Fit:
    if len(executed) != len(next(iter(surface.points))):
        return _NOTHING
    near = (
        surface.points.get(executed)
        or min(surface.points.items(), key=lambda item: (_distance(item[0], executed), item[0]))[1]
    )
    excesses = _excesses(surface, executed, near)
    read = _read(surface.tree, executed)
    if read is None:
        return _Fit(0, 0, "none", near, excesses)
    value, between = read
    estimate = max(0, round(value))
    support: Support = "measured" if executed in surface.points else "interpolated" if between else "none"
    promised = support != "none" if surface.cover is None else _promised(surface.cover, executed)
    return _Fit(estimate if promised else 0, estimate, support, near, excesses)


def _excesses(surface: _Surface, executed: Executed, near: _Point) -> tuple[Ns, ...]:
    """What a first run at ``executed`` may cost beyond a warm one: its own sample, or that of later newcomers."""
    own = surface.excesses.get(executed)
    if own is not None:
        return (own,)
    met = tuple(surface.excesses.values())
    return met[len(met) // 2 :] or (near.excess,)


def _promised(entry: Entry, executed: Executed) -> bool:
    size, dims = executed[0], executed[1:]
    if not entry.batch[0] <= size <= entry.batch[1]:
        return False
    if entry.kind != "dynamic":
        return dims == entry.hi
    return all(lo <= d <= hi for lo, d, hi in zip(entry.lo, dims, entry.hi, strict=True))


def _distance(a: Executed, b: Executed) -> float:
    return sum(abs(log(x / y)) for x, y in zip(a, b, strict=True))
