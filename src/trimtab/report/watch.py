"""What must be watched once a move runs: one row a trigger, with its false alarms and its delays."""

from __future__ import annotations

import math

from trimtab.domain.verdict import Trial, Trigger
from trimtab.report import words
from trimtab.report.page import Cell, Column, Grid, Row


def grid(triggers: tuple[Trigger, ...]) -> Grid:
    """Triggers as a table; columns after the false alarms are what was injected."""
    names = list(dict.fromkeys(trial.name for trigger in triggers for trial in trigger.trials))
    columns = (
        Column(label="Roll back when"),
        Column(label="Bound", align="right"),
        Column(label="Window", align="right"),
        Column(label="False alarms", align="right"),
        *(Column(label=f"Found at {name}", align="right") for name in names),
        Column(label="Goes back to"),
    )
    return Grid(columns=columns, rows=tuple(_row(trigger, names) for trigger in triggers), title="Rollback triggers")


def _row(trigger: Trigger, names: list[str]) -> Row:
    tried = {trial.name: trial for trial in trigger.trials}
    interval = trigger.false_alarms_interval
    return Row(
        cells=(
            Cell(text=f"{words.opened(trigger.slice)}: later than {words.time(trigger.late_ms)}", sub=trigger.metric),
            Cell(text=words.percent(trigger.bound) if trigger.bound is not None else "by hand"),
            Cell(text=f"{words.count(trigger.window)} arrivals, twice"),
            Cell(text=words.percent(trigger.false_alarms), sub=words.spread(interval, "share")),
            *(_delay(tried.get(name)) for name in names),
            Cell(text=f"plan {trigger.back_to}", sub=trigger.owner),
        )
    )


def _delay(trial: Trial | None) -> Cell:
    if trial is None:
        return Cell(text=words.NOTHING)
    if trial.delay is None:
        return Cell(text="not in time", sub=f"{words.percent(trial.found)} of runs")
    lo, hi = trial.between.lo, trial.between.hi
    ends = f"{words.count(lo)} to {words.count(hi)}" if math.isfinite(hi) else f"{words.percent(trial.found)} of runs"
    return Cell(text=f"{words.count(trial.delay)} requests", sub=ends)
