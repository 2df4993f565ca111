"""What must be watched once a move runs: a row a trigger, with its false alarms and its delays; where it runs already,
what each said to the new replays."""

from __future__ import annotations

import math

from trimtab.domain.verdict import Running, Trial, Trigger, Watched
from trimtab.report import words
from trimtab.report.page import Cell, Column, Grid, Row


def grid(triggers: tuple[Trigger, ...], running: Running | None = None) -> Grid:
    """Triggers as a table; columns after the false alarms are what was injected. ``running``: what they said."""
    names = list(dict.fromkeys(trial.name for trigger in triggers for trial in trigger.trials))
    held = None if running is None else {each.cell: each for each in running.triggers}
    columns = (
        Column(label="Roll back when"),
        Column(label="Bound", align="right"),
        Column(label="Window", align="right"),
        *([] if held is None else [Column(label="On new replays", align="right")]),
        Column(label="False alarms", align="right"),
        *(Column(label=f"Found at {name}", align="right") for name in names),
        Column(label="Goes back to"),
    )
    rows = tuple(_row(trigger, names, held) for trigger in triggers)
    return Grid(columns=columns, rows=rows, title="Rollback triggers")


def _row(trigger: Trigger, names: list[str], held: dict[str, Watched] | None) -> Row:
    tried = {trial.name: trial for trial in trigger.trials}
    interval = trigger.false_alarms_interval
    return Row(
        cells=(
            Cell(text=f"{words.opened(trigger.slice)}: later than {words.time(trigger.late_ms)}", sub=trigger.metric),
            Cell(text=words.percent(trigger.bound) if trigger.bound is not None else "by hand"),
            Cell(text=f"{words.count(trigger.window)} arrivals, twice"),
            *([] if held is None else [_said(held.get(trigger.cell))]),
            Cell(text=words.percent(trigger.false_alarms), sub=words.spread(interval, "share")),
            *(_delay(tried.get(name)) for name in names),
            Cell(text=f"plan {trigger.back_to}", sub=trigger.owner),
        )
    )


def _said(one: Watched | None) -> Cell:
    """What a trigger said to the new replays."""
    if one is None or not one.runs:
        return Cell(text=words.NOTHING, sub="" if one is None else one.note)
    if one.after is None:
        return Cell(text="silent", sub=f"in {words.many(one.runs, 'replay')}")
    when = f"{one.fired} of {words.count(one.runs)} replays, after {words.count(one.after)} requests"
    return Cell(text="fired", sub=when, look="fail-ink")


def _delay(trial: Trial | None) -> Cell:
    if trial is None:
        return Cell(text=words.NOTHING)
    if trial.delay is None:
        return Cell(text="not in time", sub=f"{words.percent(trial.found)} of runs")
    lo, hi = trial.between.lo, trial.between.hi
    ends = f"{words.count(lo)} to {words.count(hi)}" if math.isfinite(hi) else f"{words.percent(trial.found)} of runs"
    return Cell(text=f"{words.count(trial.delay)} requests", sub=ends)
