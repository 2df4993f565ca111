"""From a compile profile to service times: what a batch is promised to take. What simulated ones take: ``service``.

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
  First run  What a new shape is expected to cost beyond its fitted value, never below 0: its own first run in the
             profile's prelude of traffic, else the mean of the later half of those, for neighbouring shapes share
             kernels and a process that has seen many pays less than a fresh one. Without a prelude: the first run at
             the measured point nearest by the sum over axes of abs(log(ratio)), for sizes matter by their proportion.
Limits
  The first-run excess is one sample per shape. Wall time is used: profile on a quiet core.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from math import log
from typing import Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.domain.noun import NEVER, EntryId, Executed, Ns
from trimtab.domain.plan import Entry
from trimtab.domain.profile import CompileProfile, FirstRun
from trimtab.errors import DataError

Support = Literal["measured", "interpolated", "none"]


Exchange: TypeAlias = tuple[Ns, Ns]
"""What keeps a worker busy beside its run, ns: from the order to its start, and from its end to the answer."""


class _Point(msgspec.Struct, frozen=True):
    """One measured shape: fitted warm ns, first-run excess ns, raw warm / fitted, what surrounded those runs."""

    fitted: float
    excess: Ns
    ratios: NDArray[np.float64]
    exchanges: tuple[Exchange, ...]


class _Axis(msgspec.Struct, frozen=True):
    """The measured values of one axis in rising order, and below each one the next axis or the fitted value."""

    keys: tuple[int, ...]
    below: tuple[_Node, ...]


_Node: TypeAlias = "_Axis | float"


class First(NamedTuple):
    """A first run of the prelude: its dims, what it took beyond their fitted value, ns (below 0: less), and what
    surrounded it (None: not taken)."""

    executed: Executed
    excess: Ns
    exchange: Exchange | None = None


class Again(NamedTuple):
    """A later run of the prelude: the same, and how long the worker had been free."""

    executed: Executed
    excess: Ns
    idle: Ns
    exchange: Exchange


class InService(NamedTuple):
    """The runs of an entry in service, each kind in order of arrival; empty where the profile had no prelude."""

    firsts: tuple[First, ...] = ()
    again: tuple[Again, ...] = ()


class _Surface(msgspec.Struct, frozen=True):
    points: dict[Executed, _Point]
    tree: _Node
    cover: Entry | None
    excesses: dict[Executed, Ns] = {}
    in_service: InService = InService()


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

    def exchanges(self, entry: EntryId, executed: Executed) -> tuple[Exchange, ...]:
        """What surrounded the runs behind :meth:`ratios`, in their order; empty where the profile did not take it."""
        near = self._fit(entry, executed).near
        return near.exchanges if near is not None else ()

    def in_service(self, entry: EntryId) -> InService:
        """What the entry's runs took in service."""
        surface = self._surfaces.get(entry)
        return InService() if surface is None else surface.in_service

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


def _surface(profile: CompileProfile, points: dict[Executed, _Point], cover: Entry | None) -> _Surface:
    bare = _Surface(points, _tree(points), cover)

    def beyond(executed: Executed, ns: Ns) -> Ns:
        return ns - _fit(bare, executed).estimate

    firsts = tuple(First(run.executed, beyond(run.executed, run.ns), _around(run)) for run in profile.first_runs)
    again = tuple(
        Again(run.executed, beyond(run.executed, run.ns), run.idle_ns, (run.dispatch_ns, run.completion_ns))
        for run in profile.served
    )
    excesses = {first.executed: max(0, first.excess) for first in firsts}
    return msgspec.structs.replace(bare, excesses=excesses, in_service=InService(firsts, again))


def _around(run: FirstRun) -> Exchange | None:
    around = run.dispatch_ns, run.completion_ns
    return None if NEVER in around else around


def _points(profile: CompileProfile) -> dict[Executed, _Point]:
    walls: dict[Executed, list[Ns]] = {}
    firsts: dict[Executed, Ns] = {}
    exchanges: dict[Executed, list[Exchange]] = {}
    for timing in profile.timings:
        if not timing.wall_ns or min(timing.wall_ns) <= 0:
            raise DataError(
                f"no usable warm times at {timing.executed}",
                where=f"profile of entry {profile.entry!r}, plan {profile.plan}",
                fix="each profiled shape needs at least one repeat, longer than 0 ns",
            )
        walls.setdefault(timing.executed, []).extend(timing.wall_ns)
        firsts.setdefault(timing.executed, timing.first_ns)
        around = zip(timing.dispatch_ns, timing.completion_ns, strict=True)
        exchanges.setdefault(timing.executed, []).extend(around)
    if len({len(executed) for executed in walls}) > 1:
        raise DataError(
            "profiled shapes have different numbers of dims",
            where=f"profile of entry {profile.entry!r}, plan {profile.plan}",
            fix="profile every shape as (batch size, *dims)",
        )
    return {executed: _point(raw, firsts[executed], exchanges[executed]) for executed, raw in walls.items()}


def _point(raw: list[Ns], first: Ns, around: list[Exchange]) -> _Point:
    walls = np.array(raw, dtype=np.float64)
    fitted = float(np.median(walls))
    exchanges = tuple(around) if len(around) == len(raw) else ()
    return _Point(fitted, max(0, round(first - fitted)), walls / fitted, exchanges)


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
    """What a first run at ``executed`` may cost beyond a warm one: its own sample, or that of later new shapes."""
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
