"""A file's traffic -> Page: when requests arrive, how bursty, how large, how that drifts, and whose they are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from trimtab.domain.figure import Findings, Series
from trimtab.domain.imported import ReadReport
from trimtab.report import marks, words
from trimtab.report.book import each, length, real
from trimtab.report.diagnosed import reading
from trimtab.report.diagnosed.leaf import grid
from trimtab.report.marks import Base, Maker
from trimtab.report.page import Block, Facts, Line, Page, Panel, Panels, Section, Spec
from trimtab.report.palette import colour
from trimtab.report.sections import provenance

KIND = "workload"
START, RATE, CV = "start, s", "rate, 1/s", "gap cv"
KNOWN = ("workload.arrivals", "workload.windows", "workload.streams", "workload.bursts")
"""Series that are no histogram of a dim."""


class Traffic:
    """Findings and how their file was read, as sections look into them."""

    def __init__(self, found: Findings, read: ReadReport) -> None:
        self.found, self.read = found, read

    def series(self, name: str) -> Series | None:
        """The series ``workload.<name>``, if it has a row."""
        made = self.found.table(f"workload.{name}")
        return made if made is not None and length(made) else None

    def dims(self) -> list[Series]:
        """The histograms, one a dim."""
        return [one for one in self.found.series if one.id not in KNOWN and length(one) and "lo" in one.columns]

    def said(self, *figures: str) -> str:
        """The sentence that rests on any of these figures."""
        wanted = {f"workload.{name}" for name in figures}
        return next((one.text for one in self.found.findings if wanted & set(one.figures)), "")

    def section(self, id_: str, nav: str, heading: str, *blocks: Block | None) -> Section | None:
        kept = tuple(block for block in blocks if block is not None)
        if not kept:
            return None
        return Section(id=id_, nav=nav, eyebrow="Workload", heading=heading, blocks=kept,
                       source=words.ended(self.read.file))  # fmt: skip


def view(found: Findings, read: ReadReport) -> Page:
    """The page of one file's traffic."""
    traffic = Traffic(found, read)
    made = (section(traffic) for section in SECTIONS)
    return Page(
        title=f"{read.file}: traffic",
        opening=None,
        sections=tuple(section for section in made if section is not None),
        rail=(read.file, read.format),
        first="Traffic",
        kind=KIND,
    )


def _arrivals(traffic: Traffic) -> Section | None:
    """Arrivals over time: the rate, and the busiest second of each stretch; of rates, what is known by window."""
    series, windows = traffic.series("arrivals"), traffic.series("windows")
    if series is not None and length(series) > 1:
        chart = _rate_chart(marks.rows(series, x="start", rate="rate", peak="peak"), series.note)
    elif windows is not None and length(windows) > 1:
        chart = _rate_chart(marks.rows(windows, x=START, rate=RATE), windows.note)
    else:
        chart = None
    return traffic.section("arrivals", "Arrivals", traffic.found.headline, chart, _facts(traffic))


def _rate_chart(rows: list[marks.Datum], note: str) -> Panels:
    step = rows[1]["x"] - rows[0]["x"]
    data = [{**row, "end": row["x"] + step, "base": 0.0} for row in rows]
    peaks = [row for row in data if row.get("peak") is not None]
    top = max(row.get("peak") or row["rate"] or 0.0 for row in data)
    where = marks.x("x", domain=(0.0, data[-1]["end"]), tickCount=8, title="s from the first arrival")
    high = marks.y("rate", domain=(0.0, top * 1.06 or 1.0), title="1/s", tickCount=4)
    bar: Spec = {"type": "rect", "color": colour("useful"), "clip": True}
    tick: Spec = {"type": "rule", "color": colour("static"), "strokeWidth": 1.25, "clip": True}
    layers = [marks.layer(bar, data, x=where, x2=marks.to("end"), y=high, y2=marks.to("base"))]
    lines = [Line(text="mean rate", swatch="neutral")]
    if peaks:
        layers.append(marks.layer(tick, peaks, x=where, x2=marks.to("end"), y={**high, "field": "peak"}))
        lines.append(Line(text="busiest second", swatch="line static"))
    chart = marks.chart("arrivals", layers, 220, f"Arrivals a second over time; {note}", marks.TITLED)
    return Panels(panels=(Panel(label="Arrivals", sub=note, chart=chart, lines=tuple(lines)),))


def _facts(traffic: Traffic) -> Facts | None:
    named = ("requests", "span", "rate", "peak", "peak_to_mean", "gap_cv", "same_time", "clock_tick", "streams")
    known = ((name, traffic.found.figure(f"workload.{name}")) for name in named)
    pairs = tuple(
        (words.opened(name.replace("_", " ")), ", ".join(part for part in (words.figure(one), one.note) if part))
        for name, one in known
        if one is not None
    )
    return Facts(pairs=pairs) if pairs else None


def _bursts(traffic: Traffic) -> Section | None:
    """How much more counts vary than those of a Poisson process, by the width in which they are counted."""
    series = traffic.series("bursts")
    if series is None or length(series) < 2:
        return None
    rows = marks.rows(series, x="width", idc="dispersion")
    where = marks.x("x", title="s, the width of a window", format="~g")
    where["scale"] = {"type": "log", "nice": False}
    high = marks.y("idc", title="times Poisson", tickCount=4)
    high["scale"] = {
        "type": "log",
        "domain": [min(0.5, *(row["idc"] for row in rows)), max(2.0, *(row["idc"] for row in rows)) * 1.2],
    }
    dot: Spec = {"type": "point", "filled": True, "size": 40, "opacity": 1, "color": colour("ink")}
    poisson: Spec = {"type": "rule", "color": colour("static"), "strokeDash": [4, 3]}
    layers = [
        marks.layer(poisson, [{"idc": 1.0}], y=high),
        marks.layer(marks.line("ink"), rows, x=where, y=high),
        marks.layer(dot, rows, x=where, y=high),
    ]
    chart = marks.chart("bursts", layers, 220, "Dispersion of counts by width of the window, logarithmic", marks.TITLED)
    lines = (
        Line(text="variance / mean of counts", swatch="line"),
        Line(text="1: a Poisson process", swatch="line dashed"),
    )
    panel = Panel(label="Burstiness", sub="logarithmic", chart=chart, lines=lines)
    return traffic.section("bursts", "Bursts", traffic.said("dispersion"), Panels(panels=(panel,)))


def _shapes(traffic: Traffic) -> Section | None:
    """The histogram of each dim."""
    panels = tuple(_histogram(series, number) for number, series in enumerate(traffic.dims()))
    heading = traffic.said("shapes") or "Sizes of requests."
    return traffic.section("shapes", "Shapes", heading, Panels(panels=panels) if panels else None)


def _histogram(series: Series, number: int) -> Panel:
    name = series.id.removeprefix("workload.")
    data = [
        {
            "x": real(row["lo"]) or 0.0,
            "end": (real(row["hi"]) or 0.0) + 1,
            "n": real(row["requests"]) or 0.0,
            "base": 0.0,
        }
        for row in each(series)
    ]
    where = marks.x("x", domain=(data[0]["x"], data[-1]["end"]), tickCount=8, title=words.short(name, 40))
    high = marks.y("n", domain=(0.0, max(row["n"] for row in data) * 1.08 or 1.0), title="requests")
    bar: Spec = {"type": "rect", "color": colour("useful"), "clip": True, "stroke": colour("ground"), "strokeWidth": 1}
    layers = [marks.layer(bar, data, x=where, x2=marks.to("end"), y=high, y2=marks.to("base"))]
    chart = marks.chart(f"dim-{number}", layers, 150, f"Requests by {name}", marks.TITLED)
    return Panel(label=words.short(name, 40), sub=series.note, chart=chart)


def _drift(traffic: Traffic) -> Section | None:
    """Rate, bursts and sizes from window to window, under each other on one axis of time."""
    series = traffic.series("windows")
    if series is None or length(series) < 2:
        return None
    starts = [real(one) or 0.0 for one in series.columns[START]]
    far = starts[-1] + (starts[-1] - starts[0]) / max(len(starts) - 1, 1)
    where = marks.x("x", domain=(0.0, far or 1.0), tickCount=8, title="s from the first arrival")
    names = [name for name in series.columns if name not in (START, "requests")]
    makers: list[Maker] = [partial(_over_windows, series, starts, far, name, k) for k, name in enumerate(names)]
    heading = traffic.said(*(f"{one.id.removeprefix('workload.')}.window_drift" for one in traffic.dims()))
    heading = heading or traffic.said("window_rate_max") or "Windows of equal time."
    return traffic.section("drift", "Drift", heading, Panels(panels=marks.stack(makers, where)),
                           grid(series, bar=RATE, title="Windows"))  # fmt: skip


def _over_windows(series: Series, starts: list[float], far: float, name: str, k: int, base: Base) -> Panel | None:
    """One column as steps over the windows."""
    cells = [real(one) for one in series.columns[name]]
    ends = [*starts[1:], far]
    data = [{"x": x, "end": end, "v": v} for x, end, v in zip(starts, ends, cells, strict=True) if v is not None]
    if not data:
        return None
    share = name.endswith(" differs")
    high = marks.y("v", domain=(0.0, 1.0 if share else max(row["v"] for row in data) * 1.1 or 1.0))
    rule: Spec = {"type": "rule", "color": colour("ink"), "strokeWidth": 2, "clip": True}
    layers = [marks.layer(rule, data, x=base.where, x2=marks.to("end"), y=marks.shares(high) if share else high)]
    chart = marks.chart(f"window-{k}", layers, base.height(72), f"{name} by window", base.room)
    said = "distance from all other windows: 0 alike, 1 no overlap" if share else ""
    return Panel(label=words.short(name, 40), sub="", chart=chart, lines=(Line(text=said),) if said else ())


def _streams(traffic: Traffic) -> Section | None:
    series = traffic.series("streams")
    if series is None or length(series) < 2:
        return None
    bar = "requests" if "requests" in series.columns else "mean rate, 1/s"
    heading = (
        traffic.said("half", "top_share")
        or f"{words.opened(words.many(length(series), 'stream'))} shown, the busiest first."
    )
    return traffic.section("streams", "Streams", heading, grid(series, bar=bar))


def _read(traffic: Traffic) -> Section | None:
    left = sum(traffic.read.dropped.values())
    heading = (
        f"{words.opened(words.many(left, 'row'))} left out, counted here." if left else "Everything in it was read."
    )
    return traffic.section("read", "File read", heading, reading.facts(traffic.read))


def _figures(traffic: Traffic) -> Section | None:
    return traffic.section("figures", "All figures", "Every figure, with its samples and what it rests on.",
                           provenance.fold(traffic.found.stage, traffic.found.figures))  # fmt: skip


SECTIONS: tuple[Callable[[Traffic], Section | None], ...] = (
    _arrivals, _bursts, _shapes, _drift, _streams, _read, _figures,
)  # fmt: skip
"""In the order of the page."""
