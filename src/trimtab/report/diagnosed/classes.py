"""The classes that explain it, and what removing each cause alone would change."""

from __future__ import annotations

from trimtab.report import words
from trimtab.report.arms import scale
from trimtab.report.book import each, real
from trimtab.report.diagnosed.leaf import Leaf
from trimtab.report.page import Block, Cell, Column, Grid, Mark, Row, Section, Strip
from trimtab.report.palette import cause, cause_label, cause_look
from trimtab.report.sections import classes


def named(leaf: Leaf) -> Section | None:
    """The classes with their evidence, and what removing each cause alone would change."""
    found = leaf.source.diagnosis
    rows = [
        {
            "class": one.id,
            "share": one.share,
            "lo": one.interval[0] if one.interval else None,
            "hi": one.interval[1] if one.interval else None,
            "owner": leaf.owner(one.owner),
            "evidence": "; ".join(one.evidence),
            "ruled_out": "; ".join(one.ruled_out),
        }
        for one in found.classes
    ]
    blocks: tuple[Block | None, ...] = (*classes.of(rows, found.failures), _causes(leaf))
    return leaf.section(
        "classes", "Classes", "Classification", _heading(leaf), blocks,
        source="Shares do not add: each is what removing that cause alone would change.",
    )  # fmt: skip


def _heading(leaf: Leaf) -> str:
    first, *rest = leaf.source.diagnosis.classes
    beside = f", beside it {words.listed([one.id for one in rest])}" if rest else ""
    return f"{words.opened(first.id)}, a matter of the {leaf.owner(first.owner)}{beside}."


def _causes(leaf: Leaf) -> Grid | None:
    series = leaf.series("diagnose.causes")
    if series is None:
        return None
    rows = list(each(series))
    to = scale([real(row.get(key)) for row in rows for key in ("share", "lo", "hi")])
    columns = (
        Column(label="Cause"),
        Column(label="Removing it alone changes", align="right"),
        Column(label="", ticks=((to.at(0.0), "0"), (to.at(1.0), "all causes")), wide=True),
    )
    made = []
    for row in rows:
        name, share, lo, hi = str(row["cause"]), real(row["share"]) or 0.0, real(row["lo"]), real(row["hi"])
        bars = [Mark(form="bar", x=to.at(0.0), x2=to.at(share), look=cause_look(name), cause=cause(name))]
        bars += [Mark(form="line", x=to.at(lo), x2=to.at(hi))] if lo is not None and hi is not None else []
        width = None if lo is None or hi is None else (hi - lo) / 2
        strip = Strip(marks=tuple(bars), alt=f"{cause_label(name)} {words.percent(share)}")
        said = words.percent(share, width)
        made.append(Row(cells=(Cell(text=cause_label(name)), Cell(text=said), Cell(strip=strip))))
    return Grid(columns=columns, rows=tuple(made), title="Every cause that the recorded stages can tell")
