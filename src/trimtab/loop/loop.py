"""The resumable loop: run the stages in order, skip what is finished on the same inputs, lose nothing when killed.

A stage is finished when its checkpoint says so: it was made from the same study, budget, versions and earlier results,
and every file that it wrote is still there, unaltered. Stages are chained by the digest of the checkpoint before them.
"""

from __future__ import annotations

import fcntl
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trimtab import __version__
from trimtab.domain.noun import Noun
from trimtab.domain.packet import STAGES as ORDER
from trimtab.domain.packet import Record
from trimtab.domain.ports import Progress
from trimtab.errors import MachineError, UsageError
from trimtab.loop.context import Context
from trimtab.loop.stages import STAGES, rewrite_report
from trimtab.store.checkpoint import PROGRESS
from trimtab.store.codec import digest
from trimtab.store.packet import Packet, file_digest, is_done, load_record, mark_done
from trimtab.store.study import load_study, seconds

__all__ = ["Outcome", "rewrite_report", "run_until"]


class Outcome(Noun, frozen=True, kw_only=True):
    """What a run of the loop did: the packet, which stages ran now and which were there already."""

    folder: str
    ran: tuple[str, ...]
    reused: tuple[str, ...]
    record: Record


def run_until(
    study_path: Path,
    stage: str,
    *,
    out: Path | None,
    budget: str | None,
    fresh: bool,
    progress: Progress,
) -> Outcome:
    """Run every stage up to ``stage`` that is not finished. KeyboardInterrupt leaves everything measured in place."""
    study = load_study(study_path)
    budget_s = seconds(budget or study.budget.time, "--budget" if budget else "budget.time")
    folder = out or Path("out") / study.name
    _refuse_foreign(folder, study_path)
    with _locked(folder):
        if fresh:
            _forget_all(folder)
        ctx = Context(
            study=study,
            folder=study_path.parent,
            packet=Packet(folder),
            budget_s=budget_s,
            progress=progress,
        )
        ctx.packet.write_study(study_path.read_bytes(), study)
        ran, reused = _run(ctx, ORDER[: ORDER.index(stage) + 1])
        return Outcome(folder=str(folder), ran=tuple(ran), reused=tuple(reused), record=load_record(folder))


def _run(ctx: Context, names: tuple[str, ...]) -> tuple[list[str], list[str]]:
    ran: list[str] = []
    reused: list[str] = []
    before = digest((ctx.study, ctx.budget_s, __version__, ctx.versions, platform.uname(), _input_files(ctx)))
    for name in names:
        inputs = {"before": before}
        if is_done(ctx.packet.folder, name, inputs):
            reused.append(name)
        else:
            ctx.progress.step(name, 0, None, "")
            _run_stage(ctx, name, inputs)
            ran.append(name)
        ctx.progress.step(name, 1, 1, "done" if name in ran else "done before")
        before = file_digest(ctx.packet.folder / PROGRESS / f"{name}.json")
    return ran, reused


def _run_stage(ctx: Context, name: str, inputs: dict[str, str]) -> None:
    ctx.written.clear()
    found = STAGES[name](ctx)
    if found is not None:
        ctx.keep(ctx.packet.write_findings(found))
    mark_done(ctx.packet.folder, name, inputs, dict.fromkeys(ctx.written))


def _input_files(ctx: Context) -> dict[str, str]:
    """Digests of everything that a study reads beside itself."""
    spec = ctx.study.workload
    names = [spec.arrivals.file, spec.shapes.file, spec.payload.bank]
    paths = {name: ctx.folder / name for name in names if name}
    return {name: file_digest(path) for name, path in paths.items() if path.is_file()} | {"model": ctx.model.sha256}


def _refuse_foreign(folder: Path, study_path: Path) -> None:
    """A packet has a folder of its own: what is there and is not a packet stays untouched."""
    if folder.is_dir() and folder.resolve() == study_path.resolve().parent:
        raise UsageError("the study lies in this folder", where=str(folder), fix="give a folder of its own with --out")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / PROGRESS).is_dir():
        raise UsageError(
            "this folder holds other files and no packet", where=str(folder), fix="give an empty folder with --out"
        )


def _forget_all(folder: Path) -> None:
    """Drop every checkpoint; the lock, what was set aside and the telemetry of killed runs stay."""
    for path in (folder / PROGRESS).glob("*.json"):
        path.unlink()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One loop at a time in a folder: two would measure each other."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / PROGRESS / "lock"
    path.parent.mkdir(exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise MachineError(
                "another trimtab is running in this folder", where=str(folder), fix="wait for it, or give another --out"
            ) from None
        yield
