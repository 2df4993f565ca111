"""Runs against a server that is not ours: what its own words add to ours, and what stays unknown.

Theory. From outside, a request is one number: its latency. The server's counters give means over the run (waiting and
computing a request, requests an execution); a mean is no part of a tail, so they stand beside it. Only the server's own
trace says of each request how long it waited and computed; joined by request id it splits the latency,

    latency = slip + queue + compute + remainder

where the remainder (network, parsing, copying, this client) is what neither side recorded. No clock is compared, only
durations. Requests that began and ended to compute at the same ns ran together. The classes are then named as for an
imported table: from the recorded stages, not from a re-run.

Limits. Counters are the model's, whoever asked: requests of others are in them, and are told by their number. A server
traces in its own words: what a batcher holds back is queue, and is told from waiting for an instance by whether an
instance was free, which needs their number (the model's configuration says it).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.domain.comparison import Gate
from trimtab.domain.figure import Figure, Finding, Findings, Series
from trimtab.domain.imported import STAGE_COLUMNS, Imported, ReadReport
from trimtab.domain.remote import Inside, Server
from trimtab.domain.study import Sla
from trimtab.domain.trace import Table, Trace, empty
from trimtab.evidence.figures import NS_MS, Desk, percent, series
from trimtab.evidence.imported.diagnose import Reading, diagnose

STAGES_SCHEMA = {**STAGE_COLUMNS, "batch": "int64"}
"""What a server's trace adds to the requests of one run, row by row."""
UNSPLIT = "how long each request waited and computed inside the server (its own trace: workload.target_trace)"
ABSENT = {
    "compile": "Nothing was compiled here: the server runs what it was given.",
    "score": "No score: both accuracies hold a run against its compile profile, and the server's is not known here.",
    "retune": "No change was tried: what the server runs is not ours to change. Whoever owns it changes it; then drive "
    "it again.",
    "validate": "No matrix: one server was driven, and there is nothing to hold it against.",
    "decide": "No verdict on one server alone. Drive it again after a change, into another folder, and hold the two "
    "packets against each other: trimtab compare OLD NEW --gate.",
}
"""Why a stage has nothing to do where a server is driven."""
HELD_AGAINST = "No release of ours: which of the two serves is for their owner to decide, by what validate found."


def absent(stage: str) -> Findings:
    """The findings of a stage that has nothing to do."""
    return Findings(stage=stage, headline=ABSENT[stage])


def stages(queue: NDArray[np.int64], compute: NDArray[np.int64], batch: NDArray[np.int64]) -> Table:
    """The stages that a server's trace tells, ns, a row a request; NEVER where it does not."""
    told = {"queue": queue, "compute": compute, "batch": batch}
    return Table(empty(STAGES_SCHEMA, len(queue)).columns | told)


def introduced(found: Findings, servers: Sequence[tuple[str, Server]]) -> Findings:
    """The plan stage's findings, with what each server, named by its target, says of itself."""
    rows = [(target, what, says) for target, server in servers for what, says in _facts(server).items() if says]
    columns = dict(zip(("target", "what", "says"), map(list, zip(*rows, strict=True)), strict=True))
    said = tuple(
        Finding(text=f"This study drives {target} ({_facts(server)['server']}).", owner="runtime")
        for target, server in servers
    )
    return msgspec.structs.replace(
        found,
        headline=f"Driven against {' and '.join(target for target, _ in servers)}. {found.headline}",
        findings=(*said, *found.findings),
        series=(*found.series, series("plan.server", columns, {}, "server", scope="these servers")),
    )


def _facts(server: Server) -> dict[str, str]:
    return {
        "server": f"{server.name} {server.version}".strip(),
        "platform": server.platform,
        "instances": _count(server.instances),
        "largest batch": _count(server.max_batch),
        "batcher waits": "" if server.hold_ms is None else f"up to {server.hold_ms:g} ms",
        "extensions": ", ".join(server.extensions),
    }


def _count(number: int | None) -> str:
    return "" if number is None else str(number)


def driven(found: Findings, targets: Sequence[str], told: Sequence[Inside]) -> Findings:
    """The replay stage's findings, with what the servers counted over each run."""
    desk = Desk("replay", "this run", "server")
    for inside in told:
        _counted(desk, inside)
    said = [Finding(text=text, owner="observability") for text in dict.fromkeys(_unknown(told))]
    return msgspec.structs.replace(
        found,
        headline=f"Driven against {' and '.join(targets)}. {found.headline}",
        findings=(*found.findings, *said),
        figures=(*found.figures, *desk.figures),
        series=(*found.series, _table(told, desk.figures)),
    )


def _counted(desk: Desk, inside: Inside) -> None:
    """Means over one run, by the server's own counters."""
    counted = inside.counters
    if counted is None:
        return
    name, artifact = f"{inside.run}.server", f"server/{inside.run}.json"
    given = (
        ("queue", counted.queue_ns * NS_MS, counted.queued, "ms", "mean wait inside the server: no part of a tail"),
        ("compute", counted.compute_ns * NS_MS, counted.computed, "ms", "mean, copying in and out included"),
        ("batch", float(counted.requests), counted.executions, "requests", "mean of the executions"),
    )
    for what, total, count, unit, note in given:
        value = total / count if count else None
        desk.add(
            f"{name}.{what}", value, unit, count, note=note if count else "the server counted none", artifact=artifact
        )
    desk.add(f"{name}.failed", float(counted.failed), "requests", counted.requests, artifact=artifact)


def _table(told: Sequence[Inside], figures: Sequence[Figure]) -> Series:
    """One row a run: what the server counted, and how many of our requests its trace holds."""
    known = {figure.id: figure.value for figure in figures}
    columns: dict[str, list[object]] = {"run": [inside.run for inside in told]}
    columns["requests"] = [None if inside.counters is None else inside.counters.requests for inside in told]
    for what in ("queue", "compute", "batch", "failed"):
        columns[what] = [known.get(f"replay.{inside.run}.server.{what}") for inside in told]
    columns["traced"] = [inside.traced for inside in told]
    return series("replay.server", columns, {"queue": "ms", "compute": "ms"}, "server")


def _unknown(told: Sequence[Inside]) -> list[str]:
    """What the server does not tell, in sentences."""
    said = [f"No counters of the server: {inside.why}." for inside in told if inside.counters is None]
    if all(not inside.traced for inside in told):
        said.append("The queue and the batches inside the server are not known: its own trace was not joined.")
    return [*said, *(f"{note}." for inside in told for note in inside.notes)]


def foreign(inside: Inside, sent: int) -> str:
    """That others used the model during a run of ``sent`` requests; empty where nothing says so."""
    if inside.counters is None:
        return ""
    counted = inside.counters.requests + inside.counters.failed
    if counted <= sent:
        return ""
    return f"Run {inside.run}: the server counted {counted} requests of this model and {sent} were ours"


def compared(gate: Gate) -> Findings:
    """The validate stage's findings where two servers were driven in turn: is the second worse than the first?"""
    named = ", ".join(row.metric for row in gate.rows if row.status == gate.outcome)
    headline = {
        "pass": f"{gate.new} is no worse than {gate.old} by more than is forgiven.",
        "fail": f"{gate.new} is worse than {gate.old} by more than is forgiven: {named}.",
        "inconclusive": f"Between {gate.old} and {gate.new} nothing is decided{f': {named}' if named else ''}.",
    }[gate.outcome]
    said = (*(f"Not comparable: {text}." for text in gate.forbids), gate.how)
    figures = tuple(
        Figure(
            id=f"validate.{row.metric}.change", value=row.change, unit="change", samples=0, scope=row.slice,
            artifact="traces", interval=row.interval, note=f"{row.status} {row.note}".strip(),
        )
        for row in gate.rows
    )  # fmt: skip
    keys = ("metric", "role", "old", "new", "change", "margin", "status", "note")
    columns = {key: [getattr(row, key) for row in gate.rows] for key in keys}
    table = (series("validate.gate", columns, {"change": "share", "margin": "share"}, "traces"),) if gate.rows else ()
    findings = tuple(Finding(text=text, owner="observability") for text in said if text)
    return Findings(stage="validate", headline=headline, findings=findings, figures=figures, series=table)


def diagnosed(trace: Trace, inside: Inside, told: Table | None, sla: Sla, seed: int) -> Reading:
    """What explains the tail of one run: by the server's own stages where they are ``told``, else by what stands
    outside."""
    numbers = {"workers": inside.server.instances, "max_batch": inside.server.max_batch}
    count = len(trace.requests)
    read = ReadReport(
        file=trace.run.id, sha256="", rows=count, used=count, columns={}, format="requests to a server",
        unit="requests",
    )  # fmt: skip
    known = {name: float(value) for name, value in numbers.items() if value is not None}
    return diagnose(_imported(trace, told), read, sla=sla, numbers=known, seed=seed)


def _imported(trace: Trace, told: Table | None) -> Imported:
    """The run as an imported table: its requests, and the stages that the server told."""
    columns = empty(STAGES_SCHEMA, len(trace.requests)).columns if told is None else dict(told.columns)
    batch = columns.pop("batch")
    requests = Table(trace.requests.columns | {"batch": batch})
    return Imported(trace=msgspec.structs.replace(trace, requests=requests), stages=Table(columns))


def explained(reading: Reading, target: str, inside: Inside, count: int) -> Findings:
    """The attribute stage's findings: the classes, the tail's stages, and what was not told."""
    tail = reading.tail
    traced = inside.traced or 0
    lacks = [] if traced else [f"Missing: {UNSPLIT}."]
    if 0 < traced < count:
        lacks.append(f"The server's trace holds {percent(traced / count)} of the requests; the rest is not split.")
    if inside.server.instances is None:
        lacks.append("Missing: how many instances the server has (its model configuration).")
    said = (*tail.findings, *(Finding(text=text, owner="observability") for text in lacks))
    notes = (Finding(text=f"The classes of {target}: {'; '.join(reading.notes)}."),)
    return Findings(
        stage="attribute", headline=tail.headline, findings=(*said, *notes), figures=tail.figures, series=tail.series
    )
