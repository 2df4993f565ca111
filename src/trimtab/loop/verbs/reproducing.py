"""Reproducing: a packet's baseline and proposal once more, on its arrivals, from its seeds, with its profiles.

What the packet brings along is data. The network itself is not in it: it is found as the study says, and must be the
one whose digest was recorded. Code that a study names (a torch network made by a function, an exported program, which
torch unpickles) runs only if the caller trusts it.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median

from trimtab import __version__
from trimtab.domain.comparison import Reproduction
from trimtab.domain.packet import Record
from trimtab.domain.plan import Plan
from trimtab.domain.ports import Progress
from trimtab.domain.study import Study
from trimtab.domain.trace import Trace
from trimtab.errors import PacketError, UsageError
from trimtab.loop import runs
from trimtab.loop.context import Context
from trimtab.loop.folder import locked, refuse_foreign
from trimtab.loop.machine import backend_versions
from trimtab.loop.recorded import same_network
from trimtab.loop.schedule import START_S
from trimtab.loop.verbs.comparing import replays_of, sealed_record
from trimtab.retuning import moves
from trimtab.retuning.comparable import differs, forbids, machine_differs, plan_forbids, versions_differ
from trimtab.retuning.reproduce import overall, repeat, sentence
from trimtab.retuning.size import utilisation
from trimtab.runtime import probe
from trimtab.store.codec import write_json
from trimtab.store.packet import Packet, build_manifest, write_bytes
from trimtab.store.study import load_study, seconds

RESULT = "reproduction.json"
LABEL = "again"
Arms = dict[str, tuple[Trace, ...]]


def reproduce(
    packet: Path,
    *,
    inputs: Path,
    out: Path | None,
    budget: str | None,
    trust: bool,
    progress: Progress,
) -> Reproduction:
    """Replay baseline and proposal of ``packet`` again and hold them against its replays.

    ``inputs`` is the folder that model and payloads are named from: the study's. The new runs go to ``out``.
    PacketError if the packet is not as it was sealed, UsageError if code would have to be trusted and is not.
    """
    record = _repeatable(packet)
    plans = _plans(record)
    imports = imports_of(record.study, plans)
    _require_trust(imports, trust)
    then = {plan.id: replays_of(packet, record, plan.id) for plan in plans}
    stop, also = _conditions(packet, record, plans, then)
    if stop:
        told = "This machine, or what runs on it, is not comparable with the packet's: nothing was run."
        return Reproduction(outcome="not comparable", sentence=told, forbids=stop, differs=also, imports=imports)
    folder = out or Path("out") / f"{record.study.name}-again"
    _require_open(folder, packet)
    with locked(folder):
        ctx = _prepared(packet, record, folder, inputs, budget, progress)
        same_network(packet, ctx.model)
        part = next(iter(then.values()))[0].run.slice
        now = runs.in_turn(ctx, plans, ctx.slice(part), _times(ctx, then, budget), label=LABEL, stage="reproduce")
        return _judged(record, folder, then, {name: tuple(traces) for name, traces in now.items()}, also, imports)


def _repeatable(packet: Path) -> Record:
    """The packet, sealed and intact, of a study that this machine can run."""
    record = sealed_record(packet)
    if load_study(packet / "study.toml") != record.study:
        raise PacketError(
            "study.json is not what study.toml says", where=str(packet), fix="do not run what this packet brings along"
        )
    if record.study.workload.target:
        raise UsageError(
            "this packet drove a server, which is not in it",
            where=record.study.workload.target,
            fix="drive it again, and hold the packets against each other: trimtab compare OLD NEW --gate",
        )
    return record


def _require_trust(imports: tuple[str, ...], trust: bool) -> None:
    if imports and not trust:
        raise UsageError(
            f"reproducing this packet would run code that its study names: {', '.join(imports)}",
            where="model.torch",
            fix="read that code; if you trust it, add --trust",
        )


def _require_open(folder: Path, packet: Path) -> None:
    """A folder of nobody else's, whose repetition is not finished."""
    refuse_foreign(folder, packet)
    if (folder / RESULT).exists():
        raise UsageError(
            "this repetition is finished",
            where=f"{folder / RESULT}",
            fix="give another folder with --out to repeat it anew",
        )


def imports_of(study: Study, plans: tuple[Plan, ...]) -> tuple[str, ...]:
    """Code that replaying ``plans`` would run and that the study names: its torch network, if a plan or the reference
    that knows its answers runs on torch."""
    runtimes = (*(plan.compile.backend for plan in plans), study.quality.reference)
    torch = any(name.startswith("torch") for name in runtimes)
    return (study.model.torch,) if torch and study.model.torch else ()


def _plans(record: Record) -> tuple[Plan, ...]:
    """The baseline, and the proposal where something changes."""
    proposal = record.proposal
    if proposal is None or proposal.move.kind == moves.NO_CHANGE:
        return (record.study.baseline,)
    return (record.study.baseline, proposal.move.plan)


def _conditions(
    packet: Path, record: Record, plans: tuple[Plan, ...], then: Arms
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What forbids a repetition here, and what else is not the same."""
    if record.envelope is None or not all(then.values()):
        raise PacketError(
            "this packet has no complete replays to compare with",
            where=str(packet),
            fix="give a packet whose study ran to its end",
        )
    now = probe.probe(versions={})
    versions = backend_versions(plan.compile.backend for plan in plans)
    recorded = next(iter(then.values()))[0].run.versions
    stored = {plan.id: plan for plan in record.plans}
    stop = [*forbids(record.envelope, now)]
    stop += [text for plan in plans for text in plan_forbids(stored.get(plan.id, plan), plan)]
    stop += versions_differ({name: recorded.get(name, "") for name in versions}, versions)
    return tuple(stop), differs(record.envelope, now)


def _prepared(
    packet: Path, record: Record, folder: Path, inputs: Path, budget: str | None, progress: Progress
) -> Context:
    """A folder with what the packet knew before it replayed anything, and this machine's own envelope."""
    names = ["study.toml", "study.json", "workload.parquet"]
    names += [f"{kind}/{path.name}" for kind in ("plans", "profiles") for path in (packet / kind).glob("*.json")]
    for name in names:
        write_bytes(folder / name, (packet / name).read_bytes())
    study = record.study
    ctx = Context(
        study=study,
        folder=inputs,
        packet=Packet(folder),
        budget_s=seconds(budget or study.budget.time, "--budget" if budget else "budget.time"),
        progress=progress,
    )
    envelope_file = folder / "envelope.json"
    if not envelope_file.is_file():  # a repetition that goes on keeps its machine: its finished runs belong to it
        envelope = probe.probe(study.envelope.cores, versions=ctx.versions)
        ctx.packet.write_envelope(envelope, probe.check(study.envelope, envelope))
    return ctx


def _times(ctx: Context, then: Arms, budget: str | None) -> int:
    """As many replays as then; with a budget as many as fit, one at least."""
    most = max(len(traces) for traces in then.values())
    if budget is None:
        return most
    span = next(iter(then.values()))[0].requests["scheduled"][-1] / 1e9
    return max(1, min(most, int(ctx.budget_s / (len(then) * (float(span) + START_S)))))


def _judged(
    record: Record, folder: Path, then: Arms, now: Arms, also: tuple[str, ...], imports: tuple[str, ...]
) -> Reproduction:
    study = record.study
    arms = [{name: [trace.latency for trace in traces] for name, traces in each.items()} for each in (then, now)]

    def baseline(runs: Arms) -> tuple[Trace, ...]:
        return runs[study.baseline.id]

    busy = {name: median(utilisation(trace, trace.run.workers) for trace in traces) for name, traces in then.items()}
    rows = repeat(arms[0], arms[1], study.sla, study.seeds.bootstrap, busy)
    found = Reproduction(
        outcome=overall(rows),
        sentence=sentence(rows),
        rows=rows,
        differs=(*also, *machine_differs(baseline(then), baseline(now))),
        imports=imports,
        folder=str(folder),
    )
    write_json(folder / RESULT, found)
    build_manifest(folder, "evidence", __version__)
    return found
