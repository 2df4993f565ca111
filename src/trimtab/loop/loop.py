"""The resumable loop: run the stages in order, skip what is finished on the same inputs, lose nothing when killed.

A stage is finished when its checkpoint says so: it was made from the same study, budget, versions and earlier results,
and every file that it wrote is still there, unaltered. Stages are chained by the digest of the checkpoint before them.
What a stage that is not finished any more had found is set aside before it runs again: nothing shows an old verdict
beside a new study.
"""

from __future__ import annotations

from pathlib import Path

from trimtab.domain.noun import Noun
from trimtab.domain.packet import STAGES as ORDER
from trimtab.domain.packet import Record
from trimtab.domain.ports import Progress
from trimtab.domain.study import Study
from trimtab.loop import freshness, remote
from trimtab.loop.context import Context
from trimtab.loop.folder import locked, refuse_foreign
from trimtab.loop.recorded import same_network
from trimtab.loop.running import load
from trimtab.loop.stages import STAGES
from trimtab.loop.trials.executor import LOCAL, chosen
from trimtab.loop.verbs.reporting import checked_record
from trimtab.store.checkpoint import PROGRESS
from trimtab.store.packet import Packet, file_digest, is_done, mark_done
from trimtab.store.study import load_study, seconds

__all__ = ["Outcome", "planned_s", "run_until"]


class Outcome(Noun, frozen=True, kw_only=True):
    """What a run of the loop did: the packet, which stages ran now and which were there already. ``set_aside`` lists
    what an earlier study had found and no longer holds."""

    folder: str
    ran: tuple[str, ...]
    reused: tuple[str, ...]
    record: Record
    set_aside: tuple[str, ...] = ()


def run_until(
    study_path: Path,
    stage: str,
    *,
    out: Path | None,
    budget: str | None,
    running: Path | None = None,
    fresh: bool,
    executor: str = LOCAL,
    progress: Progress,
) -> Outcome:
    """Run every stage up to ``stage`` that is not finished. KeyboardInterrupt leaves everything measured in place.

    ``running`` = the packet that shipped a change of this study, which runs now: that change is judged, none is sought.
    ``executor`` = who makes the trials: ``local``, ``ray``, or ``ray:`` and the address of a cluster.
    """
    study = load_study(study_path)
    budget_s = planned_s(study, budget)
    folder = out or Path("out") / (study.name if running is None else f"{study.name}-running")
    refuse_foreign(folder, study_path.resolve().parent)
    shipped = None if running is None else load(running, study, folder)
    with locked(folder):
        if fresh:
            freshness.withdraw(folder, ORDER[0])
            _forget_all(folder)
        packet = Packet(folder)
        with chosen(executor, study, packet.read_machines, progress) as maker:
            ctx = Context(
                study=study,
                folder=study_path.parent,
                packet=packet,
                budget_s=budget_s,
                progress=progress,
                executor=maker,
                shipped=shipped,
            )
            if running is not None:
                same_network(running, ctx.model)
            packet.write_study(study_path.read_bytes(), study)
            ran, reused, aside = _run(ctx, ORDER[: ORDER.index(stage) + 1])
        return Outcome(
            folder=str(folder),
            ran=tuple(ran),
            reused=tuple(reused),
            record=checked_record(folder),
            set_aside=tuple(aside),
        )


def planned_s(study: Study, budget: str | None) -> float:
    """Seconds that the whole loop should take: ``budget`` if it is given, else the study's."""
    return seconds(budget or study.budget.time, "--budget" if budget else "budget.time")


def _run(ctx: Context, names: tuple[str, ...]) -> tuple[list[str], list[str], list[str]]:
    """Stages that ran now, stages that were finished before, and files that no longer hold and were set aside."""
    ran: list[str] = []
    reused: list[str] = []
    aside: list[str] = []
    before = freshness.first(ctx)
    for name in names:
        inputs = freshness.inputs_of(ctx, name, before)
        if is_done(ctx.packet.folder, name, inputs):
            reused.append(name)
        else:
            moved = freshness.withdraw(ctx.packet.folder, name)
            aside += moved
            ctx.progress.step(name, 0, None, f"{len(moved)} older results set aside" if moved else "")
            _run_stage(ctx, name, inputs)
            ran.append(name)
        ctx.progress.step(name, 1, 1, "done" if name in ran else "done before")
        before = file_digest(ctx.packet.folder / PROGRESS / f"{name}.json")
    return ran, reused, aside + freshness.withdraw_stale(ctx, names, before)


def _run_stage(ctx: Context, name: str, inputs: dict[str, str]) -> None:
    ctx.written.clear()
    found = (remote.STAGES if ctx.study.workload.target else STAGES)[name](ctx)
    if found is not None:
        ctx.keep(ctx.packet.write_findings(found))
    mark_done(ctx.packet.folder, name, inputs, dict.fromkeys(ctx.written))


def _forget_all(folder: Path) -> None:
    """Drop every checkpoint; the lock, what was set aside and the telemetry of killed runs stay."""
    for path in (folder / PROGRESS).glob("*.json"):
        path.unlink()
