"""Batch policy: what the plan lets batches do, which batches formed, and what holding paid and saved."""

from __future__ import annotations

from trimtab.domain.figure import Series
from trimtab.domain.plan import BatchPolicy, Plan
from trimtab.report import words
from trimtab.report.arms import Scale, scale
from trimtab.report.book import Book, Values, each, real, source
from trimtab.report.page import Block, Cell, Column, Facts, Grid, Mark, Row, Section, Strip
from trimtab.report.sections import timeline


def section(book: Book) -> Section | None:
    """Absent where no plan batches, measured or tried: then there is nothing to decide."""
    sizes, balance, tried = book.series("replay.batch_sizes"), _balance(book), _tried(book)
    if balance is None and tried is None and book.baseline.serve.batch.max_size == 1:
        return None
    found = (_policies(book), _sizes(book, sizes) if sizes else None, balance, tried)
    blocks: tuple[Block, ...] = tuple(block for block in found if block is not None)
    return Section(
        id="batching",
        nav="Batch policy",
        eyebrow="Replay, retune",
        heading=_heading(book),
        blocks=blocks,
        source=source(
            "Simulated: the same machine on the same arrivals with service times of the profile" if tried else "",
            artifact=sizes.artifact if sizes else "",
        ),
    )


def _heading(book: Book) -> str:
    net, size = book.figure("policy.net"), book.figure("policy.mean_size")
    if net is None and book.baseline.serve.batch.max_size == 1:
        return "Every request runs alone: nothing is held, and nothing is saved by batching."
    if net is None or net.value is None:
        return "What batches formed, and what they cost."
    side = "saves" if net.value >= 0 else "costs"
    amount = words.time(abs(net.value))
    held = f"Batches of {words.figure(size)} on average" if size else "Batching"
    return f"{held}: the policy {side} {amount} a request, hold and service together."


def _policies(book: Book) -> Facts:
    plans = [book.baseline, *([book.candidate] if book.candidate else [])]
    return Facts(pairs=tuple((plan.id, _said(plan)) for plan in plans), title="Policy of each plan")


def _said(plan: Plan) -> str:
    policy: BatchPolicy = plan.serve.batch
    if policy.max_size == 1:
        return "one request a batch"
    hold = f", held up to {words.number(policy.hold_ms)} ms" if policy.hold_ms else ", nothing held"
    return f"{policy.kind}: up to {words.count(policy.max_size)} requests a batch{hold}"


def _sizes(book: Book, series: Series) -> Grid | None:
    rows = timeline.first_run(timeline.mine(book, series))
    if len(rows) < 2:
        return None
    to = scale([real(row.get("requests")) for row in rows])
    columns = (
        Column(label="Batch size"),
        Column(label="Batches", align="right"),
        Column(label="Requests", align="right"),
        Column(label=""),
    )
    return Grid(columns=columns, rows=tuple(_size(row, to) for row in rows), title="Batches that formed")


def _size(row: Values, to: Scale) -> Row:
    requests = real(row.get("requests")) or 0.0
    bar = Mark(form="bar", x=to.at(0.0), x2=to.at(requests), look="neutral")
    return Row(
        cells=(
            Cell(text=words.number(real(row.get("size")))),
            Cell(text=words.number(real(row.get("batches")))),
            Cell(text=words.number(requests)),
            Cell(strip=Strip(marks=(bar,), alt=words.number(requests))),
        )
    )


def _balance(book: Book) -> Grid | None:
    """What the batch policy holds back and what it saves, by entry; absent where nothing batches."""
    series = book.series("policy.by_entry")
    if series is None:
        return None
    columns = (
        Column(label="Entry"),
        Column(label="Batch of", align="right"),
        Column(label="Held", align="right"),
        Column(label="Saved", align="right"),
        Column(label="Net", align="right"),
    )
    rows = tuple(_entry_policy(row) for row in each(series))
    return Grid(columns=columns, rows=rows, title="Batching, ms a request: hold paid against service saved")


def _entry_policy(row: Values) -> Row:
    paid, saved, net = (real(row.get(key)) for key in ("paid", "saved", "net"))
    return Row(
        cells=(
            Cell(text=str(row["entry"])),
            Cell(text=words.number(real(row.get("mean_size")))),
            Cell(text=words.number(paid)),
            Cell(text=words.number(saved)),
            Cell(text=words.signed(net)),
        )
    )


def _tried(book: Book) -> Grid | None:
    """Candidates that batch differently, and what they would change."""
    series = book.series("retune.candidates")
    rows = [row for row in each(series) if row.get("kind") == "batch"] if series else []
    if not rows:
        return None
    columns = (
        Column(label="Batching that was tried"),
        Column(label="Change, simulated", align="right"),
        Column(label="Interval", align="right"),
        Column(label="Change, measured", align="right"),
        Column(label="Why it won or lost"),
    )
    return Grid(columns=columns, rows=tuple(_candidate(row) for row in rows))


def _candidate(row: Values) -> Row:
    lo, hi = real(row.get("simulated_lo")), real(row.get("simulated_hi"))
    return Row(
        cells=(
            Cell(text=str(row["sentence"]), sub=str(row["plan"])),
            Cell(text=words.change(real(row.get("simulated")))),
            Cell(text=f"{words.change(lo)} to {words.change(hi)}" if lo is not None and hi is not None else ""),
            Cell(text=words.change(real(row.get("measured")))),
            Cell(text=str(row.get("reason") or ""), look="muted"),
        )
    )
