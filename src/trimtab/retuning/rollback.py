"""The way back: when a shipped move must be undone, as a rule that somebody can watch.

The trigger looks at the share of late requests over windows of at least 100 arrivals: neighbours in a queue are late
together, so single requests would alarm all the time, windows much less. Two windows running must pass the bound.

*Bound.* The largest share that any window of the candidate's own healthy replays showed, plus one request.

*False alarms* are counted, not assumed: healthy runs of the same length are redrawn from the replays in circular
blocks of requests (5 relaxation times, at least one window), which shifts what falls into one window, and the share of
runs in which the rule fires is printed with it.

Limits. It is calibrated on the traffic that was replayed; heavier traffic needs a new bound. It says that something is
wrong, not what.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trimtab.domain.noun import Ns
from trimtab.domain.study import Sla
from trimtab.domain.verdict import ROLE_TITLES, Role
from trimtab.evidence.stats.bootstrap import block_length
from trimtab.evidence.stats.quantiles import Floats, relaxation_requests

WINDOW = 100
"""Arrivals in one window, at least."""


@dataclass(frozen=True)
class Trigger:
    """Roll back when, in two windows of ``window`` arrivals running, a larger share than ``bound`` is later than
    ``late_ms``.

    ``seen`` = healthy windows behind the bound (``bound`` None: there were none) · ``false_alarms`` = share of redrawn
    healthy runs in which it fires.
    """

    window: int
    late_ms: float
    bound: float | None
    seen: int
    false_alarms: float | None = None

    def soonest(self, rate_hz: float) -> Ns | None:
        """How soon it can fire at ``rate_hz`` arrivals/s, ns; None without a bound."""
        if self.bound is None or not rate_hz > 0 or math.isinf(rate_hz):
            return None
        return round(2 * self.window / rate_hz * 1e9)


def trigger(healthy: Sequence[Floats], sla: Sla, seed: int, *, window: int = WINDOW, runs: int = 200) -> Trigger:
    """The trigger from the candidate's own replays (latencies in seconds, in order of arrival, +inf = failed)."""
    if window < WINDOW:
        raise ValueError(f"a window of {window} arrivals is too short; take at least {WINDOW}")
    late = [np.asarray(replay > sla.bound_ms / 1e3, dtype=np.float64) for replay in healthy]
    shares = np.concatenate([_shares(one, window) for one in late]) if late else np.empty(0)
    if not shares.size:
        return Trigger(window, sla.bound_ms, None, 0)
    bound = min(float(shares.max()) + 1 / window, 1.0)
    rng = np.random.default_rng(seed)
    lengths = [max(block_length(len(x), relaxation_requests(x)), window) for x in healthy]
    fired = [_fires(_redraw(late[i % len(late)], lengths[i % len(late)], rng), window, bound) for i in range(runs)]
    return Trigger(window, sla.bound_ms, bound, int(shares.size), float(np.mean(fired)))


def _shares(late: Floats, window: int) -> Floats:
    whole = len(late) // window * window
    return np.asarray(late[:whole].reshape(-1, window).mean(axis=1), dtype=np.float64)


def _fires(late: Floats, window: int, bound: float) -> bool:
    above = _shares(late, window) > bound
    return bool(np.any(above[:-1] & above[1:]))


def _redraw(late: Floats, length: int, rng: np.random.Generator) -> Floats:
    starts = rng.integers(0, len(late), size=math.ceil(len(late) / length))
    rows = (starts[:, None] + np.arange(length)).reshape(-1)[: len(late)] % len(late)
    return np.asarray(late[rows], dtype=np.float64)


def boundary(rule: Trigger, baseline: str, owner: Role, rate_hz: float, name: str = "") -> str:
    """The rollback boundary as it stands in a proposal: metric, window, bound, how soon it can speak at ``rate_hz``
    arrivals/s, where to go back to, and whose it is."""
    title = f"{ROLE_TITLES[owner]} ({name})" if name else ROLE_TITLES[owner]
    by_hand = f"The {title} watches it and goes back to plan {baseline} by hand."
    if rule.bound is None:
        return f"No automatic boundary: no replay holds a window of {rule.window} arrivals. {by_hand}"
    if rule.bound >= 1:
        return f"No automatic boundary: a healthy window of {rule.window} arrivals was late as a whole. {by_hand}"
    return (
        f"Go back to plan {baseline} when more than {rule.bound * 100:.3g} % of requests are later than "
        f"{rule.late_ms:g} ms in two windows of {rule.window} arrivals running{_soonest(rule, rate_hz)}. None of "
        f"{rule.seen} healthy windows passed that share{_alarms(rule)}. Owner: {title}."
    )


def _soonest(rule: Trigger, rate_hz: float) -> str:
    soonest = rule.soonest(rate_hz)
    return "" if soonest is None else f" ({soonest / 1e9:.3g} s at {rate_hz:.3g} requests/s)"


def _alarms(rule: Trigger) -> str:
    if rule.false_alarms is None:
        return ""
    return f"; it would fire falsely in {rule.false_alarms * 100:.2g} % of such runs"
