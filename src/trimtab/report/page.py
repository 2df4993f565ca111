"""The Page: what each section shows, before anything decides how it looks.

Frozen nouns only. :func:`trimtab.report.view.view` makes one from a Record; ``html`` and ``text`` print it. All text is
plain text: a renderer escapes it, and no part of a page is a link or markup that came from data.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec.structs import replace

from trimtab.domain.noun import Noun
from trimtab.report.words import NOTHING

Spec = dict[str, Any]
"""One Vega-Lite specification as plain data. Colours are the palette's CSS variables, so that a page changes its
theme without drawing again."""

Align = Literal["left", "right", "center"]
Form = Literal["bar", "line", "dot", "band", "tick", "link", "text"]
Axis = Literal["", "time", "size", "window"]
"""What the horizontal axis of a chart means: a part chosen on one is chosen on all others of its kind."""


class Mark(Noun, frozen=True, kw_only=True):
    """One mark of a strip. ``x`` and ``x2`` are per cent of its width, ``y`` of its height; ``look`` names classes."""

    form: Form
    x: float
    x2: float = 0.0
    y: float = 50.0
    look: str = ""
    text: str = ""
    cause: str = ""


class Strip(Noun, frozen=True, kw_only=True):
    """Marks on one horizontal scale that all rows of a table share. ``alt`` says the same in words."""

    marks: tuple[Mark, ...]
    alt: str = ""


class Cell(Noun, frozen=True, kw_only=True):
    """One table cell. ``look`` names classes (``pass``, ``fail``, ``open``, ``not-run``, ``must``, ``primary``)."""

    text: str = ""
    sub: str = ""
    strip: Strip | None = None
    look: str = ""
    glyph: str = ""
    span: int = 1


class Column(Noun, frozen=True, kw_only=True):
    """``ticks`` label the shared scale of a column of strips: (per cent, text). ``heads``: each names what begins
    there."""

    label: str
    sub: str = ""
    align: Align = "left"
    ticks: tuple[tuple[float, str], ...] = ()
    heads: bool = False
    wide: bool = False


class Row(Noun, frozen=True, kw_only=True):
    cells: tuple[Cell, ...]
    strong: bool = False
    total: bool = False


class Key(Noun, frozen=True, kw_only=True):
    """One entry of a legend; ``swatch`` names a palette class."""

    swatch: str
    text: str
    cause: str = ""


class Grid(Noun, frozen=True, kw_only=True):
    """A table. ``heat``: the cells are tinted squares, as in the validation matrix."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    legend: tuple[Key, ...] = ()
    heat: bool = False
    title: str = ""
    kind: Literal["grid"] = "grid"


def said_only(grid: Grid) -> Grid:
    """The grid without those columns of which no row says anything. Cells that span columns keep them all."""
    if any(cell.span > 1 for row in grid.rows for cell in row.cells):
        return grid
    keep = [at for at in range(len(grid.columns)) if any(_says(row.cells[at]) for row in grid.rows)]
    rows = tuple(replace(row, cells=tuple(row.cells[at] for at in keep)) for row in grid.rows)
    return replace(grid, columns=tuple(grid.columns[at] for at in keep), rows=rows)


def _says(cell: Cell) -> bool:
    return cell.strip is not None or bool(cell.glyph) or cell.text not in ("", NOTHING)


class Chart(Noun, frozen=True, kw_only=True):
    """A chart as wide as the column it stands in. ``alt`` is read to those who cannot see it. On an ``axis`` a reader
    may choose a part, with the pointer or the arrow keys."""

    id: str
    spec: Spec
    height: int
    alt: str
    axis: Axis = ""


class Line(Noun, frozen=True, kw_only=True):
    """A line of annotation beside a chart; ``swatch`` names a palette class, empty = none. ``told``: it says something
    even where the mark of its swatch is not drawn."""

    text: str
    strong: bool = False
    swatch: str = ""
    told: bool = False


class Panel(Noun, frozen=True, kw_only=True):
    """One chart with its name on the left and its directly labelled marks on the right."""

    label: str
    sub: str
    chart: Chart
    lines: tuple[Line, ...] = ()


class Panels(Noun, frozen=True, kw_only=True):
    """Charts under each other on one horizontal axis."""

    panels: tuple[Panel, ...]
    kind: Literal["panels"] = "panels"


class Facts(Noun, frozen=True, kw_only=True):
    """Terms and what is known of them."""

    pairs: tuple[tuple[str, str], ...]
    title: str = ""
    kind: Literal["facts"] = "facts"


class Prose(Noun, frozen=True, kw_only=True):
    """Paragraphs; each opens with an emphasised part (which may be empty)."""

    paragraphs: tuple[tuple[str, str], ...]
    kind: Literal["prose"] = "prose"


class Code(Noun, frozen=True, kw_only=True):
    """Commands to copy, each with what it does."""

    lines: tuple[tuple[str, str], ...]
    kind: Literal["code"] = "code"


class Split(Noun, frozen=True, kw_only=True):
    """Two columns side by side, the left one wider."""

    left: tuple[Block, ...]
    right: tuple[Block, ...]
    kind: Literal["split"] = "split"


class Fold(Noun, frozen=True, kw_only=True):
    """A table that stays closed until asked for; on paper, too, it is one line unless a reader has opened it."""

    summary: str
    grid: Grid
    kind: Literal["fold"] = "fold"


class Select(Noun, frozen=True, kw_only=True):
    """One list to choose from. ``field``: an axis, whose options are ``lo,hi``, or ``stream``."""

    field: str
    label: str
    options: tuple[tuple[str, str], ...]


class Choice(Noun, frozen=True, kw_only=True):
    """What a reader may choose without a pointer; the charts follow."""

    selects: tuple[Select, ...]
    kind: Literal["choice"] = "choice"


class Told(Noun, frozen=True, kw_only=True):
    """The story of one request: its sentence, and its timeline with whoever was in front."""

    key: str
    title: str
    sentence: str
    grid: Grid


class Stories(Noun, frozen=True, kw_only=True):
    """Stories of which one is shown at a time: the first, until a reader asks for another."""

    label: str
    told: tuple[Told, ...]
    kind: Literal["stories"] = "stories"


Block = Grid | Panels | Facts | Prose | Code | Split | Fold | Choice | Stories


class Squares(Noun, frozen=True, kw_only=True):
    """A row of small squares, one for each cell of the matrix; ``looks`` as in :class:`Cell`."""

    text: str
    looks: tuple[str, ...]


class Answer(Noun, frozen=True, kw_only=True):
    """One of the four answers of the first screen: label, answer, a small picture of it, and one line of support.

    ``value`` and, for a change, ``arrow``: what it becomes. The picture is any of caption, strip, chart and squares.
    """

    label: str
    value: str
    arrow: str = ""
    caption: str = ""
    strip: Strip | None = None
    under: tuple[str, ...] = ()
    squares: tuple[Squares, ...] = ()
    chart: Chart | None = None
    foot: str = ""


Status = Literal["pass", "pending", "fail", "open"]


class Opening(Noun, frozen=True, kw_only=True):
    """The verdict: ``word`` is the decision, ``pending`` what is still missing before it counts."""

    status: Status
    word: str
    sentence: str
    text: str
    pending: str = ""
    answers: tuple[Answer, ...] = ()


class Section(Noun, frozen=True, kw_only=True):
    """``eyebrow`` is the pipeline word, ``heading`` the finding, ``source`` the one line that says where it is from."""

    id: str
    nav: str
    eyebrow: str
    heading: str
    blocks: tuple[Block, ...]
    lead: str = ""
    source: str = ""


class Page(Noun, frozen=True, kw_only=True):
    """The whole report. ``rail`` are the short facts under the list of sections; ``warnings`` come before everything
    else. ``first`` names the first screen; ``kind`` says whose page this is, so that it replaces its like only."""

    title: str
    opening: Opening | None
    sections: tuple[Section, ...]
    rail: tuple[str, ...]
    notice: str = ""
    warnings: tuple[str, ...] = ()
    first: str = "Verdict"
    kind: str = "report"
