"""Simulated against replayed: can the virtual clock be believed where nothing was measured?"""

from __future__ import annotations

from trimtab.report import words
from trimtab.report.arms import Scale, scale
from trimtab.report.book import Book, Values, each, real, source
from trimtab.report.page import Cell, Column, Grid, Key, Mark, Row, Section, Strip


def section(book: Book) -> Section | None:
    series = book.series("score.simulation")
    if series is None:
        return None
    rows = list(each(series))
    to = scale([real(row.get(key)) for row in rows for key in ("replayed", "simulated")])
    primary = book.record.study.sla.metric
    columns = (
        Column(label="Percentile"),
        Column(label="Replayed, ms", align="right"),
        Column(label="Simulated, ms", align="right"),
        Column(label="", wide=True),
        Column(label="Error", align="right"),
        Column(label="A/A floor", align="right"),
    )
    legend = (Key(swatch="dot", text="replayed"), Key(swatch="dot simulated", text="simulated"))
    grid = Grid(columns=columns, rows=tuple(_row(row, to, primary) for row in rows), legend=legend)
    return Section(
        id="simulation",
        nav="Simulation",
        eyebrow="Score",
        heading=_heading(rows, primary),
        blocks=(grid,),
        source=source(
            "Service times drawn from the profile, on the same arrivals", series.note, artifact=series.artifact
        ),
    )


def _heading(rows: list[Values], primary: str) -> str:
    row = next((row for row in rows if row.get("metric") == primary), rows[0])
    error, floor = real(row.get("error")), real(row.get("floor"))
    if error is None:
        return "The simulation beside the replay."
    side = ""
    if floor is not None:
        side = (
            ", inside the noise of the replays"
            if abs(error) <= floor
            else ", more than replays differ among themselves"
        )
    if error == 0:
        return f"The simulation meets the replayed {row['metric']}{side}."
    where = "above" if error > 0 else "below"
    return f"The simulation puts {row['metric']} {words.percent(abs(error))} {where} the replay{side}."


def _row(row: Values, to: Scale, primary: str) -> Row:
    replayed, simulated, floor = (real(row.get(key)) for key in ("replayed", "simulated", "floor"))
    marks: list[Mark] = []
    if replayed is not None and floor is not None:
        marks.append(Mark(form="band", x=to.at(replayed * (1 - floor)), x2=to.at(replayed * (1 + floor))))
    if simulated is not None:
        marks.append(Mark(form="dot", x=to.at(simulated), look="simulated", y=32.0))
    if replayed is not None:
        marks.append(Mark(form="dot", x=to.at(replayed), y=68.0))
    return Row(
        cells=(
            Cell(text=str(row.get("metric", ""))),
            Cell(text=words.number(replayed)),
            Cell(text=words.number(simulated)),
            Cell(strip=Strip(marks=tuple(marks), alt=f"replayed {words.number(replayed)}")),
            Cell(text=words.change(real(row.get("error")))),
            Cell(text=f"±{words.percent(floor)}" if floor is not None else words.NOTHING, look="muted"),
        ),
        strong=row.get("metric") == primary,
    )
