"""A recorded run, run again by the serving machine itself, with causes taken away. Its source is ``resimulated``.

Theory. The queue model of the account (:mod:`.replays`) keeps every batch as it was. The machine does not: without a
stall, other requests wait together, other batches form, other shapes are seen first. So the same arrivals, as they were
enqueued, go through the same machine under a virtual clock. What a batch takes is what its parts took:

    unchanged    same members, entry and dims: its recorded parts, less those that are taken away
    re-formed    its parts at its new dims, from the profiles; run time = promise x the ratio (warm run / promise) of
                 the batch that its oldest member was in; off-core time and dispatch are those of that batch
    first seen   asked anew of the machine; its excess is the one recorded for that shape, else the profile's

A member's completion is added to its end. Taking away ``hold`` sets the hold to 0, ``imbalance`` lets every worker take
every stream, ``slip`` lets requests arrive when they were scheduled; any other cause is a part of each batch.

Where batches re-form, a jitter of some microseconds decides who rides with whom. A replica adds such a jitter to every
batch, drawn from (replica, oldest member); what differs between replicas is no effect.

Limits. Pace runs are left out (they wait for idle workers). A worker that went down, or a batch that failed, is not run
again, nor a table of entries that changed, nor an order by deadlines, which no trace holds: such a run is refused.
Ragged padding goes away with padding, as if kernels were packed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.domain.account import BATCH_PARTS, Account
from trimtab.domain.events import ERROR_KINDS, BatchReport, Dispatch
from trimtab.domain.noun import NEVER, Dims, EntryId, Executed, Ns
from trimtab.domain.plan import Plan
from trimtab.domain.ports import Predictor
from trimtab.domain.trace import MARK_KINDS, Trace
from trimtab.domain.workload import Provenance, Workload
from trimtab.evidence.attribute.parts import descend
from trimtab.evidence.attribute.split import Int, Members, batch_rows
from trimtab.evidence.stats.quantiles import Floats
from trimtab.mapping.route import Router
from trimtab.mapping.service import unit_draws
from trimtab.serving.simulate import simulate

JITTER: Ns = 60_000
"""The most that a replica moves a batch's time, ns."""

POLICIES = ("hold", "imbalance")
NETTED = ("useful", "padding", "premium", "interference", "unprofiled", "cold")
"""A run that was faster than promised pays these back, in this order (as in :mod:`.parts`)."""

Parts = dict[str, Ns]


def refusal(trace: Trace, plan: Plan) -> str:
    """Why this run, served under ``plan``, cannot be run again; empty if it can."""
    if plan.serve.order == "deadline":
        return "it was served by deadlines, and a trace does not hold them"
    unlike = [code for code, kind in enumerate(ERROR_KINDS) if kind not in ("none", "rejected")]
    failed = int(np.isin(trace.requests["error"], unlike).sum())
    if failed:
        return f"{failed} requests failed, and failures are not run again"
    fell = [MARK_KINDS.index(kind) for kind in ("worker-down", "entry-failed")]
    if np.isin(trace.marks["kind"], fell).any():
        return "a worker went down or lost an entry, and that is not run again"
    changed = [MARK_KINDS.index(kind) for kind in ("remap", "roll-back")]
    swaps = trace.marks["detail"][np.isin(trace.marks["kind"], changed)]
    if swaps.size:
        return (
            f"its table of entries changed while it served, first to: {trace.details[swaps[0]]}; that is not run again"
        )
    return "" if len(trace.batches) else "no batch ran"


class _Batch(msgspec.Struct, frozen=True):
    """One recorded batch."""

    entry: EntryId
    executed: Executed
    members: tuple[int, ...]
    first: bool
    ratio: float  # warm run / promise; 1 where nothing was promised
    parts: Parts


class Rerun:
    """``trace`` again, under ``plan`` (see the module's theory).

    ``promise`` knows the plan's own entries, ``reference`` the account's reference entry. Times in ns. The run must not
    be one that :func:`refusal` refuses.
    """

    def __init__(self, trace: Trace, account: Account, plan: Plan, promise: Predictor, reference: Predictor) -> None:
        self._trace, self._plan, self._promise = trace, plan, promise
        self._reference, self._reference_entry = reference, account.reference_entry
        self._router = Router(plan.compile)
        self.dims: list[Dims] = [tuple(row) for row in trace.requests.dims("dim", trace.dim_names).tolist()]
        self._workload = _arrivals(trace, "enqueued"), _arrivals(trace, "scheduled")
        members = Members(batch_rows(trace), len(trace.batches))
        self.row_of = members.row.tolist()
        self.batches = self._recorded(account, members)
        self._firsts = {(b.entry, b.executed): b.parts["cold"] for b in self.batches if b.first}
        self._levels: dict[tuple[EntryId, Executed, tuple[Dims, ...]], Parts] = {}
        self._completion = account.requests["completion"].astype(np.float64)

    def run(self, without: Collection[str] = (), replica: int = 0) -> tuple[Floats, float]:
        """Latencies float64[n] in ns, +inf = failed, with the causes ``without`` taken away; and the share of batches
        that ran as recorded. Replica 0 has no jitter."""
        plan, trace = _policies(self._plan, without), self._trace
        cores = tuple(range(plan.serve.workers))
        info = msgspec.structs.replace(trace.run, source="resimulated", cores=cores, workers=plan.serve.workers)
        service = _Service(self, frozenset(without), self._jitter(replica))
        workload = self._workload["slip" in without]
        again = simulate(workload, plan, self._router, self._promise, service, info)
        done = again.requests["done"].astype(np.float64)
        if "completion" not in without:
            done = done + self._completion
        latency = done - trace.requests["scheduled"]
        ok = (again.requests["error"] == 0) & (again.requests["done"] != NEVER)
        return np.where(ok, latency, np.inf), service.same / max(len(again.batches), 1)

    def _jitter(self, replica: int) -> list[Ns]:
        size = len(self._trace.requests)
        if not replica:
            return [0] * size
        moved: list[Ns] = np.rint((unit_draws(replica, size) * 2 - 1) * JITTER).astype(np.int64).tolist()
        return moved

    def _recorded(self, account: Account, members: Members) -> list[_Batch]:
        trace = self._trace
        b = trace.batches
        sizes, exec_dims = b["executed_size"].tolist(), b.dims("exec", trace.dim_names).tolist()
        entries, firsts = b["entry"].tolist(), b["first_seen"].tolist()
        columns = {name: account.batches[name].tolist() for name in BATCH_PARTS}
        starts, counts = members.first.tolist(), members.count.tolist()
        order = members.order.tolist()
        run = np.maximum(b["ended"] - b["started"], 0) - account.batches["off_core"] - account.batches["cold"]
        out = []
        for row, warm in enumerate(run.tolist()):
            entry, executed = trace.entries[entries[row]], (sizes[row], *exec_dims[row])
            promised = self._promise.warm(entry, executed)
            ids = tuple(sorted(order[starts[row] : starts[row] + counts[row]]))
            parts = {name: column[row] for name, column in columns.items()}
            out.append(_Batch(entry, executed, ids, firsts[row], warm / promised if promised else 1.0, parts))
        return out

    def parts_of(self, batch: Dispatch) -> tuple[Parts, bool]:
        """The parts of a batch of the new run, and whether it ran as recorded."""
        oldest = min(batch.members)
        old = self.batches[self.row_of[oldest]]
        shape = (batch.entry, batch.executed)
        same = shape == (old.entry, old.executed) and (
            old.members == batch.members or old.members == tuple(sorted(batch.members))
        )
        parts = dict(old.parts) if same else self._reformed(batch, old)
        if batch.first_seen and not (same and old.first):
            parts["cold"] = self._first_excess(shape)
        elif same and old.first and not batch.first_seen:
            parts["cold"] = 0
        return parts, same and batch.first_seen == old.first

    def _first_excess(self, shape: tuple[EntryId, Executed]) -> Ns:
        known = self._firsts.get(shape)
        if known is not None:
            return known
        return max(self._promise.expected(*shape, True) - self._promise.warm(*shape), 0)

    def _reformed(self, batch: Dispatch, old: _Batch) -> Parts:
        """Its own levels, with the luck of the batch that its oldest member was in."""
        warm = self._promise.warm(batch.entry, batch.executed)
        if not warm:  # nothing is known of it: the recorded run time, by executed volume
            volume = float(np.prod(batch.executed)) / float(np.prod(old.executed))
            known = sum(old.parts[name] for name in NETTED if name != "cold")
            parts = dict.fromkeys(BATCH_PARTS, 0) | {"unprofiled": round(known * volume)}
        else:
            parts = dict(self._split(batch, warm))
            parts["interference"] = round((old.ratio - 1) * warm)
            _net(parts)
        return parts | {name: old.parts[name] for name in ("off_core", "dispatch")}

    def _split(self, batch: Dispatch, warm: Ns) -> Parts:
        """Levels from the promise down, premium signed; asked once for each set of dims."""
        dims = tuple(sorted(self.dims[request] for request in batch.members))
        key = (batch.entry, batch.executed, dims)
        if key not in self._levels:
            self._levels[key] = self._descend(batch.executed, dims, warm)
        return self._levels[key]

    def _descend(self, executed: Executed, dims: Sequence[Dims], warm: Ns) -> Parts:
        n = len(dims)

        def ref(size: int, at: Sequence[int]) -> Ns:
            return max(self._reference.warm(self._reference_entry, (size, *at)), 0)

        largest = [max(column) for column in zip(*dims, strict=True)]
        each = [ref(n, d) for d in dims]
        levels = [max(self._reference.warm(self._reference_entry, executed), 0), ref(n, largest)]
        levels.append(sum(each) // n if min(each) else 0)
        steps, unprofiled = descend(_one(warm), [_one(level) for level in levels], (True, False, False))
        premium, padding, ragged, useful = (int(step[0]) for step in steps)
        known = {"premium": premium, "padding": padding + ragged, "useful": useful, "unprofiled": int(unprofiled[0])}
        return dict.fromkeys(BATCH_PARTS, 0) | known


class _Service:
    """What each batch of the new run takes; counts those that ran as recorded."""

    def __init__(self, rerun: Rerun, without: frozenset[str], jitter: list[Ns]) -> None:
        self._rerun, self._jitter = rerun, jitter
        self._kept = tuple(name for name in BATCH_PARTS if name not in without)
        self.same = 0

    def draw(self, batch: Dispatch) -> tuple[Ns, BatchReport]:
        parts, same = self._rerun.parts_of(batch)
        self.same += same
        wall = sum([parts[name] for name in self._kept]) + self._jitter[min(batch.members)]
        return max(wall, 1), BatchReport()


def _arrivals(trace: Trace, column: str) -> Workload:
    """The run's requests as a workload that arrives at ``column``'s times, in the recorded order."""
    req = trace.requests
    n = len(req)
    scheduled: NDArray[np.int64] = np.maximum.accumulate(req[column])
    return Workload(
        id=trace.run.id,
        dim_names=trace.dim_names,
        scheduled=scheduled,
        dims=req.dims("dim", trace.dim_names),
        stream=req["stream"].astype(np.int32),
        streams=trace.streams,
        payload=np.zeros(n, dtype=np.int32),
        payload_kind="random",
        deadline=np.full(n, NEVER, dtype=np.int64),
        provenance=Provenance(files=(), time_scale=1.0),
    )


def _policies(plan: Plan, without: Collection[str]) -> Plan:
    serve = plan.serve
    if "hold" in without:
        serve = msgspec.structs.replace(serve, batch=msgspec.structs.replace(serve.batch, hold_ms=0.0))
    if "imbalance" in without:
        serve = msgspec.structs.replace(serve, placement="shared")
    return msgspec.structs.replace(plan, serve=serve)


def _net(parts: Parts) -> None:
    """Pay what is negative back from the other parts, so that all are >= 0."""
    owed = -sum(min(parts[name], 0) for name in ("interference", "premium"))
    for name in NETTED:
        part = max(parts[name], 0)
        paid = min(part, owed)
        parts[name], owed = part - paid, owed - paid


def _one(value: Ns) -> Int:
    return np.array([value], dtype=np.int64)
