"""What the batch policy costs and what it saves: hold paid by members against service saved, by entry (R13).

Definitions
-----------
For a batch of n members that ended well on entry e at executed dims D, from the profile's warm times T_e:

    hold paid       sum of the members' hold: an eligible worker was free, the policy did not let them go
    service saved   sum over members j of T_e(alone_j) - T_e(D), signed

alone_j = what would have run for member j by itself on the same entry: its own dims on a dynamic entry, the entry's own
dims on a static or padded one, at the smallest batch that the entry was compiled for. Both are given per request, by
entry and over all; ``net`` = saved - paid. The sizes that were really executed stand beside it, with the rows that no
member filled.

Limits: hold is paid by the members themselves, saved service shortens the queue of everybody behind: near saturation
1 ms saved is worth more than 1 ms held. It is a reading of this run; a policy is judged by running it. Batches with a
time that no profile knows count as unknown. Where the plan does not batch there is nothing to say.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from trimtab.domain.account import Account
from trimtab.domain.figure import Finding, Series
from trimtab.domain.plan import Plan
from trimtab.domain.ports import Predictor
from trimtab.domain.trace import Trace
from trimtab.evidence._latency_tables import table
from trimtab.evidence.attribute.parts import look_up
from trimtab.evidence.attribute.split import Int, batch_rows
from trimtab.evidence.figures import NS_MS, Desk, series
from trimtab.evidence.score.batches import Bool
from trimtab.evidence.stats.bootstrap import paired_difference

Row = dict[str, Any]


def policy(
    account: Account, trace: Trace, plan: Plan, promise: Predictor, rng: np.random.Generator
) -> tuple[Desk, list[Finding], list[Series]]:
    """Figures ``policy.*``, what they say, and the tables by entry and by size; all empty where nothing batches."""
    desk = Desk("policy", "this run", f"accounts/{account.run}.parquet")
    if plan.serve.batch.max_size == 1 or not len(trace.batches):
        return desk, [], []
    member = batch_rows(trace)
    paid, saved, known = _balance(account, trace, plan, promise, member)
    _figures(desk, trace, member, paid, saved, known, rng)
    tables = [
        series("policy.by_entry", table(list(_entries(trace, paid, saved, known))), _UNITS, desk.artifact),
        series(
            "policy.sizes", table(list(_sizes(trace))), {"share": "share"}, f"traces/{trace.run.id}/batches.parquet"
        ),
    ]
    return desk, _said(desk), [one for one in tables if one.columns]


_UNITS = dict.fromkeys(("paid", "saved", "net"), "ms") | {"held": "share", "empty_rows": "share"}


def _balance(account: Account, trace: Trace, plan: Plan, promise: Predictor, member: Int) -> tuple[Int, Int, Bool]:
    """(hold paid, service saved) by batch, ns, and for which batches both are known."""
    b, n = trace.batches, len(trace.batches)
    ran = np.flatnonzero(member >= 0)
    paid, alone, lost = (np.zeros(n, dtype=np.int64) for _ in range(3))
    np.add.at(paid, member[ran], account.requests["hold"][ran])
    single = _alone(trace, plan, promise, member, ran)
    np.add.at(alone, member[ran], single)
    np.add.at(lost, member[ran], (single <= 0).astype(np.int64))
    columns = [b["executed_size"].astype(np.int64), *(b[f"exec.{name}"] for name in trace.dim_names)]
    together = look_up(promise, trace.entries, b["entry"].astype(np.int64), columns)
    known = (b["error"] == 0) & (together > 0) & (lost == 0) & (b["size"] > 0)
    return paid, np.where(known, alone - together, 0), known


def _alone(trace: Trace, plan: Plan, promise: Predictor, member: Int, ran: Int) -> Int:
    """Warm time of each request of ``ran`` by itself on the entry that served it, ns; 0 = unknown."""
    entry = trace.batches["entry"].astype(np.int64)[member[ran]]
    size = np.ones(ran.size, dtype=np.int64)
    dims = [trace.requests[f"dim.{name}"][ran].copy() for name in trace.dim_names]
    by_id = {one.id: one for one in plan.compile.entries}
    for code, name in enumerate(trace.entries):
        one = by_id.get(name)
        if one is None:
            continue
        mine = entry == code
        size[mine] = one.batch[0]
        if one.kind != "dynamic":
            for column, top in zip(dims, one.hi, strict=True):
                column[mine] = top
    return look_up(promise, trace.entries, entry, [size, *dims]) if ran.size else np.zeros(0, dtype=np.int64)


def _figures(
    desk: Desk, trace: Trace, member: Int, paid: Int, saved: Int, known: Bool, rng: np.random.Generator
) -> None:
    size = trace.batches["size"].astype(np.int64)
    requests = int(size[known].sum())
    lost = int(size.sum()) - requests
    note = f"ms a request, over {requests} requests" + (f"; {lost} in batches that no profile knows" if lost else "")
    for name, part in (("hold_paid", paid), ("service_saved", saved)):
        value = float(part[known].sum()) / requests * NS_MS if requests else None
        desk.add(name, value, "ms", requests, note=note)
    here = np.flatnonzero((member >= 0) & known[member])
    each = size[member[here]]
    net = paired_difference(paid[member[here]] / each * NS_MS, saved[member[here]] / each * NS_MS, rng)
    desk.compare(
        "net", net, "ms", note="service saved - hold paid, ms a request; above 0 = it saves more than it holds"
    )
    desk.add("mean_size", float(size.mean()), "requests", size.size, note="members of a batch")
    rows = trace.batches["executed_size"].astype(np.int64)
    empty = 1 - float(size.sum()) / float(rows.sum()) if rows.sum() else None
    desk.add("empty_rows", empty, "share", size.size, note="of executed rows: filled by no member")


def _entries(trace: Trace, paid: Int, saved: Int, known: Bool) -> Iterator[Row]:
    size = trace.batches["size"].astype(np.int64)
    rows = trace.batches["executed_size"].astype(np.int64)
    for code, name in enumerate(trace.entries):
        mine = trace.batches["entry"] == code
        sure = mine & known
        requests = int(size[sure].sum())
        if not mine.any():
            continue
        yield {
            "entry": name,
            "batches": int(mine.sum()),
            "requests": int(size[mine].sum()),
            "mean_size": float(size[mine].mean()),
            "empty_rows": 1 - float(size[mine].sum()) / float(rows[mine].sum()),
            "held": float((paid[mine] > 0).mean()),
            "paid": float(paid[sure].sum()) / requests * NS_MS if requests else None,
            "saved": float(saved[sure].sum()) / requests * NS_MS if requests else None,
            "net": float((saved - paid)[sure].sum()) / requests * NS_MS if requests else None,
            "unknown": int(size[mine & ~known].sum()),
        }


def _sizes(trace: Trace) -> Iterator[Row]:
    """How often each size was formed and executed, by entry."""
    b, every = trace.batches, int(trace.batches["size"].sum())
    keys = np.stack([b["entry"], b["size"], b["executed_size"]], axis=1).astype(np.int64)
    distinct, counts = np.unique(keys, axis=0, return_counts=True)
    for (entry, size, executed), count in zip(distinct.tolist(), counts.tolist(), strict=True):
        yield {
            "entry": trace.entries[entry],
            "size": size,
            "executed_size": executed,
            "batches": count,
            "requests": size * count,
            "share": size * count / every if every else None,
        }


def _said(desk: Desk) -> list[Finding]:
    found = {figure.id: figure for figure in desk.figures}
    paid, saved, net = (found[f"policy.{name}"] for name in ("hold_paid", "service_saved", "net"))
    if paid.value is None or saved.value is None or net.value is None:
        return []
    text = f"Batching holds a request back for {paid.value:.3g} ms and saves {saved.value:.3g} ms of service a request"
    between = net.interval
    if between is None or between.lo <= 0 <= between.hi:
        text += ": whether it pays is not shown."
    else:
        text += ": it saves more than it holds." if net.value > 0 else ": it holds longer than it saves."
    ids = ("policy.hold_paid", "policy.service_saved", "policy.net")
    return [Finding(text=text, figures=ids, owner="runtime")]
