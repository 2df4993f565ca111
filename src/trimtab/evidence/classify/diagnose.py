"""From one run to its Diagnosis: gates, score and facts put before :mod:`.classes`, and its words.

``met`` = the primary metric holds its bound. ``fits`` = neither mapping accuracy nor promise accuracy (without first
runs) is low; None where they are unknown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from trimtab.domain.figure import Figure, Finding, Findings, Series
from trimtab.domain.score import Diagnosis
from trimtab.domain.study import Sla
from trimtab.domain.trace import Trace
from trimtab.domain.verdict import ROLE_TITLES
from trimtab.evidence._latency_tables import table
from trimtab.evidence.classify import failures
from trimtab.evidence.classify.classes import Case, Shift, classify
from trimtab.evidence.classify.gates import gates
from trimtab.evidence.classify.symptoms import Facts, defects, suspects
from trimtab.evidence.figures import percent, series
from trimtab.evidence.latency import PERCENTILES, PRIMARY_TAILS, latencies, metric_value
from trimtab.evidence.score.interpret import PROMISE_TOLERANCE, TOLERANCE, low

ACCURACIES = {"score.mapping_accuracy": TOLERANCE, "score.promise_accuracy_warm": PROMISE_TOLERANCE}
"""What must not be low for the mapping to fit, and what counts as low."""


def diagnose(
    trace: Trace, sla: Sla, facts: Facts, figures: Mapping[str, Figure], shift: Shift | None = None
) -> Diagnosis:
    """The diagnosis of one run. ``figures`` = the score stage's, by id; ``shift`` = against a baseline, if any."""
    case = Case(
        gates=gates(trace, latencies(trace, sla), sla),
        met=sla_met(trace, sla),
        fits=fits(figures),
        suspects=suspects(facts),
        shift=shift,
        defects=defects(facts),
        failures=failures.sentence(trace),
        lost=failures.own(trace, PERCENTILES[PRIMARY_TAILS[sla.metric]]),
    )
    return classify(case)


def sla_met(trace: Trace, sla: Sla) -> bool | None:
    """Whether the primary metric holds; None without requests."""
    value = metric_value(trace, sla)
    if math.isnan(value):
        return None
    return value >= sla.goodput if sla.metric == "goodput" else value * 1e3 <= sla.bound_ms


def fits(figures: Mapping[str, Figure]) -> bool | None:
    """Whether neither accuracy is low; None where one is unknown."""
    known = [name for name in ACCURACIES if name in figures and figures[name].value is not None]
    if any(low(figures[name], ACCURACIES[name]) for name in known):
        return False
    return True if len(known) == len(ACCURACIES) else None


def findings(
    stage: str, diagnosis: Diagnosis, artifact: str, figures: tuple[Figure, ...], tables: tuple[Series, ...]
) -> Findings:
    """What a diagnosis of files alone says and what they lack, with ``figures`` and ``tables`` of them."""
    said, _ = told(diagnosis, artifact)
    lacks = tuple(Finding(text=f"Missing: {what}.") for what in diagnosis.missing)
    return Findings(stage=stage, headline=said[0].text, findings=(*said, *lacks), figures=figures, series=tables)


def told(diagnosis: Diagnosis, artifact: str) -> tuple[tuple[Finding, ...], Series]:
    """The diagnosis as sentences, what failed and then the leading class first, and as the series
    ``attribute.classes``, whose note says what failed."""
    said = [Finding(text=f"{diagnosis.failures}.", owner="runtime")] if diagnosis.failures else []
    for number, one in enumerate(diagnosis.classes):
        share = "" if one.share is None else f" ({percent(one.share)} of what removing every cause would change)"
        lead = "Class" if number == 0 else "Beside it"
        text = f"{lead}: {one.id}{share}. {'; '.join(one.evidence)}.".replace("..", ".")
        said.append(Finding(text=text, owner=one.owner))
    if diagnosis.next_measurement:
        text = f"Next measurement: {diagnosis.next_measurement}."
        said.append(Finding(text=text, owner=diagnosis.classes[0].owner))
    rows = [
        {
            "class": one.id,
            "share": one.share,
            "lo": one.interval[0] if one.interval else None,
            "hi": one.interval[1] if one.interval else None,
            "owner": ROLE_TITLES[one.owner],
            "evidence": "; ".join(one.evidence),
            "ruled_out": "; ".join(one.ruled_out),
        }
        for one in diagnosis.classes
    ]
    return tuple(said), series("attribute.classes", table(rows), {"share": "share"}, artifact, note=diagnosis.failures)
