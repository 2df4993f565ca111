"""Watched: the triggers of a shipped change, held against new replays of what runs.

Each is the rule of ``retuning.rollback`` as its packet has it, on the requests of its own slice. It explains a verdict
and never makes one: a trigger knows nothing of the plan to go back to, and traffic that got heavier fires it for both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from trimtab.domain.figure import Finding, Findings, Series
from trimtab.domain.study import Sla
from trimtab.domain.verdict import Running, Trigger, Watched
from trimtab.evidence.stats.quantiles import Floats
from trimtab.retuning import _metric as metric
from trimtab.retuning.rollback import Rule

SERIES = "validate.watched"


def hold(
    triggers: Sequence[Trigger], replays: Sequence[Floats], slices: Mapping[str, NDArray[np.int64]], sla: Sla
) -> tuple[Watched, ...]:
    """Each trigger on every one of ``replays`` (s, in order of arrival); ``slices`` = positions within them."""
    return tuple(_hold(each, replays, slices.get(each.slice), sla) for each in triggers)


def _hold(trigger: Trigger, replays: Sequence[Floats], rows: NDArray[np.int64] | None, sla: Sla) -> Watched:
    about = Watched(cell=trigger.cell, slice=trigger.slice, metric=trigger.metric, runs=0, fired=0)
    if trigger.bound is None:
        return replace(about, note="it has no automatic boundary")
    if rows is None:
        return replace(about, note=f"there is no slice {trigger.slice} here")
    if rows.size < 2 * trigger.window:
        return replace(about, note=f"{rows.size} requests hold no two windows of {trigger.window}")
    rule = Rule(trigger.window, trigger.late_ms, trigger.bound, trigger.windows)
    delays = [rule.fires_at(metric.settle(replay[rows], sla)) for replay in replays]
    fired = [delay for delay in delays if delay is not None]
    return replace(about, runs=len(delays), fired=len(fired), after=min(fired, default=None))


def sentence(one: Watched) -> str:
    """What became of one trigger."""
    name = f"The trigger on {one.metric} of {one.slice}"
    if one.note:
        return f"{name} could not be held: {one.note}."
    if one.after is None:
        return f"{name} fired in none of {one.runs} replays."
    return f"{name} fired in {one.fired} of {one.runs} replays, after {one.after} requests at the soonest."


def told(found: Findings, running: Running) -> Findings:
    """``found`` with a sentence a trigger, and the series ``validate.watched``."""
    if not running.triggers:
        return found
    fields = ("cell", "slice", "metric", "runs", "fired", "after", "note")
    series = Series(
        id=SERIES,
        columns={name: tuple(getattr(each, name) for each in running.triggers) for name in fields},
        units={"after": "requests"},
        scope="held-out",
        artifact="traces",
        note=f"triggers of the packet that shipped plan {running.plan}, on its replays",
    )
    said = tuple(Finding(text=sentence(each)) for each in running.triggers)
    return replace(found, findings=(*found.findings, *said), series=(*found.series, series))
