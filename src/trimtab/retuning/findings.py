"""What the stages retune, validate and decide leave in the packet: headline, figures, and the series to draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trimtab.domain.figure import Cell, Figure, Finding, Findings, Interval, Series
from trimtab.domain.study import Sla
from trimtab.domain.verdict import MatrixCell, Proposal, Rejected, Verdict
from trimtab.mapping.buckets import FORMULAS, BucketFit
from trimtab.retuning import _metric as metric
from trimtab.retuning._change import NO_CHANGE
from trimtab.retuning._series import Row, series
from trimtab.retuning.confirm import Choice, Confirmed, measured_figure
from trimtab.retuning.search import Simulated, simulated_figure, why_not
from trimtab.retuning.size import Sizing
from trimtab.retuning.validate import Matrix


def retune(
    sla: Sla,
    rows: Sequence[Simulated],
    choice: Choice,
    refused: Sequence[Rejected],
    artifact: str,
    *,
    fits: Sequence[BucketFit] = (),
    sizing: Sizing | None = None,
) -> Findings:
    """The candidate table, the bucket sweep and the cores needed, each where it was computed.

    Series ``retune.candidates``, ``retune.buckets``, ``retune.cores``; figures ``retune.simulated.<plan>``,
    ``retune.measured.<plan>``, ``retune.cores_needed``, ``retune.cores_margin``, ``retune.load_limit``.
    """
    confirmed = {row.move.plan.id: row for row in choice.rows}
    table = [_candidate(row, confirmed.get(row.move.plan.id), choice, sla) for row in rows]
    table += [_refused(row) for row in refused]
    figures = [simulated_figure(row, sla, artifact) for row in rows]
    figures += [measured_figure(row, sla, artifact) for row in choice.rows]
    tables = [series("retune.candidates", table, _CANDIDATE_UNITS, "tune", artifact)]
    findings = [Finding(text=_chosen(choice, confirmed), figures=_ids(choice), owner=choice.chosen.owner)]
    if fits:
        tables.append(series("retune.buckets", [_fit(fit) for fit in fits], _FIT_UNITS, "tune", artifact))
        findings.append(Finding(text=_sweep_sentence(fits)))
    if sizing is not None:
        tables.append(_cores(sizing, sla, artifact))
        cores = _core_figures(sizing, sla, artifact)
        figures += cores
        answer = size_sentence(sizing, sla)
        text = f"With plan {choice.chosen.plan.id}, {answer[:1].lower()}{answer[1:]}"
        findings.append(Finding(text=text, figures=tuple(f.id for f in cores), owner="runtime"))
    return Findings(
        stage="retune",
        headline=findings[0].text,
        findings=tuple(findings),
        figures=tuple(figures),
        series=tuple(tables),
    )


_CANDIDATE_UNITS = {
    **dict.fromkeys(("simulated", "simulated_lo", "simulated_hi", "measured", "measured_lo", "measured_hi"), "share"),
    "floor": "share",
    "compile_s": "s",
    "memory_mib": "MiB",
}
_FIT_UNITS = {"mean_ms": "ms", "total_ms": "ms", "padding": "share"}


def _candidate(row: Simulated, confirmed: Confirmed | None, choice: Choice, sla: Sla) -> Row:
    move, judged = row.move, confirmed.judged if confirmed else None
    measured, interval = metric.change(judged.comparison) if judged else (None, None)
    is_chosen = move.plan.id == choice.chosen.plan.id
    status = "chosen" if is_chosen else "baseline" if move.kind == NO_CHANGE else "rejected"
    return {
        "plan": move.plan.id,
        "sentence": move.sentence,
        "kind": move.kind,
        "owner": move.owner,
        "size": move.size,
        "status": status,
        "simulated": row.change,
        **_bounds("simulated", row.spread),
        "replicas": len(row.values),
        "measured": measured,
        **_bounds("measured", interval),
        "judged_on": judged.metric if judged else None,
        "floor": confirmed.floor if confirmed else None,
        "compile_s": move.compile_s,
        "memory_mib": move.memory_mib,
        "reason": confirmed.reason if confirmed else why_not(row, sla),
    }


def _refused(row: Rejected) -> Row:
    return {"plan": row.plan, "sentence": row.sentence, "status": "refused", "reason": row.reason}


def _bounds(name: str, interval: Interval | None) -> dict[str, Cell]:
    return {f"{name}_lo": interval.lo if interval else None, f"{name}_hi": interval.hi if interval else None}


def _chosen(choice: Choice, confirmed: Mapping[str, Confirmed]) -> str:
    row = confirmed.get(choice.chosen.plan.id)
    if choice.undecided:
        return f"{choice.undecided[:1].upper()}{choice.undecided[1:]}."
    if choice.chosen.kind == NO_CHANGE or row is None or row.judged is None:
        return "No move gains more than the floor on the tune slice."
    change, interval = metric.change(row.judged.comparison)
    spread = f"{metric.signed(interval.lo)} to {metric.signed(interval.hi)}" if interval else "without an interval"
    cost = "" if choice.chosen.compile_s is None else f", for {choice.chosen.compile_s:.2g} s more at start"
    effect = f"{row.judged.metric} {metric.signed(change)} on the tune slice, {spread}{cost}"
    return f"{choice.chosen.sentence.rstrip('.')}: {effect}."


def _ids(choice: Choice) -> tuple[str, ...]:
    return tuple(f"retune.{how}.{choice.chosen.plan.id}" for how in ("simulated", "measured"))


def _fit(fit: BucketFit) -> Row:
    return {
        "family": fit.family,
        "count": fit.count,
        "mean_ms": fit.mean_ms,
        "total_ms": fit.total_ms,
        "padding": fit.padding,
        "boundaries": " ".join(map(str, fit.boundaries)) if fit.family == "fitted" else "",
    }


def _sweep_sentence(fits: Sequence[BucketFit]) -> str:
    fitted = [fit for fit in fits if fit.family == "fitted"]
    rivals = [fit for fit in fits if fit.family in FORMULAS]
    if not fitted:
        return "No buckets were fitted."
    best = fitted[-1]
    text = (
        f"{best.count} fitted buckets cost {best.mean_ms:.3g} ms a request by profile, {fitted[0].mean_ms:.3g} with one"
    )
    level = [fit for fit in rivals if fit.count == best.count]
    if not level:
        return f"{text}."
    rival = min(level, key=lambda fit: fit.mean_ms)
    return f"{text}; the best formula of that count ({rival.family}) costs {rival.mean_ms:.3g}."


# --- cores -----------------------------------------------------------------------------------------------------


def _cores(sizing: Sizing, sla: Sla, artifact: str) -> Series:
    table: list[Row] = [
        {
            "cores": row.cores,
            "value": row.value,
            "miss": row.miss,
            "utilisation": row.utilisation,
            "met": row.met,
            "extrapolated": row.extrapolated,
        }
        for row in sizing.rows
    ]
    units = {"value": metric.unit(sla.metric), "miss": "share", "utilisation": "share"}
    note = f"simulated {sla.metric}; more cores than were replayed are extrapolated"
    note = f"{note}; {sizing.doubted}" if sizing.doubted else note
    return series("retune.cores", table, units, "tune", artifact, note)


def _core_figures(sizing: Sizing, sla: Sla, artifact: str) -> list[Figure]:
    def figure(name: str, value: float | None, unit: str, note: str) -> Figure:
        return Figure(
            id=f"retune.{name}", value=value, unit=unit, samples=0, scope="tune", artifact=artifact, note=note
        )

    needed = None if sizing.needed is None else float(sizing.needed)
    doubt = f"; {sizing.doubted}" if sizing.doubted else ""
    lacking = f"none of 1 to {len(sizing.rows)} cores meets {sla.metric}{doubt}"
    return [
        figure("cores_needed", needed, "cores", f"simulated{doubt}" if needed else lacking),
        figure("cores_margin", sizing.margin, "share", f"share of the bound left{doubt}" if needed else lacking),
        figure("load_limit", sizing.stops_at, "x", f"rate multiple, simulated{doubt}" if sizing.stops_at else lacking),
    ]


def size_sentence(sizing: Sizing, sla: Sla) -> str:
    """The answer to "how many cores does this SLA need at this traffic", and why not to rely on it, if anything."""
    doubt = f" Not to be relied on: {sizing.doubted}." if sizing.doubted else ""
    return _size_answer(sizing, sla) + doubt


def _size_answer(sizing: Sizing, sla: Sla) -> str:
    bound = f"{sla.metric} {'>=' if sla.metric == 'goodput' else '<='} {metric.text(metric.bound(sla), sla.metric)}"
    if sizing.needed is None:
        return f"None of 1 to {len(sizing.rows)} cores meets {bound} at this traffic (simulated)."
    row = sizing.rows[sizing.needed - 1]
    text = f"{_count(sizing.needed)} {bound} at this traffic (simulated {metric.text(row.value, sla.metric)}"
    text += ", extrapolated beyond the cores replayed here)" if row.extrapolated else ")"
    if sizing.stops_at is None:
        return f"{text}."
    return f"{text}, up to {'at least ' if sizing.beyond else ''}{sizing.stops_at:.2f} times the rate."


def _count(cores: int) -> str:
    return "1 core meets" if cores == 1 else f"{cores} cores meet"


# --- validate and decide ---------------------------------------------------------------------------------------


def validate(matrix: Matrix, artifact: str) -> Findings:
    """Series ``validate.matrix``; a figure ``validate.<cell id>`` for the primary cell and each guard."""
    decisive = [cell for cell in matrix.cells if cell.role != "informative"]
    return Findings(
        stage="validate",
        headline=_matrix_sentence(matrix),
        findings=tuple(Finding(text=_cell_sentence(cell), figures=(f"validate.{cell.id}",)) for cell in decisive),
        figures=tuple(cell_figure(cell, artifact) for cell in decisive),
        series=(series("validate.matrix", [_cell(cell) for cell in matrix.cells], _CELL_UNITS, "held-out", artifact),),
    )


_CELL_UNITS = dict.fromkeys(("change", "lo", "hi", "floor", "margin"), "share")


def cell_figure(cell: MatrixCell, artifact: str) -> Figure:
    """A cell's change as a figure: what a proposal calls its measured effect."""
    return Figure(
        id=f"validate.{cell.id}",
        value=cell.change,
        unit="share",
        samples=cell.samples,
        scope=cell.slice,
        artifact=artifact,
        interval=cell.interval,
        note="; ".join(part for part in (f"change of {cell.metric}: {cell.status}", cell.note) if part),
    )


def _cell(cell: MatrixCell) -> Row:
    return {
        "id": cell.id,
        "slice": cell.slice,
        "condition": cell.condition,
        "metric": cell.metric,
        "role": cell.role,
        "status": cell.status,
        "baseline": cell.baseline,
        "candidate": cell.candidate,
        "change": cell.change,
        "lo": cell.interval.lo if cell.interval else None,
        "hi": cell.interval.hi if cell.interval else None,
        "floor": cell.floor,
        "margin": cell.margin,
        "samples": cell.samples,
        "note": cell.note,
    }


def _matrix_sentence(matrix: Matrix) -> str:
    primary = matrix.primary
    words = {"pass": "passes", "fail": "fails", "inconclusive": "is inconclusive", "not-run": "was not run"}
    first = f"The primary cell {words[primary.status]}" if primary else "There is no primary cell"
    passed = sum(cell.status == "pass" for cell in matrix.guards)
    open_cells = sum(cell.status == "inconclusive" for cell in matrix.cells)
    not_run = sum(cell.status == "not-run" for cell in matrix.cells)
    guards = f"{passed} of {len(matrix.guards)} guards pass" if matrix.guards else "there are no guards"
    return f"{first}, {guards}; {open_cells} cells are inconclusive, {not_run} were not run."


def _cell_sentence(cell: MatrixCell) -> str:
    change = metric.signed(cell.change)
    spread = f" ({metric.signed(cell.interval.lo)} to {metric.signed(cell.interval.hi)})" if cell.interval else ""
    note = f": {cell.note}" if cell.note else ""
    return f"{cell.role.capitalize()} {cell.metric} on {cell.slice}: {cell.status}, {change}{spread}{note}."


def decide(verdict: Verdict, proposal: Proposal | None) -> Findings:
    """The verdict as findings: what decided, where it holds, where it does not, and what remains at risk."""
    findings = [Finding(text=verdict.sentence, figures=tuple(f"validate.{cell}" for cell in verdict.deciding))]
    if proposal is not None:
        findings.append(Finding(text=proposal.rollback, owner=proposal.move.owner))
    findings += [Finding(text=f"Holds for {scope}.") for scope in verdict.scope]
    findings += [Finding(text=f"Not covered: {condition}.") for condition in verdict.not_covered]
    findings += [Finding(text=risk) for risk in verdict.risks]
    return Findings(stage="decide", headline=verdict.sentence, findings=tuple(findings))
