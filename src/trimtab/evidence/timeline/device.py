"""What a device waited for: is it fed too slowly, and by what?

Theory
------
The recorded window is cut, without a gap, into layers; a moment belongs to the first that holds it:

1. *busy*: some kernel or copy runs on the device;
2. *long calls*: the device is idle, and the host is inside a driver call of 1 ms and more that does not wait: making a
   context, loading code, allocating, a copy that blocks. Mostly first uses, and never the cost of a launch;
3. *launching*: from the start of a launch call until what it launched starts, at most 25 us beyond the call's end:
   longer than a launch takes to arrive;
4. *pending*: launched longer ago and not started, although the device is idle: it waits for another stream, another
   device or an event. Not the cost of a launch;
5. *operators*: some thread is inside an operator of the framework, and not inside a call of the driver;
6. *driver*: a call of the driver, waiting for the device included;
7. *elsewhere*: nothing of this is recorded: Python, the network's inputs, other threads.

Launches and what the framework does between them (3 and 5) is what a fused or captured graph saves. Their part of the
idle time is the effect of `launch-overhead`; long calls are not counted among it.

Its interval is by batch means: the window is cut into 20 equal pieces, long against one launch, whose parts p and idle
times w are taken for independent. The ratio r = sum p / sum w then has the standard error
sqrt(k / (k - 1) sum (p - r w)^2) / sum w (Cochran, Sampling Techniques, 1977, on ratio estimators), with Student's t of
k - 1 degrees. Steps that alternate within a piece even out; a window with one burst in it gets a wide interval.

Evidence that the class requires: at least 100 launches, and launching plus operators at least a fifth of the window.

Limits: one window for all devices and threads of a file, so with several devices "idle" means that all of them are.
Two clocks (host, device) that differ show as work that starts before its launch; such launches are counted and taken
as they are.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.domain.noun import NEVER
from trimtab.domain.spans import KIND, Spans
from trimtab.domain.trace import Table
from trimtab.evidence.classify.classes import Effect, Suspect
from trimtab.evidence.figures import percent
from trimtab.evidence.stats.quantiles import Floats, jain, quantile, t_quantile
from trimtab.evidence.timeline.cover import Intervals, Ints, lasting, layers, less

LONG_CALL = 1_000_000
PIECES = 20
FEWEST_LAUNCHES = 100
OVERHEAD = 0.20
MOSTLY = 0.50
ARRIVAL = 25_000
LAYERS = ("busy", "long calls", "launching", "pending", "operators", "driver")


class Stream(msgspec.Struct, frozen=True):
    """Work of one stream: kernels and copies, and how long they ran together, ns."""

    name: str
    spans: int
    busy: int


class Device(msgspec.Struct, frozen=True):
    """What a timeline says of devices. Times in ns; ``parts`` = the window by layer, "" = elsewhere; ``pieces`` = the
    same between neighbouring ``edges``.

    ``delays`` = from the start of its launch to the start of each kernel whose launch is known; ``calls`` = how long
    these launch calls took; ``longest`` = long calls by name.
    """

    window: int
    edges: Ints
    pieces: dict[str, Ints]
    parts: dict[str, int]
    kernels: int
    matched: int
    early: int
    delays: Ints
    calls: Ints
    short: float | None
    streams: tuple[Stream, ...]
    fairness: float | None
    effect: Effect | None
    longest: tuple[tuple[str, int], ...]

    @property
    def overhead(self) -> float:
        """Launching and operators, as a share of the window."""
        return (self.parts["launching"] + self.parts["operators"]) / self.window if self.window else 0.0


def device(spans: Spans) -> Device | None:
    """The device's side of ``spans``; None where no device is recorded."""
    table = spans.table
    kernels = np.flatnonzero(table["kind"] == KIND["kernel"])
    if not kernels.size:
        return None
    sets = _sets(table)
    edges = _edges(table)
    found = layers(sets, edges)
    linked = kernels[table["launch"][kernels] != NEVER]
    launch = table["launch"][linked]
    delays = table["start"][linked] - table["start"][launch]
    calls = table["end"][launch] - table["start"][launch]
    streams = _streams(spans)
    return Device(
        window=int(edges[-1] - edges[0]),
        edges=edges,
        pieces=found,
        parts={name: int(pieces.sum()) for name, pieces in found.items()},
        kernels=kernels.size,
        matched=linked.size,
        early=int((delays < 0).sum()),
        delays=delays,
        calls=calls,
        short=_short(table, linked, calls),
        streams=streams,
        fairness=jain([stream.busy for stream in streams]) if len(streams) > 1 else None,
        effect=_effect(found),
        longest=_longest(spans),
    )


def suspect(found: Device) -> Suspect:
    """`launch-overhead`, with what speaks for it and against it."""
    if found.matched < FEWEST_LAUNCHES:
        few = (
            f"at least {FEWEST_LAUNCHES} launches with what they launched, after warm-up; {found.matched} are recorded"
        )
        return Suspect("launch-overhead", found.effect, (), missing=(few,))
    cost, wait = quantile(found.calls, 0.5), quantile(found.delays, 0.5)
    seen = (
        f"the device idles during {percent(found.overhead)} of the window while a launch is on its way "
        f"({percent(found.parts['launching'] / found.window)}) or an operator works between launches "
        f"({percent(found.parts['operators'] / found.window)})"
    )
    if found.overhead < OVERHEAD:
        return Suspect("launch-overhead", found.effect, (), against=(seen,))
    each = (
        f"{found.matched} launches at {lasting(cost)}; half of the kernels start within {lasting(wait)} of their launch"
    )
    short = "" if found.short is None else f"{percent(found.short)} of the kernels run for less than their launch takes"
    return Suspect("launch-overhead", found.effect, tuple(part for part in (seen, each, short) if part))


def long_calls(found: Device) -> str:
    """A sentence where most of the window is long driver calls; else empty."""
    part = found.parts["long calls"]
    if not found.window or part < MOSTLY * found.window:
        return ""
    names = ", ".join(f"{name} {lasting(took)}" for name, took in found.longest[:3])
    return f"{percent(part / found.window)} of the window is long driver calls: {names}"


def _sets(table: Table) -> dict[str, Intervals]:
    """The intervals of each layer, in the order in which they claim a moment."""
    kind, start, end = table["kind"], table["start"], table["end"]
    host = table["device"] == NEVER
    work = (kind == KIND["kernel"]) | (kind == KIND["copy"])
    calls = host & ((kind == KIND["launch"]) | (kind == KIND["driver"]))
    waits = host & (kind == KIND["wait"])
    long = calls & (end - start >= LONG_CALL)
    launched = np.flatnonzero(work & (table["launch"] != NEVER))
    launched = launched[~long[table["launch"][launched]]]
    launch = table["launch"][launched]
    arrival = np.minimum(np.maximum(start[launched], end[launch]), end[launch] + ARRIVAL)
    return {
        "busy": (start[work], end[work]),
        "long calls": (start[long], end[long]),
        "launching": (start[launch], arrival),
        "pending": (arrival, np.maximum(start[launched], arrival)),
        "operators": _operators(table, host & (kind == KIND["op"]), calls | waits),
        "driver": (start[calls | waits], end[calls | waits]),
    }


def _operators(table: Table, ops: NDArray[np.bool_], calls: NDArray[np.bool_]) -> Intervals:
    """When a thread is inside an operator and not inside a call of the driver, of all threads."""
    out = [(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))]
    for lane in np.unique(table["lane"][ops]):
        here = table["lane"] == lane
        own, other = ops & here, calls & here
        out.append(less((table["start"][own], table["end"][own]), (table["start"][other], table["end"][other])))
    return np.concatenate([starts for starts, _ in out]), np.concatenate([ends for _, ends in out])


def _edges(table: Table) -> Ints:
    """Equal pieces of the window: from the first to the last that is work or leads to it."""
    of = [KIND[name] for name in ("run", "op", "launch", "driver", "wait", "kernel", "copy")]
    rows = np.isin(table["kind"], of)
    first, last = int(table["start"][rows].min()), int(table["end"][rows].max())
    return np.linspace(first, max(last, first + 1), PIECES + 1).astype(np.int64)


def _effect(found: dict[str, Ints]) -> Effect | None:
    """Launching and operators over idle time, with its interval; None where the device was never idle."""
    part = (found["launching"] + found["operators"]).astype(np.float64)
    idle = sum((pieces.astype(np.float64) for name, pieces in found.items() if name != "busy"), np.zeros(PIECES))
    return ratio(part, idle)


def ratio(part: Floats, whole: Floats) -> Effect | None:
    """Sum of ``part`` over sum of ``whole``, by independent pieces, with its interval; None where the whole is none."""
    pieces, total = whole.size, float(whole.sum())
    if not total or pieces < 2:
        return None
    share = float(part.sum()) / total
    spread = float(np.sqrt(pieces / (pieces - 1) * np.square(part - share * whole).sum())) / total
    half = t_quantile(0.975, pieces - 1) * spread
    return Effect(share, share - half, min(share + half, 1.0))


def _short(table: Table, linked: Ints, calls: Ints) -> float | None:
    if not linked.size:
        return None
    return float((table["end"][linked] - table["start"][linked] < calls).mean())


def _streams(spans: Spans) -> tuple[Stream, ...]:
    """Kernels and copies by stream, the busiest first."""
    table = spans.table
    rows = np.flatnonzero((table["kind"] == KIND["kernel"]) | (table["kind"] == KIND["copy"]))
    took = table["end"][rows] - table["start"][rows]
    out = []
    for lane in np.unique(table["lane"][rows]):
        own = table["lane"][rows] == lane
        out.append(Stream(spans.lanes[lane], int(own.sum()), int(took[own].sum())))
    return tuple(sorted(out, key=lambda stream: -stream.busy))


def _longest(spans: Spans) -> tuple[tuple[str, int], ...]:
    """Time in long driver calls by name, the longest first."""
    table = spans.table
    kind = table["kind"]
    calls = (table["device"] == NEVER) & ((kind == KIND["launch"]) | (kind == KIND["driver"]))
    rows = np.flatnonzero(calls & (table["end"] - table["start"] >= LONG_CALL))
    totals: dict[str, int] = {}
    for row in rows.tolist():
        name = spans.names[table["name"][row]]
        totals[name] = totals.get(name, 0) + int(table["end"][row] - table["start"][row])
    return tuple(sorted(totals.items(), key=lambda pair: -pair[1]))
