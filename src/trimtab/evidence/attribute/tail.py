"""The attribute stage's figures: what owns the p95 and p99 sets, own and inherited, and what removing it would buy.

Definitions
-----------
The p95 (p99) set = requests that ended well with a latency at or above that percentile over ALL scheduled requests.
Typical requests = those between p40 and p60. For each label (:mod:`.sets`):

    own, inherited   mean ms a request of the set
    share            (own + inherited) / the set's mean latency; all shares sum to 1
    excess           (own + inherited) - the same of typical requests
    gain             p95(L) - p95(L without the label), ms: the single-removal gain that the account predicts
    resimulated      the same, from the machine run again without the cause (:mod:`.counterfactual`)

Gains do not add up to the tail: with two causes or more they may sum to less or to more than it. Shares say what the
tail is made of, gains what one change would buy.

Intervals: block bootstrap over consecutive arrivals, the set's bound held fixed for shares; paired for gains, which
takes the run's own queue as given. Very large runs are not resampled, and say so.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np

from trimtab.domain.account import Account
from trimtab.domain.figure import Finding, Findings, Interval
from trimtab.domain.trace import Trace
from trimtab.evidence.attribute import _tables as tables
from trimtab.evidence.attribute import _words as words
from trimtab.evidence.attribute import slowest
from trimtab.evidence.attribute.counterfactual import Counterfactuals
from trimtab.evidence.attribute.sets import (
    REMOVABLE,
    TAILS,
    Share,
    TailSet,
    inherited,
    latencies,
    leading_cause,
    own,
    shares,
    tail_set,
    typical_rows,
    without,
    without_any,
)
from trimtab.evidence.fairness import fairness
from trimtab.evidence.figures import NS_MS, Desk
from trimtab.evidence.stats.bootstrap import METHOD, paired_quantile, ratio_of_sums
from trimtab.evidence.stats.quantiles import effective_samples, quantile, relaxation_requests

RESAMPLED = 8_000_000  # requests drawn for one interval, at most
FEWEST = 100
ALWAYS = ("unprofiled", "unmodelled")
FAILED = "failed requests"
NOT_RERUN = Counterfactuals(reason="this run was not run again")


def findings(account: Account, trace: Trace, seed: int = 0, again: Counterfactuals = NOT_RERUN) -> Findings:
    """What owns the tail of one run. ``seed`` draws the bootstrap; ``again`` = the run without its causes."""
    artifact = f"accounts/{account.run}.parquet"
    desk = Desk("tail", "this run", artifact)
    typical = typical_rows(account)
    sets = [tail_set(account, name) for name in TAILS]
    if not sets[0].rows.size:
        failed = sets[0].failed
        text = (
            f"No request ended well ({failed} failed): there is no tail to account for." if failed else "No requests."
        )
        desk.add("p95.requests", 0.0, "requests", len(account.requests), note=text)
        for found in sets if failed else ():
            desk.add(f"{found.name}.bound", math.inf, "ms", failed, note=text)
            desk.add(f"{found.name}.failed_requests", float(failed), "requests", failed)
        return Findings(stage="attribute", headline=text, figures=tuple(desk.figures), status="partial")
    relaxation = relaxation_requests(latencies(account))
    parts = [shares(account, found.rows, typical) for found in sets]
    for found, mine in zip(sets, parts, strict=True):
        _set_figures(desk, account, found, mine, seed, relaxation)
        _rerun_figures(desk, found, len(account.requests), again)
    figures = {figure.id: figure for figure in desk.figures}
    said: list[Finding] = []
    for found, mine in zip(sets, parts, strict=True):
        said += words.said(account, trace, found, mine, figures)
    fair, uneven, shared = fairness(account, trace)
    made = tables.build(account, trace, sets, typical, figures, leading_cause(parts[0]))
    return Findings(
        stage="attribute",
        headline=said[0].text,
        findings=(*said, *uneven),
        figures=(*desk.figures, *fair.figures),
        series=(*made, *slowest.build(account, trace, sets[0]), *shared),
        status="done" if trace.run.complete else "partial",
    )


def _set_figures(
    desk: Desk, account: Account, found: TailSet, parts: list[Share], seed: int, relaxation: float
) -> None:
    name, samples = found.name, found.rows.size
    observed = latencies(account)
    whole = sum(part.total for part in parts)
    worth = effective_samples(observed, found.q)
    few = "" if worth.enough else worth.reason or f"needs {worth.needed} effective samples: indicative only"
    bound = math.inf if math.isinf(found.bound) else found.bound * NS_MS
    note = "; ".join(part for part in (found.note, few) if part)
    desk.add(f"{name}.bound", bound, "ms", observed.size, effective=worth.effective, note=note)
    desk.add(f"{name}.requests", float(samples), "requests", observed.size, note="at or above the bound, ended well")
    desk.add(f"{name}.failed_requests", float(found.failed), "requests", observed.size, note="latency +infinity, apart")
    desk.add(f"{name}.total", whole * NS_MS, "ms", samples, note="mean latency of the set")
    usual = sum(part.typical for part in parts)
    desk.add(
        f"{name}.excess", (whole - usual) * NS_MS, "ms", samples, note="mean of the set - mean of typical requests"
    )
    for part in parts:
        if part.total == 0 and part.typical == 0 and part.label not in ALWAYS:
            continue
        between = _share_interval(account, found, part.label, seed)
        desk.add(f"{name}.{part.label}.share", part.total / whole, "share", samples, interval=between)
        desk.add(f"{name}.{part.label}.own", part.own * NS_MS, "ms", samples)
        desk.add(f"{name}.{part.label}.inherited", part.inherited * NS_MS, "ms", samples)
        desk.add(f"{name}.{part.label}.excess", (part.total - part.typical) * NS_MS, "ms", samples)
        if part.label in REMOVABLE:
            _gain(desk, account, found, part.label, seed, relaxation)
    _gain(desk, account, found, "all", seed, relaxation)
    recorded = float(account.requests["busy"][found.rows].sum())
    modelled = float(account.requests["modelled"][found.rows].sum())
    why = "" if recorded else "no request of the set waited for a busy worker"
    ratio = modelled / recorded if recorded else None
    desk.add(f"{name}.modelled", ratio, "ratio", samples, note=why or "modelled / recorded busy wait")
    idle = float(account.requests["idle_elsewhere"][found.rows].sum())
    note = why or "of the busy wait: a worker that may not take the request was free"
    desk.add(f"{name}.idle_elsewhere", idle / recorded if recorded else None, "share", samples, note=note)


def _rerun_figures(desk: Desk, found: TailSet, requests: int, again: Counterfactuals) -> None:
    """The machine's own answers, and how well it reproduces the run that it starts from."""
    tail = found.name
    if again.reason:
        desk.add(f"{tail}.reproduced", None, "ratio", requests, note=again.reason)
        return
    note = f"{tail} of the run again over the recorded one; {again.note(tail)}"
    desk.add(f"{tail}.reproduced", again.reproduced[tail], "ratio", requests, note=note)
    for cause, gain in again.gains[tail].items():
        words = "; ".join(part for part in (again.note(tail), gain.reason) if part)
        desk.add(f"{tail}.{cause}.resimulated", gain.value, "ms", requests, interval=gain.interval, note=words)


def _resamples(n: int) -> int:
    return min(RESAMPLED // max(n, 1), 400)


def _share_interval(account: Account, found: TailSet, label: str, seed: int) -> Interval | None:
    resamples = _resamples(len(account.requests))
    if resamples < FEWEST:
        return None
    whole = np.zeros(len(account.requests))
    part = np.zeros(len(account.requests))
    rows = found.rows
    whole[rows] = latencies(account)[rows]
    part[rows] = own(account, label)[rows] + inherited(account, label)[rows]
    between = ratio_of_sums(part, whole, np.random.default_rng(seed), resamples=resamples).interval
    if between is None:
        return None
    lo = between.lo if part.min() < 0 else max(between.lo, 0.0)
    return msgspec.structs.replace(between, lo=lo, hi=min(between.hi, 1.0), method="block bootstrap")


def _gain(desk: Desk, account: Account, found: TailSet, label: str, seed: int, relaxation: float) -> None:
    observed = latencies(account)
    changed = without_any(account) if label == "all" else without(account, label)
    name, n = f"{found.name}.{label}.gain", observed.size
    note = "" if label != "all" else "every cause gone: what useful work alone and its queue would leave"
    if math.isinf(found.bound):
        desk.add(name, None, "ms", n, note="the percentile falls among failed requests")
        return
    value = (found.bound - quantile(changed, found.q)) * NS_MS
    resamples = _resamples(n)
    if resamples < FEWEST:
        desk.add(name, value, "ms", n, note=note or "too many requests to resample: no interval")
        return
    ratio = paired_quantile(
        observed, changed, found.q, np.random.default_rng(seed), resamples=resamples, relaxation=relaxation
    )
    if ratio.interval is None:
        desk.add(name, value, "ms", n, note="; ".join(part for part in (note, ratio.reason) if part))
        return
    scale = found.bound * NS_MS
    between = Interval(lo=scale * (1 - ratio.interval.hi), hi=scale * (1 - ratio.interval.lo), method=METHOD)
    desk.add(name, value, "ms", n, interval=between, note=note)


def owner(found: Findings, name: str) -> tuple[str, float] | None:
    """What owns most of the set ``name`` (p95, p99), with its share; failed requests where the percentile falls among
    them; None where there is no set."""
    bound = found.figure(f"tail.{name}.bound")
    if bound is not None and bound.value is not None and math.isinf(bound.value):
        return FAILED, 1.0
    waterfall = found.table(f"tail.{name}.waterfall")
    if waterfall is None:
        return None
    rows = zip(waterfall.columns["cause"], waterfall.columns["share"], strict=True)
    label, share = max(rows, key=lambda row: float(row[1] or 0.0))
    return str(label), float(share or 0.0)
