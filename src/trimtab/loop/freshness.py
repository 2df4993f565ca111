"""Freshness: what each stage depends on, and what is set aside when that has changed.

Owners and sign-off policy are no part of what was measured: naming a key after a run of hours makes only the decision
and the packet anew.
"""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from trimtab import __version__
from trimtab.domain.packet import STAGES
from trimtab.domain.study import SignOff
from trimtab.errors import PacketError
from trimtab.loop.answers import quality_function
from trimtab.loop.context import Context
from trimtab.store.codec import digest
from trimtab.store.manifest import MANIFESTS, move_aside
from trimtab.store.packet import file_digest, is_done, outputs_of
from trimtab.store.sign import FOLDER as SIGNATURES

_ALWAYS = ("proposal.json", "verdict.json", "report.html", *MANIFESTS.values())
"""Made by the last stages, checkpoint or not."""


def first(ctx: Context) -> str:
    """Digest of what every stage depends on."""
    measured = replace(ctx.study, owners={}, signoff=SignOff())
    shipped = () if ctx.shipped is None else (ctx.shipped.manifest,)
    machine = (ctx.versions, ctx.executor.identity())
    return digest((measured, ctx.budget_s, __version__, *machine, input_files(ctx), *shipped))


def inputs_of(ctx: Context, stage: str, before: str) -> dict[str, str]:
    """What ``stage`` is made from; ``before`` is the digest of the checkpoint before it."""
    own = {
        "decide": lambda: {"owners": digest((ctx.study.owners, ctx.study.signoff))},
        "packet": lambda: {"study": file_digest(ctx.packet.path("study.toml"))},
    }
    return {"before": before} | (own[stage]() if stage in own else {})


def input_files(ctx: Context) -> dict[str, str]:
    """Digests of everything that a study reads beside itself."""
    spec = ctx.study.workload
    names = [spec.arrivals.file, spec.shapes.file, spec.payload.bank]
    for condition in ctx.study.conditions:
        names += [source.file for source in (condition.arrivals, condition.shapes) if source is not None]
    paths = {name: ctx.folder / name for name in names if name}
    function = quality_function(ctx.study, ctx.folder)
    if function is not None:
        paths["function"] = function
    networks = {"model": ctx.model.sha256, "torch": ctx.model.torch_sha256}
    return {name: file_digest(path) for name, path in paths.items() if path.is_file()} | networks


def withdraw(folder: Path, stage: str) -> list[str]:
    """Set aside what ``stage`` and those after it found: it was made from something else. Replays and profiles stay:
    each has a checkpoint of its own. Returns what was moved."""
    at = STAGES.index(stage)
    kept = _made(folder, STAGES[:at])
    stale = _made(folder, STAGES[at:]) | set(_ALWAYS) | {f"{name}.json" for name in STAGES[at:]}
    moved = sorted(path for path in stale - kept if "/" not in path and (folder / path).is_file())
    if MANIFESTS["evidence"] in moved:
        moved += sorted(f"{SIGNATURES}/{path.name}" for path in folder.glob(f"{SIGNATURES}/*.json"))
    move_aside(folder, moved)
    return moved


def withdraw_stale(ctx: Context, done: tuple[str, ...], before: str) -> list[str]:
    """The same for the first stage after ``done`` that does not follow from them. The report is left: it is a view, and
    newer signatures change it."""
    folder = ctx.packet.folder
    for stage in STAGES[len(done) : -1]:
        if not is_done(folder, stage, inputs_of(ctx, stage, before)):
            return withdraw(folder, stage)
        before = file_digest(folder / ".progress" / f"{stage}.json")
    return []


def _made(folder: Path, stages: tuple[str, ...]) -> set[str]:
    """What the checkpoints of ``stages`` list; one that cannot be read lists nothing."""
    found: set[str] = set()
    for stage in stages:
        try:
            found |= outputs_of(folder, [stage])
        except PacketError:
            continue
    return found
