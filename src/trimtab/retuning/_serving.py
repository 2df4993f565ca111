"""Moves of the serving half that leave the entries as they are: order, admission bound, placement, workers.

All but other threads are changed live. Who waits behind whom changes with each of them, and with it who is batched
with whom: only the machine's own re-simulation, and then a replay, says what they do to the tail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from trimtab.domain.plan import Plan
from trimtab.domain.profile import CompileProfile
from trimtab.domain.verdict import Move
from trimtab.errors import StudyError
from trimtab.evidence.figures import MIB, counted
from trimtab.retuning._change import place, rank, readmit, reorder, resize
from trimtab.retuning._collector import Collector
from trimtab.serving.order import ORDER
from trimtab.serving.place import PLACE

ORDERS: dict[str, tuple[str, str]] = {
    "fifo": ("Serve waiting requests first come, first served.", "Short requests wait behind long ones."),
    "shortest": (
        "Serve the waiting request with the shortest predicted time first.",
        "Long requests can starve while short ones keep coming: look at p99 and at every stream.",
    ),
    "deadline": (
        "Serve the waiting request with the earliest deadline first.",
        "Under overload it serves what is late already; requests without a deadline can starve.",
    ),
}
"""Order -> what the move says, and what it risks."""

PLACEMENTS: dict[str, tuple[str, str]] = {
    "shared": ("Let every worker serve every request.", "Small requests can wait behind large ones on every worker."),
    "stream-affinity": (
        "Give each stream one worker of its own.",
        "A worker can idle while the requests of another's streams wait.",
    ),
    "size-affinity": (
        "Give small entries the first workers, large entries the last.",
        "A worker can idle while requests of another size wait.",
    ),
}
"""Placement -> what the move says, and what it risks."""


def serving_moves(found: Collector) -> None:
    """Offer each order, admission bound, placement and number of workers that the study's space names."""
    _orders(found)
    _bounds(found)
    _placements(found)
    _workers(found)


def _orders(found: Collector) -> None:
    base = found.study.baseline
    for order in found.study.space.orders:
        _known(ORDER, order, "space.orders")
        name, (sentence, risk) = f"order-{order}", ORDERS[order]
        if order == "deadline" and not found.known.deadlines:
            found.refuse(name, sentence, "deadlines do not differ: that is first come, first served")
            continue
        _live(found, "order", name, sentence, risk, reorder(base, order))


def _bounds(found: Collector) -> None:
    for bound in found.study.space.admit:
        sentence = f"Reject a request on arrival while {bound} wait or run."
        risk = "Rejected requests are misses: worth it only where the rest would be late without it."
        _live(found, "admit", f"admit-{bound}", sentence, risk, readmit(found.study.baseline, bound))


def _placements(found: Collector) -> None:
    base = found.study.baseline
    for placement in found.study.space.placements:
        _known(PLACE, placement, "space.placements")
        name, (sentence, risk) = f"place-{placement}", PLACEMENTS[placement]
        if base.serve.workers == 1:
            found.refuse(name, sentence, "one worker serves everything: there is nothing to place")
            continue
        if placement == "size-affinity" and len(base.compile.entries) == 1:
            found.refuse(name, sentence, "one entry serves every size")
            continue
        _live(found, "placement", name, sentence, risk, place(base, placement))


def _workers(found: Collector) -> None:
    base, cores = found.study.baseline, found.study.envelope.worker_cores
    for workers, threads in found.study.space.workers:
        name = f"workers-{workers}x{threads}"
        sentence = f"Serve with {counted(workers, 'worker')} of {counted(threads, 'thread')}."
        if workers > len(cores):
            left = counted(len(cores), "core")
            found.refuse(name, sentence, f"{counted(workers, 'worker')}, but {left} beside the driver")
            continue
        recompiles = threads != base.serve.threads
        kind = "threads" if recompiles else "workers"
        found.add(
            Move(
                kind=kind,
                sentence=sentence,
                owner="runtime",
                plan=replace(resize(base, workers, threads), id=name, note=""),
                size=rank(kind, workers * threads),
                compile_s=None if recompiles else _more(found, workers, lambda entry: entry.compile_ns / 1e9),
                memory_mib=None if recompiles else _more(found, workers, lambda entry: entry.memory_bytes / MIB),
                risk="Every worker holds the network and its entries once more; the threads of one share its core.",
            )
        )


def _more(found: Collector, workers: int, takes: Callable[[CompileProfile], float]) -> float | None:
    """What the workers beyond the baseline's take once more, summed over its profiled entries; None without a profile
    of the baseline."""
    base = found.study.baseline
    mine = [takes(profile) for profile in found.known.profiles if profile.plan == base.id]
    return max(0, workers - base.serve.workers) * sum(mine) if mine else None


def _live(found: Collector, kind: str, name: str, sentence: str, risk: str, plan: Plan) -> None:
    """A move that compiles nothing and holds nothing more."""
    found.add(
        Move(
            kind=kind,
            sentence=sentence,
            owner="runtime",
            plan=replace(plan, id=name, note=""),
            size=rank(kind),
            compile_s=0.0,
            memory_mib=0.0,
            risk=risk,
        )
    )


def _known(policies: Mapping[str, object], name: str, where: str) -> None:
    if name not in policies:
        raise StudyError(f"unknown policy {name!r}", where=where, fix=f"use one of {', '.join(sorted(policies))}")
