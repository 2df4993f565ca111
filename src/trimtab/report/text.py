"""Page -> the terminal: the same sections, sentences and tables; pictures stay in the HTML file.

Nothing that came from data is read as console markup: only ``Text`` objects are printed, and control characters are
dropped from them.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from trimtab.report.page import Answer, Block, Cell, Grid, Line, Mark, Opening, Page, Panel, Row, Section

GLYPHS = {"pass": "✓", "pending": "✓", "fail": "✗", "open": "?", "not-run": "·"}
STYLES = {"pass": "green", "pending": "dim", "fail": "red", "open": "yellow"}
STRIP_WIDTH = 24
_LEVELS = {"band": "░", "line": "─", "bar": "█", "tick": "│", "dot": "●", "link": " ", "text": "→"}


def render(page: Page) -> RenderableType:
    """The page for ``rich.console.Console.print``."""
    parts: list[RenderableType] = [plain(f"! {line}", "bold red") for line in page.warnings]
    parts.append(_opening(page.opening) if page.opening else plain(page.title, "bold"))
    parts += [_section(section) for section in page.sections]
    return Group(*parts)


def show(page: Page, console: Console) -> None:
    """Print the page."""
    console.print(render(page), soft_wrap=False)


def plain(text: str, style: str = "") -> Text:
    """Text without markup and without control characters."""
    return Text("".join(sign if sign.isprintable() else " " for sign in text), style=style)


def _opening(opening: Opening) -> RenderableType:
    head = plain(f"{GLYPHS[opening.status]} {opening.word} ", f"bold {STYLES[opening.status]}")
    head.append_text(plain(opening.sentence, "bold"))
    parts: list[RenderableType] = [head, plain(opening.text)]
    if opening.pending:
        parts.append(plain(opening.pending, "dim"))
    if not opening.answers:
        return Group(*parts)
    table = Table.grid(padding=(0, 2))
    for answer in opening.answers:
        table.add_row(plain(answer.label, "dim"), plain(_value(answer), "bold"), plain(answer.foot, "dim"))
    return Group(*parts, Padding(table, (1, 0, 0, 0)))


def _value(answer: Answer) -> str:
    return f"{answer.value} → {answer.arrow}" if answer.arrow else answer.value


def _section(section: Section) -> RenderableType:
    parts: list[RenderableType] = [plain(section.eyebrow, "dim"), plain(section.heading, "bold")]
    if section.lead:
        parts.append(plain(section.lead))
    for block in section.blocks:
        parts += _block(block)
    if section.source:
        parts.append(plain(section.source, "dim"))
    return Padding(Group(*parts), (1, 0, 0, 0))


def _block(block: Block) -> Iterator[RenderableType]:
    if block.kind == "split":
        for part in (*block.left, *block.right):
            yield from _block(part)
    elif block.kind == "grid":
        yield from _grid(block)
    elif block.kind == "stories":
        yield plain(f"{block.label} {block.told[0].title}", "bold")
        yield plain(block.told[0].sentence)
        yield from _grid(block.told[0].grid)
    elif block.kind == "panels":
        yield from (_panel(panel) for panel in block.panels if any(map(_told, panel.lines)))
    else:
        yield from _words(block)


def _words(block: Block) -> Iterator[RenderableType]:
    if block.kind == "prose":
        yield from (Text(" ").join((plain(lead, "bold"), plain(rest))) for lead, rest in block.paragraphs)
    elif block.kind in ("facts", "code"):
        table = Table.grid(padding=(0, 2))
        for left, right in block.pairs if block.kind == "facts" else block.lines:
            table.add_row(plain(left, "dim" if block.kind == "facts" else "bold"), plain(right))
        yield table


def _panel(panel: Panel) -> RenderableType:
    line = plain(f"{panel.label} ", "bold") if panel.label else Text()
    said = [plain(note.text, "bold" if note.strong else "") for note in panel.lines if _told(note)]
    return line.append_text(Text(" · ").join(said))


def _told(line: Line) -> bool:
    """Whether a line says something without its picture: the name of a mark does not."""
    return line.told or not line.swatch


def _grid(grid: Grid) -> Iterator[RenderableType]:
    if grid.title:
        yield plain(grid.title, "bold")
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 1))
    for column in grid.columns:
        head = f"{column.label} {column.sub}".strip()
        table.add_column(plain(head), justify=column.align, overflow="fold")
    for row in grid.rows:
        table.add_row(*(_cell(cell) for cell in row.cells), style=_style(row))
    yield table


def _style(row: Row) -> str:
    return "bold" if row.strong or row.total else ""


def _cell(cell: Cell) -> Text:
    if cell.strip is not None:
        return plain(_drawn(cell.strip.marks), "cyan")
    glyph = f"{GLYPHS[cell.glyph]} " if cell.glyph in GLYPHS else ""
    text = plain(f"{glyph}{cell.text}", STYLES.get(cell.glyph, "dim" if "muted" in cell.look else ""))
    return text.append_text(plain(f" {cell.sub}", "dim")) if cell.sub else text


def _drawn(marks: tuple[Mark, ...]) -> str:
    """A strip in characters: what comes later covers what came before, as on the page."""
    signs = [" "] * STRIP_WIDTH
    for mark in marks:
        first = min(int(mark.x / 100 * STRIP_WIDTH), STRIP_WIDTH - 1)
        last = min(int(max(mark.x2, mark.x) / 100 * STRIP_WIDTH), STRIP_WIDTH - 1)
        sign = "○" if mark.form == "dot" and mark.look else "▒" if "inherited" in mark.look else _LEVELS[mark.form]
        for k in range(first, last + 1):
            signs[k] = sign
    return "".join(signs).rstrip()
