"""The stages of a study that drives a server which is not ours (``workload.target``): the smallest loop that is honest.

workload, plan, replay and attribute do their work from outside; compile, score, retune, validate and decide have
nothing to do, and say why. The packet is the same kind of packet, so that two of them can stand at a gate.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from trimtab.domain.figure import Finding, Findings
from trimtab.domain.plan import THEIRS
from trimtab.errors import UsageError
from trimtab.evidence import latency, traffic
from trimtab.evidence import remote as outside
from trimtab.loop import envelope as envelope_words
from trimtab.loop import stages
from trimtab.loop.context import Context
from trimtab.loop.driving import AGAINST, Driven, arms_of, replays
from trimtab.loop.schedule import FIXED_S, Schedule, cut
from trimtab.loop.trials.local import Local
from trimtab.readers.traffic import read_workload
from trimtab.retuning.compare import Side, compare
from trimtab.runtime import kserve, probe
from trimtab.runtime.kserve import Connection
from trimtab.store.codec import write_json

PAUSE_S = 2.0
"""Between two replays, beside their traffic: connecting, and what the server needs to write its trace, s."""


def workload(ctx: Context) -> Findings:
    """R1: the traffic; the whole budget goes to one slice, for nothing is held out without a change to judge."""
    whole = read_workload(ctx.study, ctx.folder)
    taken = msgspec.structs.replace(whole, slices=cut(whole, _schedule(ctx)))
    ctx.keep(ctx.packet.write_workload(taken))
    return traffic.describe(taken)


def plan(ctx: Context) -> Findings:
    """R4, R5: the machine that sends, and what the server says of itself. Stops where it does not take what the study
    sends."""
    if not isinstance(ctx.executor, Local):
        raise UsageError("a server is driven from this machine alone", where="--executor", fix="leave it out")
    servers = []
    for arm in arms_of(ctx):
        with Connection(arm.target) as connection:
            servers.append((str(arm.target), connection.server()))
            connection.check(ctx.study.model)
    envelope = probe.probe(ctx.study.envelope.cores, versions=kserve.versions())
    checks = probe.check(ctx.study.envelope, envelope)
    ctx.keep(ctx.packet.write_envelope(envelope, checks))
    return outside.introduced(envelope_words.findings(envelope, checks), servers)


def replay(ctx: Context) -> Findings:
    """R9: the traffic against the server, several times; its counters over each run."""
    found = [one for runs in replays(ctx).values() for one in runs]
    said = latency.findings([one.trace for one in found], ctx.study.sla)
    told = outside.driven(said, [str(arm.target) for arm in arms_of(ctx)], [one.inside for one in found])
    others = [outside.foreign(one.inside, len(one.trace.requests)) for one in found]
    more = tuple(Finding(text=f"{text}.", owner="observability") for text in others if text)
    return msgspec.structs.replace(told, findings=(*told.findings, *more))


def attribute(ctx: Context) -> Findings:
    """R10-R19: the class that explains the tail of the (first) server's typical run, as far as it tells."""
    sla, found = ctx.study.sla, replays(ctx)[THEIRS.id]
    typical = sorted(found, key=lambda one: latency.metric_value(one.trace, sla))[len(found) // 2]
    reading = outside.diagnosed(typical.trace, typical.inside, typical.stages, sla, ctx.study.seeds.bootstrap)
    ctx.keep(write_json(ctx.packet.path(stages.DIAGNOSIS), reading.diagnosis))
    return outside.explained(reading, typical.trace.run.target, typical.inside, len(typical.trace.requests))


def validate(ctx: Context) -> Findings:
    """R21: two servers on the same arrivals, driven in turn; the study's guards are held as at a gate."""
    found = replays(ctx)
    if AGAINST not in found:
        return outside.absent("validate")
    first, second = (_side(ctx, runs) for runs in found.values())
    return outside.compared(compare(first, second, ctx.study.seeds.bootstrap))


def _side(ctx: Context, runs: list[Driven]) -> Side:
    study, target = ctx.study, runs[0].trace.run.target
    return Side(
        name=target,
        sla=study.sla,
        guards=study.guards,
        dim_names=study.dim_names,
        envelope=ctx.packet.read_envelope()[0],
        plan=THEIRS,
        traces=tuple(one.trace for one in runs),
        decision="",
        target=target,
    )


def decide(ctx: Context) -> Findings:
    """R22: no verdict on a server that is not ours."""
    found = outside.absent("decide")
    return msgspec.structs.replace(found, headline=outside.HELD_AGAINST) if len(arms_of(ctx)) > 1 else found


def _absent(stage: str) -> Callable[[Context], Findings]:
    return lambda ctx: outside.absent(stage)


STAGES: dict[str, stages.Stage] = {
    **stages.STAGES,
    "workload": workload,
    "plan": plan,
    "replay": replay,
    "attribute": attribute,
    **{stage: _absent(stage) for stage in ("compile", "score", "retune")},
    "validate": validate,
    "decide": decide,
}


def _schedule(ctx: Context) -> Schedule:
    """The whole budget for the replays of one slice."""
    budget = ctx.study.budget
    each = (ctx.budget_s - FIXED_S) / (budget.replays * len(arms_of(ctx))) - PAUSE_S
    seconds = budget.replay_s if budget.replay_s is not None else max(each, 0.0)
    return Schedule(tune_s=seconds, held_out_s=seconds, replays=budget.replays, confirmed=0, confirming=0)
