"""Ranks that ran side by side, compared: who works longest, and what the others wait for.

Theory. Ranks that train or serve together meet in collectives, so their steps last alike, whoever is slow. What tells
them apart is a rank's *own work* in a step: its length less the time in communication (kernels of NCCL and RCCL, calls
of Gloo). In a step rank r waits max own - own_r for the one that works longest. The effect of `core-imbalance` is the
sum of that over steps and ranks, at most what the rank waited there, over the sum of communication: the part of what
ranks spend waiting for each other that unequal work makes. Its interval is that of a ratio over steps
(:func:`.device.ratio`); steps that grow or shrink together make it too narrow.

Evidence that the class requires: at least 20 steps that all ranks recorded, communication in them, and unequal work of
at least 5 % of their time.

Limits. A step is what the host calls one: kernels that run on after it count in the next. Communication that overlaps
with work counts as communication. Ranks that were not given may be the slow ones.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.domain.figure import Figure, Findings, Series
from trimtab.domain.score import Diagnosis, Named
from trimtab.domain.spans import KIND, Spans
from trimtab.evidence._latency_tables import table
from trimtab.evidence.classify.classes import Case, Suspect, classify
from trimtab.evidence.classify.diagnose import findings
from trimtab.evidence.figures import NS_MS, Desk, percent, series
from trimtab.evidence.stats.quantiles import jain, quantile
from trimtab.evidence.timeline import calls
from trimtab.evidence.timeline.calls import RUN
from trimtab.evidence.timeline.cover import Cover, Ints, cover, lasting
from trimtab.evidence.timeline.device import device, ratio
from trimtab.evidence.timeline.diagnose import NO_REQUESTS, UNNAMED

COMMUNICATION = re.compile(r"^(?:nccl|rccl|oneccl|gloo:|c10d::)", re.IGNORECASE)
FEWEST_STEPS = 20
UNEQUAL = 0.05
MOST_STEPS = 400
METHOD = "ranks are compared by their own work in steps that all of them recorded, not by who was first"

Row = dict[str, Any]


class Rank(msgspec.Struct, frozen=True):
    """One rank: its number, its file, what it recorded, and what that alone proves."""

    number: int
    file: str
    spans: Spans
    alone: Diagnosis


class Together(msgspec.Struct, frozen=True):
    """The diagnosis of ranks side by side, its figures and tables, and the series of its charts."""

    diagnosis: Diagnosis
    found: Findings
    notes: tuple[str, ...]
    charts: tuple[Series, ...]


class _Steps(msgspec.Struct, frozen=True):
    """Steps that all ranks recorded: names, and ns by rank and step."""

    names: tuple[str, ...]
    took: Ints
    waited: Ints

    @property
    def own(self) -> Ints:
        return self.took - self.waited


def compare(ranks: Sequence[Rank], file: str) -> Together:
    """What ``ranks`` show side by side; ``file`` is what figures rest on."""
    steps = _steps([rank.spans for rank in ranks])
    suspect = _suspect(ranks, steps)
    own = classify(Case(gates=(), met=None, fits=None, suspects=(suspect,)))
    diagnosis = _joined(own, ranks)
    figures, tables = _figures(ranks, steps, file)
    found = findings("timeline", diagnosis, file, figures, tables)
    drawn = list(_by_step(ranks, steps))
    charts = (series("timeline.ranks_by_step", table(drawn), {"own": "ms", "took": "ms"}, file),) if drawn else ()
    return Together(diagnosis, found, (METHOD, *_absent(ranks)), charts)


def _steps(given: Sequence[Spans]) -> _Steps:
    by_name = [_named(spans) for spans in given]
    names = tuple(name for name in by_name[0] if all(name in one for one in by_name))
    took = np.array([[one[name][1] - one[name][0] for name in names] for one in by_name], dtype=np.int64)
    waited = np.zeros_like(took)
    for k, (spans, one) in enumerate(zip(given, by_name, strict=True)):
        start, end = (np.array([one[name][side] for name in names], dtype=np.int64) for side in (0, 1))
        waits = _communication(spans)
        waited[k] = waits.until(end) - waits.until(start)
    return _Steps(names, took, waited)


def _named(spans: Spans) -> dict[str, tuple[int, int]]:
    """Start and end of each run whose name is its alone, in order."""
    rows = np.flatnonzero(spans.table["kind"] == RUN).tolist()
    counts = Counter(spans.table["name"][rows].tolist())
    kept = [row for row in rows if counts[int(spans.table["name"][row])] == 1]
    start, end, name = (spans.table[column] for column in ("start", "end", "name"))
    return {spans.names[name[row]]: (int(start[row]), int(end[row])) for row in kept}


def _communication(spans: Spans) -> Cover:
    known = np.array([bool(COMMUNICATION.match(name)) for name in spans.names], dtype=bool)
    kinds = [KIND[name] for name in ("kernel", "op", "note", "other")]
    rows = np.isin(spans.table["kind"], kinds) & known[spans.table["name"]]
    return cover((spans.table["start"][rows], spans.table["end"][rows]))


def _suspect(ranks: Sequence[Rank], steps: _Steps) -> Suspect:
    """`core-imbalance` among ranks, with what speaks for it and against it."""
    missing = []
    if len(steps.names) < FEWEST_STEPS:
        few = f"at least {FEWEST_STEPS} steps that all ranks recorded, after warm-up; {len(steps.names)} are there"
        missing.append(few)
    if not steps.waited.any():
        missing.append("communication of the ranks in their steps (kernels of NCCL, calls of Gloo): none is recorded")
    if missing:
        return Suspect("core-imbalance", None, (), missing=tuple(missing))
    own, longest = steps.own, steps.own.max(axis=0)
    lost = longest - own
    given_back = np.minimum(lost, steps.waited).sum(axis=0).astype(np.float64)
    effect = ratio(given_back, steps.waited.sum(axis=0).astype(np.float64))
    unequal = float(lost.sum() / steps.took.sum())
    seen = f"own work of the ranks differs by {percent(unequal)} of the time of their steps"
    if unequal < UNEQUAL:
        return Suspect("core-imbalance", effect, (), against=(seen,))
    evidence = (seen, _slowest(ranks, own), f"Jain's index of own work is {jain(own.sum(axis=1)) or 0:.3f}; 1 = equal")
    return Suspect("core-imbalance", effect, evidence)


def _slowest(ranks: Sequence[Rank], own: Ints) -> str:
    last = np.bincount(own.argmax(axis=0), minlength=len(ranks))
    k = int(last.argmax())
    others = np.delete(own, k, axis=0)
    return (
        f"rank {ranks[k].number} works longest in {int(last[k])} of {own.shape[1]} steps: "
        f"{lasting(quantile(own[k], 0.5))} against {lasting(quantile(others.ravel(), 0.5))} of the others, medians"
    )


def _joined(own: Diagnosis, ranks: Sequence[Rank]) -> Diagnosis:
    """What the comparison proves first, then what each rank's recording proves, once a class."""
    named = [one for one in own.classes if one.id not in UNNAMED]
    for rank in ranks:
        named += [_of(rank.number, one) for one in rank.alone.classes if one.id not in UNNAMED]
    missing = tuple(
        dict.fromkeys((*own.missing, *(what for rank in ranks for what in rank.alone.missing), NO_REQUESTS))
    )
    following = own.next_measurement or missing[0]
    classes = _merged(named) or own.classes
    return Diagnosis(classes=classes, missing=missing, next_measurement=following)


def _of(number: int, one: Named) -> Named:
    return msgspec.structs.replace(one, evidence=tuple(f"rank {number}: {line}" for line in one.evidence))


def _merged(named: Sequence[Named]) -> tuple[Named, ...]:
    """Each class once, with the evidence of all ranks; a share of one rank is none of all of them."""
    out: dict[str, Named] = {}
    for one in named:
        before = out.get(one.id)
        evidence = one.evidence if before is None else (*before.evidence, *one.evidence)
        share = (one.share, one.interval) if before is None else (None, None)
        out[one.id] = msgspec.structs.replace(one, share=share[0], interval=share[1], evidence=evidence)
    return tuple(out.values())


def _figures(ranks: Sequence[Rank], steps: _Steps, file: str) -> tuple[tuple[Figure, ...], tuple[Series, ...]]:
    desk = Desk("timeline", "these files", file)
    count = len(steps.names)
    desk.add("ranks.given", float(len(ranks)), "ranks", len(ranks))
    desk.add("ranks.steps", float(count), "steps", count, note="that all of them recorded")
    if count:
        own, whole = steps.own, float(steps.took.sum())
        waited = float(steps.waited.sum()) / whole if whole else None
        unequal = float((own.max(axis=0) - own).sum()) / whole if whole else None
        desk.add("ranks.communication", waited, "share", count, note="of the steps' time")
        desk.add("ranks.unequal", unequal, "share", count, note="of the steps' time: own work below the longest rank's")
        desk.add(
            "ranks.fairness", jain(own.sum(axis=1)), "index", len(ranks), note="Jain's index of own work: 1 = equal"
        )
    rows = [_rank(rank, steps, k) for k, rank in enumerate(ranks)]
    named = "; ".join(f"rank {rank.number}: {rank.file}" for rank in ranks)
    return tuple(desk.figures), (series("timeline.ranks", table(rows), {}, file, scope="these files", note=named),)


def _rank(rank: Rank, steps: _Steps, k: int) -> Row:
    spans, on = rank.spans, device(rank.spans)
    compiling = calls.compiled(spans)
    return {
        "rank": rank.number,
        "recorded, ms": int(spans.table["end"].max()) * NS_MS,
        "device busy": percent(on.parts["busy"] / on.window) if on is not None and on.window else None,
        "step p50, ms": _median(steps.took[k]),
        "own work p50, ms": _median(steps.own[k]),
        "steps that compiled": int((compiling > 0).sum()),
        "compiling, ms": float(compiling.sum()) * NS_MS,
    }


def _median(took: NDArray[np.int64]) -> float | None:
    return quantile(took, 0.5) * NS_MS if took.size else None


def _by_step(ranks: Sequence[Rank], steps: _Steps) -> Iterator[Row]:
    """Own work and length of each step by rank; every n-th step, so that at most MOST_STEPS are left."""
    count = len(steps.names)
    for s in range(0, count, max(1, -(-count // MOST_STEPS))):
        for k, rank in enumerate(ranks):
            own, took = float(steps.own[k, s]) * NS_MS, float(steps.took[k, s]) * NS_MS
            yield {"step": s, "name": steps.names[s], "rank": f"rank {rank.number}", "own": own, "took": took}


def _absent(ranks: Sequence[Rank]) -> tuple[str, ...]:
    sizes = {rank.spans.facts.get("world size", "") for rank in ranks}
    size = sizes.pop() if len(sizes) == 1 else ""
    if not size.isdecimal() or int(size) <= len(ranks):
        return ()
    return (f"{len(ranks)} of {size} ranks were given; one that was not may be the slowest",)
