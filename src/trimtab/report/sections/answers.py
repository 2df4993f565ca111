"""The four answers of the first screen: how much, who owns the tail, what changes, how sure."""

from __future__ import annotations

from trimtab.domain.figure import Interval
from trimtab.domain.plan import Plan
from trimtab.domain.verdict import MatrixCell
from trimtab.report import marks, words
from trimtab.report.arms import Arms, Scale, arms, deciding_cell, scale, touches
from trimtab.report.book import Book
from trimtab.report.page import Answer, Chart, Spec, Squares
from trimtab.report.palette import colour
from trimtab.report.sections import entries

LOOKS = {"pass": "pass", "fail": "fail", "inconclusive": "open", "not-run": "not-run"}


def from_to(row: Arms) -> str:
    static = words.quantity(row.static, row.unit, row.static_interval)
    if row.adapted is None or row.static is None:
        return f"{row.metric} is {static}"
    adapted = words.quantity(row.adapted, row.unit, row.adapted_interval)
    if static == adapted:
        return f"{row.metric} stays at {static}"
    return f"{row.metric} {'falls' if row.adapted < row.static else 'rises'} from {static} to {adapted}"


def against_bound(book: Book, row: Arms) -> str:
    sla = book.record.study.sla
    value = row.adapted if row.adapted is not None else row.static
    if sla.metric == "goodput":
        side = "at or above" if (value or 0.0) >= sla.goodput else "below"
        return f"{side} its bound of {words.percent(sla.goodput)} within {words.number(sla.bound_ms)} ms"
    side = "below" if value is not None and value <= sla.bound_ms else "above"
    return f"{side} its bound of {words.number(sla.bound_ms)} ms"


def primary(book: Book) -> Answer | None:
    sla = book.record.study.sla
    row = arms(book, sla.metric)
    if row.static is None:
        return None
    static, adapted = (words.quantity(v, row.unit, i) for v, i in _pair(row))
    same_unit = adapted.partition(words.GAP)[2] == static.partition(words.GAP)[2]
    paired = row.adapted is not None
    return Answer(
        label=f"Primary metric, {row.metric}",
        value=static.partition(words.GAP)[0] if paired and same_unit else static,
        arrow=adapted if paired else "",
        chart=_primary_chart(book, row),
        foot=_change_words(row),
    )


def _pair(row: Arms) -> tuple[tuple[float | None, Interval | None], ...]:
    return ((row.static, row.static_interval), (row.adapted, row.adapted_interval))


def _change_words(row: Arms) -> str:
    said = []
    if row.change is not None:
        spread = words.spread(row.interval, "change")
        said.append(f"{words.change(row.change, words.half(row.interval))} {spread}".strip())
    elif row.note:
        said.append(row.note)
    if row.floor is not None:
        said.append(f"noise floor ±{words.percent(row.floor)}")
    return "; ".join(said)


def _primary_chart(book: Book, row: Arms) -> Chart | None:
    """Both arms on one axis, with the bound, and the floor around the static one."""
    sla = book.record.study.sla
    limit = sla.goodput if sla.metric == "goodput" else sla.bound_ms
    if row.static is None or abs(row.static) == float("inf"):
        return None
    edge = row.static * (row.floor or 0.0)
    values = [limit, row.static - edge, row.static + edge, row.adapted]
    tight = scale([*values, *_ends(row.static_interval), *_ends(row.adapted_interval)], zero=False, room=0.2)
    to = Scale(lo=tight.lo, hi=tight.hi + (tight.hi - tight.lo) * 0.2)
    share = row.unit == "share"
    where = marks.x("v", domain=(max(to.lo, 0.0), to.hi), tickCount=4)
    where = marks.shares(where) if share else where
    up = marks.silent(marks.y("row", domain=(0, 1)))
    layers: list[Spec] = []
    if row.floor is not None:
        rect = {"v": max(row.static - edge, 0.0), "v2": row.static + edge, "row": 0.4, "row2": 0.8}
        layers.append(marks.layer(marks.floor_band(), [rect], x=where, x2=marks.to("v2"), y=up, y2=marks.to("row2")))
    layers += _bound_layers(limit, share, where, up, to.at(limit))
    names = [words.short(plan.id) if plan else "" for plan in (book.baseline, book.candidate)]
    layers += _arm_layers(names[0], 0.6, row.static, row.static_interval, "static", where, up, to, limit)
    layers += _arm_layers(
        names[1],
        0.16,
        row.adapted,
        row.adapted_interval,
        "ink",
        where,
        up,
        to,
        limit,
    )
    alt = f"{row.metric}: {from_to(row)}; {against_bound(book, row)}"
    return marks.chart("primary", layers, 78, alt, {"left": 0, "right": 8, "top": 6, "bottom": 18})


def _ends(interval: Interval | None) -> list[float | None]:
    return [interval.lo, interval.hi] if interval else []


def _label_right(lo: float, hi: float, limit: float, signs: int) -> bool:
    """Whether a name goes to the right of its dot; all in per cent of the width. The bound's line crosses no name where
    either side is free of it, and no name leaves the picture."""
    width = 4 + 3.0 * signs
    left_fits, right_fits = lo - width > 0, hi + width < 100
    left_free = left_fits and not lo - width < limit < lo
    right_free = right_fits and not hi < limit < hi + width
    if not left_free and not right_free:
        return right_fits if left_fits != right_fits else lo + hi < 100
    return right_free if not left_free else hi < 45 and right_free


def _arm_layers(
    name: str,
    at: float,
    value: float | None,
    interval: Interval | None,
    look: str,
    where: Spec,
    up: Spec,
    to: Scale,
    limit: float,
) -> list[Spec]:
    """One plan: interval, dot, and its name on the side where there is room."""
    if value is None or abs(value) == float("inf"):
        return []
    lo, hi = (interval.lo, interval.hi) if interval else (value, value)
    right = _label_right(to.at(lo), to.at(hi), to.at(limit), len(name))
    place: Spec = {"align": "left", "dx": 9} if right else {"align": "right", "dx": -9}
    ink: Spec = {"color": colour("ink"), "fontWeight": 600} if look == "ink" else {"color": colour("text")}
    label = {"v": hi if right else lo, "row": at, "text": name}
    whisker: Spec = {"type": "rule", "strokeWidth": 1.5, "color": colour(look)}
    dot: Spec = {"type": "point", "filled": True, "size": 46, "opacity": 1, "color": colour(look)}
    text = marks.words(fontSize=12, limit=110, **place, **ink)
    return [
        marks.layer(whisker, [{"v": lo, "v2": hi, "row": at}], x=where, x2=marks.to("v2"), y=up),
        marks.layer(dot, [{"v": value, "row": at}], x=where, y=up),
        marks.layer(text, [label], x=where, y=up, text=marks.to("text")),
    ]


def _bound_layers(limit: float, share: bool, where: Spec, up: Spec, at: float) -> list[Spec]:
    said = words.percent(limit) if share else words.number(limit)
    datum = {"v": limit, "row": 1.0, "text": f"bound {said}"}
    side = {"align": "left", "dx": 5} if at < 60 else {"align": "right", "dx": -5}
    label = marks.words(**side, dy=4, color=colour("fail"), baseline="middle")
    return [
        marks.layer(marks.bound(), [datum], x=where),
        marks.layer(label, [datum], x=where, y=up, text=marks.to("text")),
    ]


def change(book: Book) -> Answer | None:
    proposal = book.record.proposal
    if proposal is None:
        return None
    move = proposal.move
    picture = entries.miniature(book)
    costs = [words.opened(book.owner(move.owner))]
    if move.compile_s is not None:
        costs.append(f"{words.number(move.compile_s)} s compile")
    if move.memory_mib is not None:
        costs.append(f"{words.signed(move.memory_mib)} MiB")
    if move.peak_mib is not None:
        costs.append(f"peak {words.number(move.peak_mib)} MiB")
    return Answer(
        label="Change",
        value=_change_value(book.baseline, move.plan, move.kind),
        caption=f"requests by {book.record.study.dim_names[0]}; entries of {words.short(move.plan.id)}"
        if picture
        else move.sentence,
        chart=picture,
        foot=", ".join(costs),
    )


def _change_value(before: Plan, after: Plan, kind: str) -> str:
    """The change in a few words, counted on the two plans."""
    if before == after or kind == "no-change":
        return "No change"
    return _compile_change(before, after) or _serve_change(before, after) or words.opened(kind.replace("-", " "))


def _compile_change(before: Plan, after: Plan) -> str:
    old = {(entry.kind, entry.lo, entry.hi) for entry in before.compile.entries}
    new = [entry for entry in after.compile.entries if (entry.kind, entry.lo, entry.hi) not in old]
    if before.compile.backend != after.compile.backend:
        return f"{before.compile.backend} to {after.compile.backend}"
    return words.opened(words.many(len(new), "new entry", "new entries")) if new else ""


def _serve_change(before: Plan, after: Plan) -> str:
    old, new = before.serve, after.serve
    warmed = len(set(new.warm) - set(old.warm))
    if warmed:
        return words.opened(words.many(warmed, "warmed shape"))
    if old.batch != new.batch:
        return f"Batches of up to {words.count(new.batch.max_size)}"
    if (old.workers, old.threads) != (new.workers, new.threads):
        return f"{words.opened(words.many(new.workers, 'worker'))}, {words.many(new.threads, 'thread')}"
    return ""


def certainty(book: Book) -> Answer | None:
    verdict = book.record.verdict
    if verdict is None or not verdict.cells:
        return None
    must = [cell for cell in verdict.cells if cell.role != "informative"]
    rest = [cell for cell in verdict.cells if cell.role == "informative"]
    passed = sum(cell.status == "pass" for cell in must)
    squares = [Squares(text=f"Must pass: {passed} of {len(must)}", looks=tuple(LOOKS[c.status] for c in must))]
    if rest:
        looks = tuple(f"informative {LOOKS[c.status]}" for c in rest)
        squares.append(Squares(text=f"Informative: {_tally(rest)}", looks=looks))
    primary = deciding_cell(book, book.record.study.sla.metric) or book.primary
    return Answer(
        label="Certainty",
        value=_certainty_value(must, book.primary),
        squares=tuple(squares),
        foot=f"{words.count(primary.samples)} {primary.slice} requests decide" if primary and primary.samples else "",
    )


def _certainty_value(must: list[MatrixCell], primary: MatrixCell | None) -> str:
    if any(cell.status == "fail" and cell.role == "guard" for cell in must):
        return "A guard fails"
    if primary and primary.status == "fail":
        return "The primary fails"
    if all(cell.status == "pass" for cell in must):
        return "All guards hold" if len(must) > 1 else "The primary holds"
    if primary and primary.status == "pass":
        return "Guards still open"
    if primary and touches(primary.interval, primary.floor):
        return "Inside the noise"
    return "Not decided"


def _tally(cells: list[MatrixCell]) -> str:
    said = {"pass": "pass", "inconclusive": "open", "fail": "fail", "not-run": "not run"}
    counts = {text: sum(cell.status == status for cell in cells) for status, text in said.items()}
    return ", ".join(f"{count} {text}" for text, count in counts.items() if count)
