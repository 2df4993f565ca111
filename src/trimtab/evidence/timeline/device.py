"""What a device waited for: is it fed too slowly, and by what?

Theory
------
The recorded window is cut, without a gap, into layers; a moment belongs to the first that holds it:

1. *busy*: some kernel or copy runs on the device;
2. *start-up*: the device is idle, and the host is inside a driver call of 1 ms and more that does not wait for the
   device: making a context, loading code, allocating. A first use, not the cost of a launch;
3. *launching*: from the start of a launch call until the work that it launched starts;
4. *driver*: any other call of the driver, waiting for the device included;
5. *operators*: the framework is inside an operator between launches;
6. *elsewhere*: nothing of this is recorded: Python, the network's inputs, other threads.

Launches and what the framework does between them (3 and 5) is what a fused or captured graph saves. Their part of the
idle time is the effect of `launch-overhead`; start-up is not counted among it. Its interval is a block bootstrap over
200 equal pieces of the window.

Evidence that the class requires: at least 100 launches, and launching plus operators at least a fifth of the window.

Limits: one window for all devices and threads of a file, so with several devices "idle" means that all of them are.
A launch that waits behind other work counts as launching only while the device is idle. Two clocks (host, device) that
differ show as work that starts before its launch; such launches are counted and taken as they are.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.domain.noun import NEVER
from trimtab.domain.spans import SPAN_KINDS, Spans
from trimtab.domain.trace import Table
from trimtab.evidence.classify.classes import Effect, Suspect
from trimtab.evidence.figures import percent
from trimtab.evidence.stats.bootstrap import ratio_of_sums
from trimtab.evidence.stats.quantiles import jain, quantile
from trimtab.evidence.timeline.cover import Intervals, Ints, layers

LONG_CALL = 1_000_000
PIECES = 200
FEWEST_LAUNCHES = 100
OVERHEAD = 0.20
MOSTLY = 0.50
LAYERS = ("busy", "start-up", "launching", "driver", "operators")

_KIND = {name: number for number, name in enumerate(SPAN_KINDS)}


class Stream(msgspec.Struct, frozen=True):
    """Work of one stream: kernels and copies, and how long they ran together, ns."""

    name: str
    spans: int
    busy: int


class Device(msgspec.Struct, frozen=True):
    """What a timeline says of devices. Times in ns; ``parts`` = the window by layer, "" = elsewhere.

    ``delays`` = from the start of its launch to the start of each kernel whose launch is known; ``calls`` = how long
    these launch calls took; ``first_use`` = the longest calls
    of start-up by name.
    """

    window: int
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
    reason: str
    first_use: tuple[tuple[str, int], ...]

    @property
    def overhead(self) -> float:
        """Launching and operators, as a share of the window."""
        return (self.parts["launching"] + self.parts["operators"]) / self.window if self.window else 0.0


def device(spans: Spans, rng: np.random.Generator) -> Device | None:
    """The device's side of ``spans``; None where no device is recorded."""
    table = spans.table
    kernels = np.flatnonzero(table["kind"] == _KIND["kernel"])
    if not kernels.size:
        return None
    sets = _sets(table)
    edges = _edges(table)
    found = layers(sets, edges)
    effect, reason = _effect(found, rng)
    linked = kernels[table["launch"][kernels] != NEVER]
    launch = table["launch"][linked]
    delays = table["start"][linked] - table["start"][launch]
    calls = table["end"][launch] - table["start"][launch]
    streams = _streams(spans)
    return Device(
        window=int(edges[-1] - edges[0]),
        parts={name: int(pieces.sum()) for name, pieces in found.items()},
        kernels=kernels.size,
        matched=linked.size,
        early=int((delays < 0).sum()),
        delays=delays,
        calls=calls,
        short=_short(table, linked, calls),
        streams=streams,
        fairness=jain([stream.busy for stream in streams]) if len(streams) > 1 else None,
        effect=effect,
        reason=reason,
        first_use=_first_use(spans),
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
        f"{found.matched} launches at {cost / 1e3:.3g} us, half of the kernels start within {wait / 1e3:.3g} us of "
        f"their launch"
    )
    short = "" if found.short is None else f"{percent(found.short)} of the kernels run for less than their launch takes"
    return Suspect("launch-overhead", found.effect, tuple(part for part in (seen, each, short) if part))


def start_up(found: Device) -> str:
    """A sentence where most of the window is first use; else empty."""
    part = found.parts["start-up"]
    if not found.window or part < MOSTLY * found.window:
        return ""
    names = ", ".join(f"{name} {took / 1e6:.4g} ms" for name, took in found.first_use[:3])
    return f"{percent(part / found.window)} of the window is start-up: {names}"


def _sets(table: Table) -> dict[str, Intervals]:
    """The intervals of each layer, in the order in which they claim a moment."""
    kind, start, end = table["kind"], table["start"], table["end"]
    host = table["device"] == NEVER
    work = (kind == _KIND["kernel"]) | (kind == _KIND["copy"])
    calls = host & ((kind == _KIND["launch"]) | (kind == _KIND["driver"]))
    waits = host & (kind == _KIND["wait"])
    long = calls & (end - start >= LONG_CALL)
    launched = np.flatnonzero(work & (table["launch"] != NEVER))
    launch = table["launch"][launched]
    usual = ~long[launch]
    return {
        "busy": (start[work], end[work]),
        "start-up": (start[long], end[long]),
        "launching": (start[launch[usual]], np.maximum(start[launched[usual]], end[launch[usual]])),
        "driver": (start[calls | waits], end[calls | waits]),
        "operators": _rows(table, host & (kind == _KIND["op"])),
    }


def _rows(table: Table, rows: NDArray[np.bool_]) -> Intervals:
    return table["start"][rows], table["end"][rows]


def _edges(table: Table) -> Ints:
    """Equal pieces of the window: from the first to the last that is work or leads to it."""
    of = [_KIND[name] for name in ("run", "op", "launch", "driver", "wait", "kernel", "copy")]
    rows = np.isin(table["kind"], of)
    first, last = int(table["start"][rows].min()), int(table["end"][rows].max())
    return np.linspace(first, max(last, first + 1), PIECES + 1).astype(np.int64)


def _effect(found: dict[str, Ints], rng: np.random.Generator) -> tuple[Effect | None, str]:
    """Launching and operators over idle time, with its interval; why there is none."""
    part = found["launching"] + found["operators"]
    idle = sum((pieces for name, pieces in found.items() if name != "busy"), np.zeros(PIECES, dtype=np.int64))
    if not idle.sum():
        return None, "the device was never idle"
    compared = ratio_of_sums(part, idle, rng)
    share = float(part.sum() / idle.sum())
    if compared.interval is None:
        return Effect(share), compared.reason
    return Effect(share, compared.interval.lo, compared.interval.hi), ""


def _short(table: Table, linked: Ints, calls: Ints) -> float | None:
    if not linked.size:
        return None
    return float((table["end"][linked] - table["start"][linked] < calls).mean())


def _streams(spans: Spans) -> tuple[Stream, ...]:
    """Kernels and copies by stream, the busiest first."""
    table = spans.table
    rows = np.flatnonzero((table["kind"] == _KIND["kernel"]) | (table["kind"] == _KIND["copy"]))
    took = table["end"][rows] - table["start"][rows]
    out = []
    for lane in np.unique(table["lane"][rows]):
        own = table["lane"][rows] == lane
        out.append(Stream(spans.lanes[lane], int(own.sum()), int(took[own].sum())))
    return tuple(sorted(out, key=lambda stream: -stream.busy))


def _first_use(spans: Spans) -> tuple[tuple[str, int], ...]:
    """Time in long driver calls by name, the longest first."""
    table = spans.table
    kind = table["kind"]
    calls = (table["device"] == NEVER) & ((kind == _KIND["launch"]) | (kind == _KIND["driver"]))
    rows = np.flatnonzero(calls & (table["end"] - table["start"] >= LONG_CALL))
    totals: dict[str, int] = {}
    for row in rows.tolist():
        name = spans.names[table["name"][row]]
        totals[name] = totals.get(name, 0) + int(table["end"][row] - table["start"][row])
    return tuple(sorted(totals.items(), key=lambda pair: -pair[1]))
