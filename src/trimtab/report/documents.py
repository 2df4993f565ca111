"""The documents that the owners close with, drafted from the packet (R25-R27): Markdown to be edited and then signed.

Every number is a quotation (:mod:`trimtab.domain.quote`): it shows the value and its interval, and a packet that says
something else later is noticed by ``trimtab verify``. Pure: the same record gives the same drafts.
"""

from __future__ import annotations

from collections.abc import Callable

from trimtab.domain import quote
from trimtab.domain.packet import Record
from trimtab.domain.plan import Plan
from trimtab.domain.verdict import ROLE_TITLES, Role
from trimtab.report import words
from trimtab.report._pen import Pen

TITLES: dict[Role, str] = {
    "compiler": "Design rationale with trade-offs",
    "runtime": "Profile traces and bottleneck map",
    "observability": "Test report and closure memo",
}


def drafts(record: Record) -> dict[Role, str]:
    """The document of each role."""
    return {role: _draft(record, role) for role in TITLES}


def _draft(record: Record, role: Role) -> str:
    pen = Pen(record)
    study = record.study
    pen.head(f"{TITLES[role]}: {quote.escaped(study.name)}", 1)
    owner = quote.escaped(study.owners.get(role, ""))
    pen.say(
        f"Owner: {ROLE_TITLES[role]}{f', {owner}' if owner else ''}. Model: {quote.escaped(study.model.revision)}.",
        "Numbers are quoted from the packet (`trimtab verify` holds them against it); all else is the owner's to edit.",
    )
    pen.say("> {{verdict.sentence}}")
    _BODIES[role](pen)
    return pen.text()


def _compiler(pen: Pen) -> None:
    pen.head("What changes")
    pen.say("{{proposal.sentence}}")
    proposal = pen.record.proposal
    if proposal is not None:
        before, after = ("To go back to", "Running") if _runs(pen.record) else ("Today", "Proposed")
        pen.points(_plan_points(pen.record.study.baseline, before) + _plan_points(proposal.move.plan, after))
    pen.points(
        (
            "Compiling the proposal takes {{proposal.compile_s}}.",
            "What it holds beyond the baseline: {{proposal.memory_mib}}.",
        )
    )
    pen.head("Why: the mechanism")
    pen.points(("{{attribute.headline}}", "{{score.headline}}"))
    pen.points(
        (
            "Mapping accuracy: {{score.mapping_accuracy}}.",
            "Promise accuracy without first runs: {{score.promise_accuracy_warm}}.",
            *(f"Lost to {name}: {{{{score.loss.{name}}}}}." for name in ("cold", "premium", "padding", "interference")),
        )
    )
    pen.head("Trade-offs")
    pen.say("{{retune.headline}}")
    pen.table(
        "retune.candidates",
        {
            "plan": "Plan",
            "status": "Status",
            "simulated": "Simulated change",
            "measured": "Measured change",
            "compile_s": "Compile",
            "memory_mib": "Memory",
            "reason": "Reason",
        },
    )
    pen.head("Precision and quality")
    pen.table(
        "retune.quality", {"plan": "Plan", "metric": "Metric", "value": "Value", "floor": "Floor", "status": "Status"}
    )
    pen.points(f"{{{{verdict.risks[{row}]}}}}" for row in range(_risks(pen.record)))
    pen.own(
        "What the figures do not show",
        "The compiler lead: intent, alternatives that were never candidates, what to revisit.",
    )


def _runtime(pen: Pen) -> None:
    pen.head("The tail")
    pen.say("{{replay.headline}}")
    pen.points(
        (
            "p99.9 {{replay.p99.9}}, p99 {{replay.p99}}, p95 {{replay.p95}}, p50 {{replay.p50}}.",
            "Replays of one plan differ in p95 by {{replay.floor.p95}}, in p99 by {{replay.floor.p99}}.",
        )
    )
    pen.head("Bottleneck map")
    pen.say("{{attribute.headline}}")
    for name in ("p95", "p99"):
        pen.head(f"What the {name} set is made of", 3)
        pen.table(
            f"tail.{name}.waterfall",
            {
                "cause": "Cause",
                "share": "Share",
                "own": "Own",
                "inherited": "Through the queue",
                "typical": "Typical request",
                "gain": "Gain if it alone went",
            },
        )
    pen.points(
        (
            "Fairness of streams (Jain): {{fairness.streams.jain}}; of cores: {{fairness.cores.jain}}.",
            "Cores that this SLA needs at this traffic, simulated: {{retune.cores_needed}}.",
            "Load at which it stops holding, times the recorded rate: {{retune.load_limit}}.",
        )
    )
    pen.head("Profiles")
    pen.table(
        "compile.entries",
        {
            "plan": "Plan",
            "entry": "Entry",
            "time": "Compile",
            "memory": "Memory",
            "warm": "Warm",
            "first_excess": "First run on top",
        },
        where={"plan": _compared(pen.record)},
    )
    pen.head("Traces")
    pen.points(
        f"traces/{quote.escaped(run.id)}/: plan {quote.escaped(run.plan)}, {quote.escaped(run.slice)}, {run.source}"
        for run in pen.record.runs
        if run.complete
    )
    pen.head("The way back")
    pen.say("{{proposal.rollback}}")
    pen.own(
        "What the figures do not show",
        "The runtime lead: how the change is rolled out, who watches the trigger, what was seen by eye.",
    )


def _observability(pen: Pen) -> None:
    record, verdict = pen.record, pen.record.verdict
    pen.head("What was tested")
    pen.say("{{validate.headline}}")
    pen.table(
        "validate.matrix",
        {
            "slice": "Slice",
            "condition": "Condition",
            "metric": "Metric",
            "role": "Role",
            "status": "Status",
            "change": "Change",
            "floor": "A/A floor",
            "samples": "Samples",
        },
    )
    pen.table(
        "validate.watched",
        {"metric": "Trigger on", "slice": "Slice", "fired": "Fired in", "runs": "Of replays", "after": "Soonest after"},
    )
    pen.head("May the measurement be believed")
    pen.points(("{{plan.headline}}", *(f"{{{{replay.said[{row}]}}}}" for row in range(1, 8))))
    pen.table("plan.checks", {"name": "Assumption", "assumed": "Assumed", "probed": "Probed", "status": ""})
    pen.table(
        "score.simulation",
        {"metric": "Metric", "replayed": "Replayed", "simulated": "Simulated", "error": "Error", "floor": "A/A floor"},
    )
    pen.head("Where the decision holds")
    pen.points(f"{{{{verdict.scope[{row}]}}}}" for row in range(len(verdict.scope) if verdict else 0))
    pen.head("Where it does not")
    pen.points(f"{{{{verdict.not_covered[{row}]}}}}" for row in range(len(verdict.not_covered) if verdict else 0))
    pen.head("Residual risks")
    pen.points(f"{{{{verdict.risks[{row}]}}}}" for row in range(_risks(record)))
    pen.head("Rejected alternatives")
    rejected = record.proposal.rejected if record.proposal else ()
    pen.points(
        f"{quote.escaped(each.plan)}: {{{{proposal.rejected[{row}].reason}}}}" for row, each in enumerate(rejected)
    )
    pen.head("How to check it, and to repeat it")
    pen.code("trimtab verify PACKET", "trimtab reproduce PACKET")
    pen.own("Closure", "The observability engineer: what is closed by this packet, what stays open and with whom.")


def _plan_points(plan: Plan, when: str) -> list[str]:
    spec, serve = plan.compile, plan.serve
    entries = ", ".join(f"{entry.id} ({entry.kind})" for entry in spec.entries)
    return [
        f"{when}: plan {quote.escaped(plan.id)}, {quote.escaped(spec.backend)} in {spec.precision} precision, "
        f"{words.many(serve.workers, 'worker')} with {words.many(serve.threads, 'thread')}, "
        f"batches of up to {words.amount(serve.batch.max_size)}; "
        f"entries {quote.escaped(entries)}"
    ]


def _compared(record: Record) -> tuple[str, ...]:
    """The plans that the decision is about."""
    proposal = record.proposal
    return (record.study.baseline.id, *((proposal.move.plan.id,) if proposal else ()))


def _runs(record: Record) -> bool:
    """Whether the packet judges a change that runs already."""
    return record.verdict is not None and record.verdict.running is not None


def _risks(record: Record) -> int:
    return len(record.verdict.risks) if record.verdict else 0


_BODIES: dict[Role, Callable[[Pen], None]] = {
    "compiler": _compiler,
    "runtime": _runtime,
    "observability": _observability,
}
