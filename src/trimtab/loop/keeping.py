"""Keeping replays: the rows of one that goes on, the trace of one that ended, and what is left of one that was cut off.

Rows reach the telemetry log as they come, so they survive the death of this process and of the machine that makes the
run. They become an incomplete trace of their own before the run starts again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from trimtab.domain.envelope import Envelope
from trimtab.domain.ports import Controller
from trimtab.domain.trace import RunInfo, Trace
from trimtab.loop.context import Context
from trimtab.loop.trials.trial import Replay, Replayed, Result, Trial
from trimtab.loop.watching import Watched
from trimtab.mapping.route import Router
from trimtab.serving.record import Recorder
from trimtab.store.codec import digest
from trimtab.store.packet import mark_done
from trimtab.store.telemetry import TelemetrySink, recover

Inputs = Callable[[str, str], dict[str, str]]
"""(run id, digest of the envelope that made it) -> what the run depends on."""


class Interrupted(KeyboardInterrupt):
    """A replay was stopped by Ctrl-C; its trace so far is in the packet."""


class Keeper(Watched):
    """Puts what replays give into the packet; ``traces`` holds those that are complete, by run id.

    ``controllers``: who may change the plan of each run.
    """

    def __init__(
        self, ctx: Context, inputs: Inputs, controllers: Mapping[str, Controller | None], expected: int = 1
    ) -> None:
        super().__init__(ctx.progress, expected)
        self._ctx, self._inputs, self._controllers = ctx, inputs, controllers
        self._logs: dict[str, TelemetrySink] = {}
        self._began: dict[str, RunInfo] = {}
        self.traces: dict[str, Trace] = {}

    def began(self, trial: Trial, envelope: Envelope) -> None:
        assert isinstance(trial, Replay)
        run = trial.run
        if run.id in self._logs:  # the machine that made it was lost
            self._logs.pop(run.id).close()
        _salvage(self._ctx, trial, self._began.get(run.id, run))
        self._began[run.id] = run
        self._logs[run.id] = TelemetrySink(self._ctx.packet.telemetry_path(run.id))

    def rows(self, trial: Trial, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        assert isinstance(trial, Replay)
        self._logs[trial.run.id].extend([(table, *row) for row in rows])

    def made(self, trial: Trial, result: Result, envelope: Envelope) -> None:
        assert isinstance(result, Replayed)
        ctx, trace = self._ctx, result.trace
        run, log = trace.run.id, ctx.packet.telemetry_path(trace.run.id)
        self._logs.pop(run).close()
        if not trace.run.complete:
            ctx.packet.write_trace(_renamed(trace, _cut_id(ctx, run)))
            log.unlink(missing_ok=True)
            raise Interrupted
        files = (*ctx.packet.write_trace(trace), *ctx.machine_files(envelope))
        mark_done(ctx.packet.folder, f"run-{run}", self._inputs(run, digest(envelope)), files)
        log.unlink(missing_ok=True)
        ctx.keep(files)
        self.traces[run] = trace

    def controller(self, trial: Trial) -> Controller | None:
        assert isinstance(trial, Replay)
        return self._controllers[trial.run.id]

    def close(self) -> None:
        """Make the logs of what did not end durable."""
        for log in self._logs.values():
            log.close()


def _salvage(ctx: Context, trial: Replay, run: RunInfo) -> None:
    """Turn the log of a run that was cut off into an incomplete trace: the same recorder makes it, from rows instead of
    events. ``run`` is what was cut off."""
    path = ctx.packet.telemetry_path(run.id)
    if not path.is_file():
        return
    router = Router(trial.plan.compile)
    cut = msgspec.structs.replace(run, id=_cut_id(ctx, run.id))
    recorder = Recorder(cut, trial.workload, tuple(router.entries), run.cores)
    rows = recover(path).rows
    for table, *row in rows:
        recorder.restore(table, tuple(row))
    if rows:
        ctx.packet.write_trace(recorder.trace(complete=False))
    path.unlink()


def _renamed(trace: Trace, run_id: str) -> Trace:
    return msgspec.structs.replace(trace, run=msgspec.structs.replace(trace.run, id=run_id))


def _cut_id(ctx: Context, run_id: str) -> str:
    number = 1
    while ctx.packet.trace_folder(f"{run_id}.cut{number}").exists():
        number += 1
    return f"{run_id}.cut{number}"
