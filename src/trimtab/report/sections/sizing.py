"""Sizing: how many cores this SLA needs at this traffic, and what fitting the buckets is worth; both computed."""

from __future__ import annotations

from trimtab.domain.figure import Series
from trimtab.report import marks, words
from trimtab.report.arms import scale, unit_of
from trimtab.report.book import Book, Values, each, real, source, value
from trimtab.report.page import Cell, Column, Grid, Line, Mark, Panel, Panels, Row, Section, Spec, Split, Strip
from trimtab.report.palette import colour


def section(book: Book) -> Section | None:
    cores, buckets = book.series("retune.cores"), book.series("retune.buckets")
    if cores is None:
        return None
    table = _table(book, cores)
    sweep = _sweep(buckets) if buckets else None
    return Section(
        id="sizing",
        nav="Cores needed",
        eyebrow="Retune",
        heading=_heading(book),
        lead=_sentence(book),
        blocks=(Split(left=(table,), right=(sweep,)),) if sweep else (table,),
        source=source(
            "Simulated from the profile of one core",
            words.opened(cores.note),
            f"Scope: {cores.scope}",
            artifact="retune.json",
        ),
    )


def _heading(book: Book) -> str:
    needed = book.figure("retune.cores_needed")
    if needed is None or needed.value is None:
        lacking = book.absent("retune.cores_needed")
        why = lacking.note.partition("; ")[0] if lacking else ""
        return words.ended(words.opened(why)) or "How many cores this SLA needs."
    verb = "is" if needed.value == 1 else "are"
    enough = f"{words.many(round(needed.value), 'core')} {verb} enough for this SLA at this traffic"
    if _doubt(book):
        return f"A simulation that misses the replays says that {enough}."
    return f"{words.opened(enough)}."


def _doubt(book: Book) -> str:
    """Why the simulation behind the answer must not be relied on, as its figure's note says; empty = it may."""
    needed = book.figure("retune.cores_needed") or book.absent("retune.cores_needed")
    return needed.note.partition("; ")[2] if needed else ""


def _sentence(book: Book) -> str:
    margin, limit = book.figure("retune.cores_margin"), book.figure("retune.load_limit")
    parts = [f"Not to be relied on: {_doubt(book)}."] if _doubt(book) else []
    if margin is not None:
        parts.append(f"{words.figure(margin)} of the bound is left.")
    if limit is not None:
        parts.append(f"It holds up to {words.number(limit.value)} times the rate.")
    return " ".join(parts)


def _table(book: Book, cores: Series) -> Grid:
    sla = book.record.study.sla
    rows = list(each(cores))
    bound = sla.goodput if sla.metric == "goodput" else sla.bound_ms
    to = scale([bound, *(v for v in (real(row.get("value")) for row in rows) if v is not None and v <= bound * 4)])
    columns = (
        Column(label="Cores"),
        Column(label=sla.metric, align="right"),
        Column(label="", ticks=((to.at(bound), "bound"),), wide=True),
        Column(label="Later than the bound", align="right"),
        Column(label="Busy", align="right"),
        Column(label="SLA"),
    )

    def one(row: Values) -> Row:
        found, met = value(row.get("value")), bool(row.get("met"))
        look = "simulated"
        dots = [Mark(form="tick", x=to.at(bound), look="bound")]
        if found is not None:
            far = found > to.hi
            dots.append(
                Mark(form="text", x=99.0, look="end", text="beyond →")
                if far
                else Mark(form="dot", x=to.at(found), look=look)
            )
        said = words.quantity(found, unit_of(sla.metric))
        return Row(
            cells=(
                Cell(text=words.number(real(row.get("cores"))), sub="extrapolated" if row.get("extrapolated") else ""),
                Cell(text=said),
                Cell(strip=Strip(marks=tuple(dots), alt=said)),
                Cell(text=words.percent(real(row.get("miss")))),
                Cell(text=words.percent(real(row.get("utilisation")))),
                Cell(
                    text="met" if met else "missed",
                    glyph="pass" if met else "fail",
                    look="pass-ink" if met else "fail-ink",
                ),
            )
        )

    return Grid(columns=columns, rows=tuple(one(row) for row in rows))


def _sweep(buckets: Series) -> Panels | None:
    """Mean service time by number of buckets: the fitted ones against the formulas of the field."""
    data = [
        {"x": n, "y": y, "family": str(row["family"])}
        for row in each(buckets)
        if (n := real(row.get("count"))) is not None and (y := real(row.get("mean_ms"))) is not None
    ]
    if not data:
        return None
    known = [float(point["x"]) for point in data if point["family"] == "fitted"]  # type: ignore[arg-type]
    data = [point for point in data if float(point["x"]) <= 2 * max(known, default=8.0)]  # type: ignore[arg-type]
    most = max(float(point["x"]) for point in data)  # type: ignore[arg-type]
    top = max(float(point["y"]) for point in data) * 1.08  # type: ignore[arg-type]
    where = marks.x("x", domain=(0.5, most + 0.5), tickMinStep=1, format="d", title="padded entries")
    high = marks.y("y", domain=(0.0, top), title="ms", tickCount=4)
    fitted = [point for point in data if point["family"] == "fitted"]
    others = [point for point in data if point["family"] != "fitted"]
    ring: Spec = {"type": "point", "size": 30, "opacity": 1, "color": colour("static")}
    layers = [
        marks.layer(marks.line("adapted"), fitted, x=where, y=high),
        marks.layer(ring, others, x=where, y=high),
    ]
    chart = marks.chart("buckets", layers, 230, "Mean service time by number of padded entries", marks.TITLED)
    families = words.listed(list(dict.fromkeys(str(point["family"]) for point in others)))
    lines = [Line(text="fitted to the measured times", strong=True, swatch="line")]
    if families:
        lines.append(Line(text=families, swatch="dot open"))
    panel = Panel(label="What fitting the entries is worth", sub="mean service time", chart=chart, lines=tuple(lines))
    return Panels(panels=(panel,))
