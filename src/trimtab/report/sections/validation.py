"""Validation: every cell of the matrix, slices by conditions, with numbers; what must pass is outlined."""

from __future__ import annotations

from trimtab.domain.verdict import MatrixCell, Verdict
from trimtab.report import watch, words
from trimtab.report.arms import change_strip, scale, touches, unit_of
from trimtab.report.book import Book, source
from trimtab.report.page import Block, Cell, Column, Fold, Grid, Key, Prose, Row, Section

LOOKS = {"pass": "pass", "fail": "fail", "inconclusive": "open", "not-run": "not-run"}
PLAIN = ("", "as recorded", "normal")
STRONG, SLIGHT = 0.3, 0.1
"""Changes from which a pass is tinted strongly, and below which slightly."""

LEGEND = (
    Key(swatch="cell pass", text="pass, darker is a larger gain"),
    Key(swatch="cell primary", text="primary"),
    Key(swatch="cell must", text="must pass"),
    Key(swatch="cell open", text="? inconclusive, never a pass"),
    Key(swatch="cell fail", text="✕ fail"),
    Key(swatch="cell not-run", text="not run"),
)


def section(book: Book) -> Section | None:
    verdict = book.record.verdict
    if verdict is None or not verdict.cells:
        return None
    ran = [cell for cell in verdict.cells if cell.status != "not-run"]
    conditions = list(dict.fromkeys(_condition(cell) for cell in ran))
    blocks: list[Block] = []
    if len(conditions) == 1:
        blocks.append(_list(ran))
    elif ran:
        said = f"Show {words.many(len(ran), 'cell')} with figures and reasons"
        blocks += [_matrix(ran, conditions), Fold(summary=said, grid=_details(ran))]
    proposal = book.record.proposal
    if proposal is not None and proposal.triggers:
        blocks.append(watch.grid(proposal.triggers, verdict.running))
    blocks.append(_scope(verdict))
    return Section(
        id="validation",
        nav="Validation",
        eyebrow="Validate, decide",
        heading=_heading(verdict),
        lead=verdict.sentence,
        blocks=tuple(blocks),
        source=source(
            "Change = (candidate − baseline) / baseline, paired on the same arrivals",
            _margins(verdict),
            artifact="validate.json, verdict.json",
        ),
    )


def _condition(cell: MatrixCell) -> str:
    return "as recorded" if cell.condition in PLAIN else cell.condition


def _heading(verdict: Verdict) -> str:
    must = [cell for cell in verdict.cells if cell.role != "informative"]
    rest = [cell for cell in verdict.cells if cell.role == "informative"]
    failing, unsure = (sum(cell.status == status for cell in rest) for status in ("fail", "inconclusive"))
    parts = []
    if failing:
        parts.append(f"{words.many(failing, 'other')} {'fails' if failing == 1 else 'fail'}")
    if unsure:
        parts.append(f"{words.amount(unsure)} {'stays' if unsure == 1 else 'stay'} open")
    return f"{_must(must)}{'; ' if parts else ''}{words.listed(parts)}."


def _must(must: list[MatrixCell]) -> str:
    passed = sum(cell.status == "pass" for cell in must)
    if not must:
        return "No cell had to pass"
    if passed == len(must):
        return (
            f"All {words.many(len(must), 'cell')} that must pass do" if passed > 1 else "The cell that must pass does"
        )
    first = words.opened(words.amount(passed)) if passed else "None"
    return f"{first} of {words.many(len(must), 'cell')} that must pass {'do' if passed > 1 else 'does'}"


def _matrix(ran: list[MatrixCell], conditions: list[str]) -> Grid:
    keys = list(dict.fromkeys((cell.slice, cell.metric) for cell in ran))
    places = {(cell.slice, cell.metric, _condition(cell)): cell for cell in reversed(ran)}
    columns = [Column(label="Change, %"), *(Column(label=words.opened(name), align="center") for name in conditions)]
    rows = []
    for slice_, metric in keys:
        cells = [_heat(places.get((slice_, metric, condition))) for condition in conditions]
        rows.append(Row(cells=(Cell(text=f"{words.opened(slice_)}, {metric}"), *cells)))
    return Grid(columns=tuple(columns), rows=tuple(rows), legend=LEGEND, heat=True)


def _list(ran: list[MatrixCell]) -> Grid:
    """One condition only: no matrix, but all that is known of each cell in its row."""
    known = [v for cell in ran for v in (cell.change, *_ends(cell)) if v is not None and abs(v) != float("inf")]
    to = scale(list(known))
    columns = (
        Column(label="Cell"),
        Column(label="Change, %", align="center"),
        Column(label="", ticks=((to.at(0.0), "0"),), wide=True),
        Column(label="From", align="right"),
        Column(label="To", align="right"),
        Column(label="Floor", align="right"),
        Column(label="Margin", align="right"),
        Column(label="Reason"),
    )
    rows = tuple(
        Row(
            cells=(
                Cell(
                    text=f"{words.opened(cell.slice)}, {cell.metric}",
                    sub="" if cell.role == "informative" else cell.role,
                ),
                _heat(cell),
                Cell(strip=change_strip(to, cell.change, cell.interval, cell.floor, _open(cell))),
                Cell(text=words.quantity(cell.baseline, unit_of(cell.metric))),
                Cell(text=words.quantity(cell.candidate, unit_of(cell.metric))),
                Cell(text=_floor(cell), look="muted"),
                Cell(text=words.percent(cell.margin) if cell.margin is not None else "", look="muted"),
                Cell(text=cell.note, look="muted"),
            )
        )
        for cell in ran
    )
    return Grid(columns=columns, rows=rows, legend=LEGEND[:-1])


def _ends(cell: MatrixCell) -> tuple[float, ...]:
    return (cell.interval.lo, cell.interval.hi) if cell.interval else ()


def _open(cell: MatrixCell) -> str:
    return "open" if cell.status == "inconclusive" or touches(cell.interval, cell.floor) else ""


def _floor(cell: MatrixCell) -> str:
    return f"±{words.percent(cell.floor)}" if cell.floor is not None else words.NOTHING


def _heat(cell: MatrixCell | None) -> Cell:
    if cell is None or cell.status == "not-run":
        return Cell(text="·", look="heat not-run")
    looks = ["heat", LOOKS[cell.status]]
    if cell.role != "informative":
        looks.append("primary" if cell.role == "primary" else "must")
    if cell.status == "pass" and cell.change is not None:
        size = abs(cell.change)
        looks += ["strongly"] if size >= STRONG else ["slightly"] if size < SLIGHT else []
    said = words.change(cell.change, words.half(cell.interval)).removesuffix(f"{words.GAP}%")
    if cell.change is None:
        said = words.quantity(cell.candidate, unit_of(cell.metric))
    glyph = {"fail": "fail", "inconclusive": "open"}.get(cell.status, "")
    return Cell(text=said, look=" ".join(looks), glyph=glyph)


def _scope(verdict: Verdict) -> Prose:
    paragraphs = []
    if verdict.scope:
        paragraphs.append(("Holds for", words.ended("; ".join(verdict.scope))))
    if verdict.not_covered:
        paragraphs.append(("Does not speak of", words.ended(words.listed(list(verdict.not_covered)))))
    paragraphs += [("Risk:", words.ended(words.opened(risk))) for risk in verdict.risks]
    return Prose(paragraphs=tuple(paragraphs))


def _details(cells: list[MatrixCell]) -> Grid:
    columns = (
        Column(label="Cell"),
        Column(label="Status"),
        Column(label="From", align="right"),
        Column(label="To", align="right"),
        Column(label="Change", align="right"),
        Column(label="Floor", align="right"),
        Column(label="Margin", align="right"),
        Column(label="Requests", align="right"),
        Column(label="Reason"),
    )
    return Grid(columns=columns, rows=tuple(_detail(cell) for cell in cells))


def _detail(cell: MatrixCell) -> Row:
    unit, width = unit_of(cell.metric), words.half(cell.interval)
    return Row(
        cells=(
            Cell(text=f"{cell.metric} on {cell.slice}", sub=f"{cell.condition}, {cell.role}"),
            Cell(text=cell.status, glyph=LOOKS[cell.status], look=f"{LOOKS[cell.status]}-ink"),
            Cell(text=words.quantity(cell.baseline, unit)),
            Cell(text=words.quantity(cell.candidate, unit)),
            Cell(text=words.change(cell.change, width), sub=words.spread(cell.interval, "change")),
            Cell(text=_floor(cell)),
            Cell(text=words.percent(cell.margin) if cell.margin is not None else ""),
            Cell(text=words.count(cell.samples)),
            Cell(text=cell.note, look="muted"),
        ),
        strong=cell.role == "primary",
    )


def _margins(verdict: Verdict) -> str:
    guards = [cell for cell in verdict.cells if cell.role == "guard" and cell.margin is not None]
    if not guards:
        return ""
    said = words.listed([f"{cell.metric} by {words.percent(cell.margin)}" for cell in guards])
    return f"Guard margins: {said} at most"
