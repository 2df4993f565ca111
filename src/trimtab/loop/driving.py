"""Driving: the runs against a server that is not ours, and what the server tells of each.

A run is kept like any other: its rows as they come, its checkpoint when it has ended. Beside it stands what the server
said of itself, what it counted meanwhile and, where its own trace can be read here, the stages of each request.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from trimtab.domain.plan import THEIRS
from trimtab.domain.remote import Counters, Inside, Server, Target, parse_target
from trimtab.domain.trace import RunInfo, Table, Trace
from trimtab.domain.workload import Slice
from trimtab.errors import DataError, RunError, StudyError
from trimtab.evidence.remote import stages
from trimtab.loop.context import TUNE, Context
from trimtab.loop.keeping import Keeper
from trimtab.loop.trials.trial import Replay, Replayed
from trimtab.readers import triton_trace
from trimtab.runtime import kserve
from trimtab.runtime.kserve import Connection
from trimtab.runtime.remote import RemoteRequest, drive
from trimtab.store.codec import digest, read_json, read_table, write_json, write_table
from trimtab.store.packet import is_done

FOLDER = "server"
AGAINST = "against"
"""Stands for the plan of the second server."""
AS_FOUND = "the server as it was found"
WAIT_S = 60.0
"""How long a request may take where the study has no deadline, s."""
WRITTEN_S = 5.0
"""How long a server may take to write its trace after a run, s."""


class Driven(NamedTuple):
    """One run: its trace, what the server told of it, and the stages of its requests (None: not told)."""

    trace: Trace
    inside: Inside
    stages: Table | None


class Arm(NamedTuple):
    """One server. ``plan`` stands for what it runs, ``trace`` for the file of its own trace (empty: not asked for)."""

    plan: str
    target: Target
    trace: str = ""


def arms_of(ctx: Context) -> tuple[Arm, ...]:
    """Where the study sends its requests: to one server, or to two in turn."""
    spec = ctx.study.workload
    target, against = parse_target(spec.target), parse_target(spec.against)
    if target is None:
        raise StudyError("this study drives no server", where="workload.target", fix="name one")
    first = Arm(THEIRS.id, target, spec.target_trace)
    return (first,) if against is None else (first, Arm(AGAINST, against))


def replays(ctx: Context) -> dict[str, list[Driven]]:
    """Every run of the study by its server's plan, driven now where the packet does not hold it; two servers in turn,
    each round in the other direction (A B B A)."""
    arms, part = arms_of(ctx), ctx.slice(TUNE)
    found: dict[str, list[Driven]] = {arm.plan: [] for arm in arms}
    for number in range(1, ctx.study.budget.replays + 1):
        for arm in arms if number % 2 else reversed(arms):
            found[arm.plan].append(_run(ctx, arm, part, f"{TUNE}-{arm.plan}-{number}"))
    return found


def _run(ctx: Context, arm: Arm, part: Slice, run_id: str) -> Driven:
    """One run: from the packet if it is there, else driven now."""
    inputs, checkpoint = _inputs(ctx, arm, part), f"run-{run_id}"
    told, columns = (ctx.packet.path(FOLDER, f"{run_id}.{kind}") for kind in ("json", "parquet"))
    if not (is_done(ctx.packet.folder, checkpoint, inputs) and told.is_file()):
        keeper = Keeper(ctx, lambda run, envelope: inputs, {run_id: None})
        try:
            made = _drive(ctx, arm, part, run_id, keeper)
        finally:
            keeper.close()
        write_json(told, made.inside)
        if made.stages is not None:
            write_table(columns, made.stages)
    inside = read_json(told, Inside)
    ctx.keep([*ctx.packet.trace_files(run_id), told, *([columns] if inside.traced else [])])
    return Driven(ctx.packet.read_trace(run_id), inside, read_table(columns) if inside.traced else None)


def _inputs(ctx: Context, arm: Arm, part: Slice) -> dict[str, str]:
    return {
        "target": str(arm.target),
        "target_trace": arm.trace,
        "slice": digest(part),
        "workload": ctx.workload_sha256,
        "envelope": ctx.envelope_sha256,
        "model": ctx.fed,
    }


def _drive(ctx: Context, arm: Arm, part: Slice, run_id: str, keeper: Keeper) -> Driven:
    """Drive it now. ``keeper`` puts the trace into the packet like that of any other run."""
    load, envelope = ctx.workload.take(part), ctx.packet.read_envelope()[0]
    name = f"{run_id}@{time.time_ns()}/"
    with Connection(arm.target) as connection:
        server = connection.server()
        run = _info(ctx, arm, part, run_id, server)
        kept = Replay(
            stage="replay", note=run_id, plan=THEIRS, run=run, workload=load, profiles=(), hang_s=_wait_s(ctx)
        )
        before, files = connection.counters(), _trace_files(ctx, arm)
        keeper.began(kept, envelope)
        with _tracing(arm, connection) as notes:
            trace = drive(_request(ctx, kept, name, keeper), connection, "replay", keeper.progress(kept))
        keeper.made(kept, Replayed(trace=trace), envelope)
        counters, why = _counted(connection, before)
    inside = Inside(run=run_id, server=server, counters=counters, why=why, notes=tuple(notes))
    made = Driven(trace, inside, None)
    return _joined(made, _written(ctx, arm, files), name) if arm.trace else made


def _request(ctx: Context, kept: Replay, name: str, keeper: Keeper) -> RemoteRequest:
    return RemoteRequest(
        workload=kept.workload,
        model=ctx.study.model,
        payloads=ctx.material.payloads,
        driver_core=ctx.driver_core,
        run=kept.run,
        wait_s=kept.hang_s,
        name=name,
        sink=partial(keeper.rows, kept),
    )


def _wait_s(ctx: Context) -> float:
    deadline = ctx.study.sla.deadline_ms
    return WAIT_S if deadline is None else deadline / 1e3


def _info(ctx: Context, arm: Arm, part: Slice, run_id: str, server: Server) -> RunInfo:
    return RunInfo(
        id=run_id,
        plan=arm.plan,
        slice=part.name,
        source="driven",
        workload_sha256=ctx.workload_sha256,
        envelope_sha256=ctx.envelope_sha256,
        start_state=AS_FOUND,
        seed=0,
        workers=server.instances or 0,
        cores=(),
        driver_core=ctx.driver_core,
        versions=kserve.versions() | {server.name: server.version},
        target=str(arm.target),
    )


# --- what the server tells of a run ---------------------------------------------------------------------------------


def _counted(connection: Connection, before: Counters | None) -> tuple[Counters | None, str]:
    """What it counted since ``before``, else why that is not known. A server that is gone takes no run with it."""
    if before is None:
        return None, "it has no statistics"
    try:
        after = connection.counters()
    except RunError as error:
        return None, error.what
    grown = None if after is None else after.since(before)
    return grown, "" if grown is not None else "it was started anew during the run"


@contextlib.contextmanager
def _tracing(arm: Arm, connection: Connection) -> Iterator[list[str]]:
    """The server traces meanwhile, if the study asks for it; the list holds what went wrong when it was to stop."""
    notes: list[str] = []
    if not arm.trace:
        yield notes
        return
    connection.trace()
    try:
        yield notes
    finally:
        try:
            connection.stop_tracing()
        except RunError as error:
            notes.append(error.what)


def _trace_files(ctx: Context, arm: Arm) -> dict[Path, tuple[int, int]]:
    """The files that the server's trace consists of, each with its size and time: the one that the study names, and
    those with a number behind it."""
    if not arm.trace:
        return {}
    base = ctx.folder / arm.trace
    found = [base, *base.parent.glob(f"{base.name}.*")] if base.parent.is_dir() else []
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in found if path.is_file()}


def _written(ctx: Context, arm: Arm, before: dict[Path, tuple[int, int]]) -> list[Path]:
    """The files that the server has written since ``before``, once they grow no more."""
    deadline, last = time.monotonic() + WRITTEN_S, before
    while time.monotonic() < deadline:
        time.sleep(0.2)
        now = _trace_files(ctx, arm)
        if now != before and now == last:
            break
        last = now
    return sorted(path for path, state in last.items() if before.get(path) != state)


def _joined(made: Driven, files: list[Path], name: str) -> Driven:
    """The run with what the server's trace holds of its requests."""
    count = len(made.trace.requests)
    try:
        found = triton_trace.numbered(files, name, count)
    except DataError as error:
        return _noted(made, f"The server's trace was not joined: {error.what}")
    if not found.found:
        where = f"{len(files)} new files there" if files else "no new file there"
        return _noted(
            made, f"The server's trace holds none of this run's requests ({where}): see workload.target_trace"
        )
    inside = msgspec.structs.replace(made.inside, traced=found.found)
    return Driven(made.trace, inside, stages(found.queue, found.compute, found.batch))


def _noted(made: Driven, note: str) -> Driven:
    notes = (*made.inside.notes, note)
    return made._replace(inside=msgspec.structs.replace(made.inside, traced=0, notes=notes))
