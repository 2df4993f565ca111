"""The tail account: every request's latency over causes, own and inherited, exact in int64 ns.

Theory. Own parts come from the recorded timeline (:mod:`.cuts`) and the profiles (:mod:`.parts`). Why there was a
queue is asked of a queue model (:mod:`.replays`). For a set S of causes let w(S) be the modelled busy wait of a
request when only the causes in S exist: useful work plus the parts in S, requests ready at enqueued (plus own hold if
hold is in S), any worker eligible if imbalance is not in S. An outage or a pace run in S blocks its worker, and a
request is ready only after its own wait for it. With

    c = min(w(none), w(all))        the wait that useful work alone causes: capacity
    E = w(all) - c                  the excess
    m_k = max(0, w(all) - w(all less k)) + max(0, w(only k) - c)

E is apportioned over m_k; for two causes that is the Shapley value. The recorded busy wait, and the request's own
co-batching time (its mates are there because they queued), are apportioned over (c, E_k). Beside each share stands the
relief: (busy wait + co-batching) x max(0, w(all) - w(all less k)) / w(all), what removing k alone gives back.

Why not charge the batches that ran meanwhile: a request that arrives after a stall, before its backlog drains, waits
because of the stall, although nothing but useful work ran while it waited.

Limits. Batches do not re-form, so policy causes (hold) are underestimated: policies are judged by simulation only.
Near saturation a small waste owns much of the tail; that is correct. Waits are supermodular in the causes: reliefs do
not add up.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.account import ACCOUNT_COLUMNS, BATCH_PARTS, CAUSES, PARTS, Account, Eligible
from trimtab.domain.noun import NEVER, EntryId
from trimtab.domain.plan import Plan
from trimtab.domain.ports import Predictor
from trimtab.domain.trace import MARK_KINDS, Table, Trace
from trimtab.errors import DataError
from trimtab.evidence.attribute._model import Model
from trimtab.evidence.attribute.cuts import Timeline, batch_ends, cut
from trimtab.evidence.attribute.parts import Execution
from trimtab.evidence.attribute.replays import Sets
from trimtab.evidence.attribute.split import Int, Members, apportion, batch_rows, muldiv
from trimtab.evidence.attribute.story import story
from trimtab.evidence.attribute.tail import findings
from trimtab.serving.place import PLACE, SIZE_AFFINITY, Asked, size_ranks

__all__ = ["account", "batch_rows", "build", "classes", "findings", "story", "succeeded"]

Columns = dict[str, NDArray[np.int64]]


def account(trace: Trace, promise: Predictor, reference: Predictor, reference_entry: EntryId, plan: Plan) -> Account:
    """The account of ``trace``, run under ``plan``.

    ``promise`` knows T_e of the plan's own entries, ``reference`` T_ref of ``reference_entry``. Raises DataError where
    the trace's times contradict each other, or where it ran entries that neither the plan has nor a controller brought.
    """
    return build(trace, promise, reference, reference_entry, plan, eligible_workers(trace, plan))


def eligible_workers(trace: Trace, plan: Plan) -> Eligible:
    """By stream and entry of ``trace``: the workers that the plan's placement allows.

    An entry that came while the run served has no rank by size; no placement may ask for it.
    """
    ranks = size_ranks({entry.id: entry for entry in plan.compile.entries})
    came = late_entries(trace)
    ran = [trace.entries[code] for code in np.unique(trace.batches["entry"]).tolist() if code >= 0]
    foreign = [entry for entry in ran if entry not in ranks and entry not in came]
    if foreign:
        raise DataError(
            f"plan {plan.id!r} has no entry {foreign[0]!r}",
            where=f"run {trace.run.id}",
            fix="account for a run with the plan that it ran under",
        )
    if came and plan.serve.placement == SIZE_AFFINITY:
        raise DataError(
            f"entry {min(came)!r} came while it served, and placement by size depends on when",
            where=f"run {trace.run.id}",
            fix="account for a run whose table did not change, or that is placed in another way",
        )
    place, workers = PLACE[plan.serve.placement], trace.run.workers
    return tuple(
        tuple(place(Asked(stream, ranks.get(entry, 0), len(ranks), workers)) for entry in trace.entries)
        for stream in range(len(trace.streams))
    )


def late_entries(trace: Trace) -> set[EntryId]:
    """The entries that a controller had prepared while the run served."""
    prepared = trace.marks["kind"] == MARK_KINDS.index("prepare")
    return {trace.details[number] for number in trace.marks["detail"][prepared].tolist()}


def build(
    trace: Trace,
    promise: Predictor,
    reference: Predictor,
    reference_entry: EntryId,
    plan: Plan,
    eligible: Eligible,
) -> Account:
    """:func:`account` with the workers of each stream and entry given: ``eligible[stream][entry]``."""
    members = Members(batch_rows(trace), len(trace.batches))
    check_times(trace, members)
    sets, kind = classes(trace, members, eligible)
    timeline = Timeline(trace, trace.run.workers)
    waiting, lag = cut_waits(trace, members, timeline, sets, kind)
    dispatch, wall = occupied_times(trace, members, lag)
    execution = Execution(trace, members, wall, promise, reference, reference_entry)
    behind = execution.behind(dispatch)
    own = own_parts(trace, members, waiting, execution)
    del execution  # a million requests hold a gigabyte here
    model = Model(trace, members, behind, waiting, timeline, sets, kind, plan.serve.order)
    del timeline
    columns = own | inherit(model, members, own, waiting["hold"])
    req = trace.requests
    columns |= {name: req[name] for name in ("id", "stream", "error", "batch")}
    return Account(
        run=trace.run.id,
        plan=plan.id,
        reference_entry=reference_entry,
        eligible=eligible,
        requests=Table({name: columns[name].astype(dtype, copy=False) for name, dtype in ACCOUNT_COLUMNS.items()}),
        batches=Table({"id": trace.batches["id"], **{name: behind[name] for name in BATCH_PARTS}}),
    )


def succeeded(trace: Trace) -> NDArray[np.bool_]:
    """Which requests ended well; the others have latency +infinity."""
    ok: NDArray[np.bool_] = (trace.requests["error"] == 0) & (trace.requests["done"] != NEVER)
    return ok


def check_times(trace: Trace, members: Members) -> None:
    """Refuse times that cannot be: the account would have to invent a part."""
    req, batches = trace.requests, trace.batches
    ok = succeeded(trace)
    if np.any(ok & (members.row < 0)):
        first = int(req["id"][np.argmax(ok & (members.row < 0))])
        raise DataError(
            f"request {first} ended well, but its batch is not in the trace",
            where=f"run {trace.run.id}",
            fix="keep the batches of every request when a trace is imported or sliced",
        )
    rows = np.flatnonzero(ok)
    batch = members.row[rows]
    names = ("scheduled", "enqueued", "dispatched", "started", "ended", "done")
    times = [req[n][rows] for n in names[:2]] + [batches[n][batch] for n in names[2:5]] + [req["done"][rows]]
    for before, after, lo, hi in zip(names, names[1:], times, times[1:], strict=False):
        wrong = np.flatnonzero(lo > hi)
        if wrong.size:
            raise DataError(
                f"{wrong.size} requests have {after} before {before}, the first is {int(req['id'][rows[wrong[0]]])}",
                where=f"run {trace.run.id}, requests and batches",
                fix="record all times with one monotonic clock",
            )


def classes(trace: Trace, members: Members, eligible: Eligible) -> tuple[Sets, Int]:
    """The distinct sets of eligible workers, and the class of each request; who never ran counts to its stream's first
    entry, and is asked by nobody."""
    wanted = [[tuple(sorted(set(workers))) for workers in entries] for entries in eligible]
    sets = tuple(dict.fromkeys(workers for entries in wanted for workers in entries))
    code = np.array([[sets.index(workers) for workers in entries] for entries in wanted], dtype=np.int64)
    ran = members.row >= 0
    entry = np.zeros(members.row.shape, dtype=np.int64)
    entry[ran] = np.maximum(trace.batches["entry"][members.row[ran]], 0)
    kind: Int = code[trace.requests["stream"], entry]
    return sets, kind


def cut_waits(trace: Trace, members: Members, timeline: Timeline, sets: Sets, kind: Int) -> tuple[Columns, Int]:
    """Parts of [enqueued, dispatched) of each request that ran, and the scheduler's lag before each batch."""
    req, size = trace.requests, len(trace.requests)
    names = ("hold", "dispatch", "unavailable", "occupied", "busy", "idle_elsewhere")
    out = {name: np.zeros(size, dtype=np.int64) for name in names}
    lag = np.zeros(size, dtype=np.int64)
    for code, workers in enumerate(sets):
        rows = np.flatnonzero((members.row >= 0) & (kind == code))
        if not rows.size:
            continue
        view = timeline.view(workers)
        enqueued = req["enqueued"][rows]
        sent = np.maximum(trace.batches["dispatched"][members.row[rows]], enqueued)
        ready = np.clip(req["batched"][rows], enqueued, sent)
        for name, part in cut(view, enqueued, ready, sent).items():
            out[name][rows] = part
        lag[rows] = view.lag(ready, sent)
    return out, members.reduce(np.minimum, lag, 0)


def occupied_times(trace: Trace, members: Members, lag: Int) -> tuple[Int, Int]:
    """(dispatch, wall) of each batch, ns: scheduler lag + [dispatched, started), and [started, ended). A failed batch
    may have no marks of its own: all of its occupation is wall."""
    batches = trace.batches
    columns = (trace.requests["done"], batches["dispatched"], batches["ended"], batches["done"])
    last = max((int(c.max()) for c in columns if c.size), default=0)
    whole = np.maximum(batch_ends(trace, last) - batches["dispatched"], 0)
    failed = batches["error"] != 0
    before = np.where(failed, 0, batches["started"] - batches["dispatched"])
    return lag + before, whole - before


def throttled(trace: Trace, off_core: Int) -> Int:
    """Of each batch's off-core time: at most what the quota took from all our processes while it ran."""
    samples = trace.samples
    readable = np.flatnonzero(samples["throttled_ns"] != NEVER)
    if readable.size < 2:
        return np.zeros_like(off_core)
    order = readable[np.argsort(samples["t"][readable], kind="stable")]
    t, total = samples["t"][order], samples["throttled_ns"][order].astype(np.float64)
    taken = np.interp(trace.batches["ended"], t, total) - np.interp(trace.batches["started"], t, total)
    out: Int = np.minimum(np.maximum(np.rint(taken), 0).astype(np.int64), off_core)
    return out


def own_parts(trace: Trace, members: Members, waiting: Columns, execution: Execution) -> Columns:
    """PARTS and ``latency`` of every request, ``idle_elsewhere`` and ``throttled``; zeros where it failed."""
    req, batches = trace.requests, trace.batches
    rows = np.flatnonzero(succeeded(trace))
    batch = members.row[rows]
    parts = {name: part[rows] for name, part in waiting.items()}
    parts["slip"] = req["enqueued"][rows] - req["scheduled"][rows]
    parts["dispatch"] = parts["dispatch"] + batches["started"][batch] - batches["dispatched"][batch]
    parts["completion"] = req["done"][rows] - batches["ended"][batch]
    parts["throttled"] = throttled(trace, execution.off_core)[batch]
    parts |= execution.own(members, rows)
    out: Columns = {}
    for name in (*PARTS, "idle_elsewhere", "throttled"):
        out[name] = np.zeros(len(req), dtype=np.int64)
        out[name][rows] = parts.pop(name)
    out["latency"] = np.full(len(req), NEVER, dtype=np.int64)
    out["latency"][rows] = req["done"][rows] - req["scheduled"][rows]
    return out


def inherit(model: Model, members: Members, own: Columns, hold: Int) -> Columns:
    """``inherited.<label>``, ``relief.<cause>`` and ``modelled`` of every request (see the module's theory).

    Where the model has no wait, the recorded one is ``unmodelled``; co-batching there is due to ``hold`` if the batch
    was held.
    """
    owed = own["busy"] + own["co_batching"]
    nothing = np.zeros_like(owed)
    everything = model.wait(model.causes)
    capacity = np.minimum(model.wait(()), everything)
    safe = np.maximum(everything, 1)
    out: Columns = {f"{column}.{cause}": nothing for cause in CAUSES for column in ("inherited", "relief")}
    weights: list[Int] = []
    for cause in model.causes:
        saved = np.maximum(everything - model.wait([c for c in model.causes if c != cause]), 0)
        alone = np.maximum(model.wait([cause]) - capacity, 0)
        out[f"relief.{cause}"] = muldiv(owed, saved, safe)
        weights.append(saved + alone)
    excess = list(apportion(everything - capacity, weights)) if weights else []
    left = everything - capacity - sum(excess, nothing)
    labels = ["capacity", *model.causes, "unmodelled"]
    for label, piece in zip(labels, apportion(owed, [capacity, *excess, left]), strict=True):
        out[f"inherited.{label}"] = piece
    return out | without_model(members, own, everything == 0, hold, out) | {"modelled": everything}


def without_model(members: Members, own: Columns, idle: NDArray[np.bool_], hold: Int, given: Columns) -> Columns:
    """The inherited labels ``hold`` and ``unmodelled`` with the requests added for which the model has no wait."""
    held = members.reduce(np.maximum, hold, 0)[np.maximum(members.row, 0)] > 0 if members.order.size else idle & False
    mates = np.where(idle & held, own["co_batching"], 0)
    rest = np.where(idle, own["busy"] + own["co_batching"], 0) - mates
    return {
        "inherited.hold": given["inherited.hold"] + mates,
        "inherited.unmodelled": given["inherited.unmodelled"] + rest,
    }
