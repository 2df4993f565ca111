"""Summary: what a tool has already added up. Percentiles of operating points, mean times of layers; no requests.

Nothing in it can be taken apart again: no percentile of several points, no tail of a mean.
"""

from __future__ import annotations

import msgspec

from trimtab.domain.noun import NEVER, Noun, Ns


class Point(Noun, frozen=True, kw_only=True):
    """One operating point: what a load tool measured while it held one load and one ``setting`` of anything else.

    ``count`` = requests behind its figures. ``offered`` and ``achieved`` = requests a second, asked for and done.
    ``clients`` = requests that the tool kept in flight. None = the file does not say. ``latency`` = ns by name: min,
    mean, max and percentiles like ``p50`` and ``p99.9``. ``stages`` = mean ns by name, parts of the mean latency.
    """

    name: str
    setting: str = ""
    count: int | None = None
    offered: float | None = None
    achieved: float | None = None
    clients: float | None = None
    latency: dict[str, Ns] = {}
    stages: dict[str, Ns] = {}


class Layer(Noun, frozen=True, kw_only=True):
    """One layer of a network as its runtime runs it: mean ns a run (NEVER = not timed), and its types.

    ``dtype`` = the type in which it computes, ``reads`` and ``writes`` those of its first input and output that are
    types to compute in; "" = not said. ``moves`` = it only changes type or layout.
    """

    name: str
    kind: str = ""
    took: Ns = NEVER
    dtype: str = ""
    reads: str = ""
    writes: str = ""
    moves: bool = False


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """One file's summary. ``paced`` False = the tool sent requests as others ended, None = the file does not say.

    ``bound`` = percentile and ns that the run itself was held to. ``short`` = why the tool itself calls the run too
    short. ``refused`` = figures of the file that are not what they are called, and why. ``instead`` = what would say
    more.
    """

    tool: str
    points: tuple[Point, ...] = ()
    layers: tuple[Layer, ...] = ()
    paced: bool | None = None
    bound: tuple[str, Ns] | None = None
    short: tuple[str, ...] = ()
    facts: dict[str, str] = {}
    refused: tuple[str, ...] = ()
    instead: str = ""
