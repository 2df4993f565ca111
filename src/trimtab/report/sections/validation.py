"""Validation: every cell of the matrix, slices by conditions, with numbers; what must pass is outlined."""

from __future__ import annotations

from trimtab.domain.verdict import MatrixCell, Verdict
from trimtab.report import words
from trimtab.report.arms import unit_of
from trimtab.report.book import Book, source
from trimtab.report.page import Block, Cell, Column, Fold, Grid, Key, Prose, Row, Section

LOOKS = {"pass": "pass", "fail": "fail", "inconclusive": "open", "not-run": "not-run"}
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
    blocks: list[Block] = [_matrix(verdict), _scope(verdict)]
    noted = [cell for cell in verdict.cells if cell.status != "not-run"]
    blocks.append(Fold(summary=f"Show {words.many(len(noted), 'cell')} with figures and reasons", grid=_details(noted)))
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


def _heading(verdict: Verdict) -> str:
    must = [cell for cell in verdict.cells if cell.role != "informative"]
    passed = [cell for cell in must if cell.status == "pass"]
    said = f"{words.opened(words.many(len(passed), ''))}".strip()
    head = (
        f"All {words.many(len(must), 'cell')} that must pass do"
        if must and len(passed) == len(must)
        else f"{said} of {words.many(len(must), 'cell')} that must pass {'does' if len(passed) == 1 else 'do'}"
    )
    rest = [cell for cell in verdict.cells if cell.role == "informative"]
    failing, unsure = (sum(cell.status == status for cell in rest) for status in ("fail", "inconclusive"))
    parts = []
    if failing:
        parts.append(f"{words.many(failing, 'other')} {'fails' if failing == 1 else 'fail'}")
    if unsure:
        parts.append(f"{words.many(unsure, '')} {'stays' if unsure == 1 else 'stay'} open".replace("  ", " "))
    return f"{head}{'; ' if parts else ''}{words.listed(parts)}."


def _matrix(verdict: Verdict) -> Grid:
    conditions = list(dict.fromkeys(cell.condition for cell in verdict.cells))
    keys = list(dict.fromkeys((cell.slice, cell.metric) for cell in verdict.cells))
    places = {(cell.slice, cell.metric, cell.condition): cell for cell in reversed(verdict.cells)}
    columns = [Column(label="Change, %"), *(Column(label=words.opened(name), align="center") for name in conditions)]
    rows = []
    for slice_, metric in keys:
        cells = [_heat(places.get((slice_, metric, condition))) for condition in conditions]
        rows.append(Row(cells=(Cell(text=f"{words.opened(slice_)}, {metric}"), *cells)))
    return Grid(columns=tuple(columns), rows=tuple(rows), legend=LEGEND, heat=True)


def _heat(cell: MatrixCell | None) -> Cell:
    if cell is None or cell.status == "not-run":
        return Cell(text="·", look="not-run")
    looks = [LOOKS[cell.status]]
    if cell.role != "informative":
        looks.append("primary" if cell.role == "primary" else "must")
    if cell.status == "pass" and cell.change is not None:
        size = abs(cell.change)
        looks += ["strongly"] if size >= STRONG else ["slightly"] if size < SLIGHT else []
    said = words.change(cell.change, words.half(cell.interval)).removesuffix(f"{words.GAP}%")
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
            Cell(text=f"±{words.percent(cell.floor)}" if cell.floor is not None else words.NOTHING),
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
