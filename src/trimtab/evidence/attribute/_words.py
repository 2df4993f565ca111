"""What the attribute stage says of one set, in sentences that its figures carry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from trimtab.domain.account import BATCH_PARTS, Account
from trimtab.domain.events import ERROR_KINDS
from trimtab.domain.figure import Figure, Finding
from trimtab.domain.noun import NEVER
from trimtab.domain.trace import Trace
from trimtab.evidence.attribute.sets import OWNERS, WORDS, Share, TailSet, leading_cause
from trimtab.evidence.figures import NS_MS, percent

UNEXPLAINED = 0.10
AMPLIFIED = 4.0
SPREAD = 0.5

Figures = Mapping[str, Figure]


def said(account: Account, trace: Trace, found: TailSet, parts: list[Share], figures: Figures) -> list[Finding]:
    """What owns the set, first; then what qualifies it: unexplained time, failures, a queue near saturation."""
    out = [_lost(account, found, parts) if found.lost else headline(found, parts, figures)]
    out += _unexplained(found, parts)
    if found.failed and not found.lost:
        text = (
            f"{found.failed} requests failed and count as +infinity: they are beside the {found.name} set, not in it."
        )
        out.append(Finding(text=text, figures=(f"tail.{found.name}.failed_requests",), owner="runtime"))
    return out + _amplified(account, trace, found, parts)


def headline(found: TailSet, parts: list[Share], figures: Figures) -> Finding:
    """What owns the set, the largest cause where that is useful work, and what removing this cause alone would buy."""
    whole, usual = sum(part.total for part in parts), sum(part.typical for part in parts)
    top, name, leader = max(parts, key=lambda part: part.total), found.name, leading_cause(parts)
    text = (
        f"{_start(WORDS[top.label])} owns {percent(top.total / whole)} of the {name} set: of {ms(whole)} on average "
        f"(typical requests {ms(usual)}), {ms(top.own)} own and {ms(top.inherited)} inherited through the queue"
    )
    ids = [f"tail.{name}.{top.label}.share", f"tail.{name}.total"]
    if leader and leader != top.label:
        share = next(part.total for part in parts if part.label == leader) / whole
        text += f"; the largest cause is {WORDS[leader]}, {percent(share)}"
        ids.append(f"tail.{name}.{leader}.share")
    gain = figures.get(f"tail.{name}.{leader}.gain")
    if gain is not None and gain.value is not None:
        after = found.bound - gain.value / NS_MS
        text += f". Without {WORDS[leader]} alone, {name} would be {ms(after)} instead of {ms(found.bound)}"
        ids.append(gain.id)
        again = figures.get(f"tail.{name}.{leader}.resimulated")
        if again is not None and again.value is not None:
            text += f" ({ms(found.bound - again.value / NS_MS)} when the machine runs it again)"
            ids.append(again.id)
    return Finding(text=text + ".", figures=tuple(ids), owner=OWNERS[top.label])


def _lost(account: Account, found: TailSet, parts: list[Share]) -> Finding:
    """More failed than the set holds: failures own it, and what is left of it is told behind them."""
    name, n = found.name, len(account.requests)
    codes = account.requests["error"][account.requests["latency"] == NEVER]
    kinds = ", ".join(f"{count} {ERROR_KINDS[code]}" for code, count in Counter(codes.tolist()).most_common())
    top, whole = max(parts, key=lambda part: part.total), sum(part.total for part in parts)
    text = (
        f"Failed requests own the {name} set: {found.failed} of {n} failed ({kinds}), more than the "
        f"{percent(1 - found.q)} that lie above {name}. Of the slowest that ended well ({ms(whole)} on average), "
        f"{WORDS[top.label]} owns {percent(top.total / whole)}."
    )
    ids = (f"tail.{name}.failed_requests", f"tail.{name}.{top.label}.share", f"tail.{name}.total")
    return Finding(text=text, figures=ids, owner="runtime")


def _start(words: str) -> str:
    return words[0].upper() + words[1:]


def ms(ns: float) -> str:
    """``12.3 ms``, ``1,230 ms``, ``740 ns``: three digits, never an exponent."""
    value = ns * NS_MS
    if 0 < abs(ns) < 1000:
        return f"{ns:.0f} ns"
    return f"{value:,.0f} ms" if abs(value) >= 999.5 else f"{value:.3g} ms"


def _unexplained(found: TailSet, parts: list[Share]) -> list[Finding]:
    whole = sum(part.total for part in parts)
    unknown = [part for part in parts if part.label in ("unprofiled", "unmodelled") and part.total > 0]
    if sum(part.total for part in unknown) <= UNEXPLAINED * whole:
        return []
    named = " and ".join(f"{percent(part.total / whole)} is {WORDS[part.label]}" for part in unknown)
    ids = tuple(f"tail.{found.name}.{part.label}.share" for part in unknown)
    text = f"Of the {found.name} set {named}: too much to rank the causes with confidence."
    return [Finding(text=text, figures=ids, owner="observability")]


def _amplified(account: Account, trace: Trace, found: TailSet, parts: list[Share]) -> list[Finding]:
    """Near saturation a small waste in most batches owns much of the tail: correct, and easily disbelieved."""
    leader = leading_cause(parts)
    if leader not in BATCH_PARTS:
        return []
    work = {name: float(account.batches[name].sum()) for name in BATCH_PARTS}
    total, whole = sum(work.values()), sum(part.total for part in parts)
    owned = next(part.total for part in parts if part.label == leader) / whole
    spread = float(np.mean(account.batches[leader] > 0)) if len(account.batches) else 0.0
    span = int(trace.batches["done"].max(initial=0)) - int(trace.requests["scheduled"][0])
    if spread < SPREAD or span <= 0 or not 0 < AMPLIFIED * work[leader] <= owned * total:
        return []
    text = (
        f"{_start(WORDS[leader])} takes {percent(work[leader] / total)} of the workers' time but owns {percent(owned)} "
        f"of the {found.name} set: they are {percent(total / (span * trace.run.workers))} busy, "
        "and near saturation the queue multiplies a small waste."
    )
    return [Finding(text=text, figures=(f"tail.{found.name}.{leader}.share",), owner=OWNERS[leader])]
