"""Page -> one HTML file that opens offline, asks for nothing, and runs only the scripts it carries.

Every name that came from data passes :func:`.words.shown` and jinja2's autoescape, so that it can neither be markup
nor turn or bury what stands beside it; chart data is JSON in a block that browsers do not run. The
content-security policy allows the embedded scripts and the style sheet by their digests and nothing else, so Vega
evaluates its expressions with its interpreter, never with ``eval``.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from trimtab.report import marks, palette, words
from trimtab.report.page import Answer, Block, Chart, Grid, Page

SCRIPTS = (
    "vendor/vega.min.js",
    "vendor/vega-lite.min.js",
    "vendor/vega-embed.min.js",
    "templates/choice.js",
    "templates/page.js",
)

PRINTED = 12
"""Rows of a table on paper, the first ones: tables open with what matters most."""


def render(page: Page) -> str:
    """The page as HTML text. Same page, same bytes."""
    scripts = [_resource(name).decode() for name in SCRIPTS]
    drawn = list(charts_of(page))
    style = "\n".join((_font(), palette.stylesheet(), _resource("templates/page.css").decode(), _heights(drawn)))
    charts, rows = thrifty([{"id": chart.id, "spec": chart.spec} for chart in drawn])
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            page=page,
            policy=policy(scripts, style),
            style=style,
            scripts=scripts,
            charts=as_json({"config": marks.config(), "charts": charts, "rows": rows}),
            causes=tuple(palette.CAUSES),
            on_paper=on_paper,
            opened=words.opened,
        )
    )


def policy(scripts: list[str], style: str) -> str:
    """The content-security policy: nothing from anywhere, scripts and style by digest, the font as data."""
    allowed = " ".join(_digest(script) for script in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src {_digest(style)}; font-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def charts_of(page: Page) -> Iterator[Chart]:
    """Every chart, in reading order."""
    for answer in page.opening.answers if page.opening else ():
        yield from _answer_charts(answer)
    for section in page.sections:
        yield from _block_charts(section.blocks)


def thrifty(charts: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[Any]]:
    """The charts without their rows, and the rows: each list of them once, as columns. A layer holds the place of its
    rows in that list as ``data.rows``. Names of fields are most of what rows weigh."""
    places: dict[str, int] = {}
    kept: list[Any] = []

    def lean(layer: dict[str, Any]) -> dict[str, Any]:
        rows = layer["data"]["values"]
        place = places.setdefault(json.dumps(rows), len(kept))
        if place == len(kept):
            kept.append(columns(rows))
        return {**layer, "data": {"rows": place}}

    specs = [{**chart["spec"], "layer": [lean(layer) for layer in chart["spec"]["layer"]]} for chart in charts]
    return [{**chart, "spec": spec} for chart, spec in zip(charts, specs, strict=True)], kept


def columns(rows: list[dict[str, Any]]) -> Any:
    """Rows that all have the same fields as one list a field; others as they are."""
    if not rows or any(row.keys() != rows[0].keys() for row in rows):
        return rows
    return {name: [row[name] for row in rows] for name in rows[0]}


def on_paper(grid: Grid) -> int:
    """How many rows of a table are printed; it is cut only where that saves more than the line that says so."""
    return len(grid.rows) if len(grid.rows) <= PRINTED + 2 else PRINTED


def as_json(value: Any) -> str:
    """JSON that cannot end or open an element: ``<``, ``>`` and ``&`` are written as escapes."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _answer_charts(answer: Answer) -> Iterator[Chart]:
    if answer.chart is not None:
        yield answer.chart


def _block_charts(blocks: tuple[Block, ...]) -> Iterator[Chart]:
    for block in blocks:
        if block.kind == "panels":
            yield from (panel.chart for panel in block.panels)
        elif block.kind == "split":
            yield from _block_charts(block.left)
            yield from _block_charts(block.right)


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _resource(name: str) -> bytes:
    return files("trimtab.report").joinpath(name).read_bytes()


def _font() -> str:
    data = base64.b64encode(_resource("vendor/inter-latin.woff2")).decode()
    return (
        "@font-face{font-family:Inter;font-weight:400 650;font-display:block;"
        f"src:url(data:font/woff2;base64,{data}) format('woff2')}}"
    )


def _heights(charts: list[Chart]) -> str:
    """Each chart has its room before it is drawn, so that nothing moves under a reader who came to a section."""
    rules = (f".h{height}{{min-height:{height}px}}" for height in sorted({chart.height for chart in charts}))
    return f"@media screen{{{''.join(rules)}}}"


def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("trimtab.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )


def _shown(value: Any) -> Any:
    """What a page prints. What is escaped already stays as it is: markup, and by ``|e`` what scripts compare."""
    return words.shown(value) if isinstance(value, str) and not hasattr(value, "__html__") else value
