"""The diagnosis of a summary: what percentiles and means that are added up already can prove, which is little.

- The bound (an SLA, else what the run itself was held to) is met or not, where one point stands in the file, its tool
  paced the requests by arrivals of their own, and the percentile has the samples that it needs. A file that does not
  say how many requests stand behind a percentile does not prove it.
- ``precision-fallback``: the types of layers by their time, against a declared one; arithmetic, as in a timeline.
- No other class: no mean, however large, says what the slowest requests were made of. What it shows stands beside
  ``insufficient-evidence``, and requests with their times are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from trimtab.domain.dtypes import DTYPES, dtype_name
from trimtab.domain.figure import Findings
from trimtab.domain.imported import ReadReport
from trimtab.domain.score import Diagnosis
from trimtab.domain.study import Sla
from trimtab.domain.summary import Point, Summary
from trimtab.evidence.classify.classes import Case, Suspect, classify
from trimtab.evidence.classify.diagnose import findings
from trimtab.evidence.classify.gates import Gate
from trimtab.evidence.classify.known import Facts
from trimtab.evidence.classify.symptoms import defects
from trimtab.evidence.figures import percent
from trimtab.evidence.stats.quantiles import needed_effective
from trimtab.evidence.summary import layers, points
from trimtab.evidence.summary.tell import tell
from trimtab.evidence.timeline.cover import lasting

METHOD = (
    "the tool has added these up: percentiles of several rows are never combined, and a mean says nothing of a tail"
)
ACCOUNT = ("an account of the tail",)
UNBOUND = "what the tail must hold (--sla p99=...)"
DEFAULT = "p99"


class Reading(msgspec.Struct, frozen=True):
    """A summary's diagnosis, its figures and tables, and what to know when reading either."""

    diagnosis: Diagnosis
    found: Findings
    notes: tuple[str, ...]


class Bound(msgspec.Struct, frozen=True):
    """What a percentile is held against: its name, ns, and whose bound that is."""

    metric: str
    most: float
    whose: str


def diagnose(
    summary: Summary,
    read: ReadReport,
    *,
    others: Sequence[Summary] = (),
    sla: Sla | None = None,
    texts: Mapping[str, str] | None = None,
) -> Reading:
    """What ``summary`` proves. ``others`` may tell of the same layers; ``texts`` are said beside the file."""
    summary, named = layers.joined(summary, tuple(others))
    shares = layers.types(summary.layers)
    declared = (texts or {}).get("declared", "")
    bound = _bound(summary, sla, others)
    case = Case(
        gates=_gates(summary, bound),
        met=_met(summary, bound),
        fits=None,
        suspects=(),
        standard=bound.whose if bound else "the SLA",
        defects=_defects(shares, dtype_name(declared)),
    )
    diagnosis = _with_seen(classify(case), summary, bound)
    figures, series = tell(summary, shares, read.file)
    found = findings("summary", diagnosis, read.file, figures, series)
    return Reading(diagnosis, found, _notes(summary, sla, declared, named))


def _bound(summary: Summary, sla: Sla | None, others: Sequence[Summary]) -> Bound | None:
    """The SLA; else what the run was held to, as this file or another of the same tool and load says."""
    if sla is not None:
        return Bound(sla.metric, sla.bound_ms * 1e6, "the SLA") if sla.metric != "goodput" else None
    alike = [one for one in others if one.tool == summary.tool and _names(one) == _names(summary)]
    said = next((one.bound for one in (summary, *alike) if one.bound is not None), None)
    return None if said is None else Bound(said[0], float(said[1]), "the latency that the run itself was held to")


def _names(summary: Summary) -> list[str]:
    return [point.name for point in summary.points]


def _one(summary: Summary) -> Point | None:
    return summary.points[0] if len(summary.points) == 1 else None


def _met(summary: Summary, bound: Bound | None) -> bool | None:
    point = _one(summary)
    if point is None or bound is None or bound.metric not in point.latency:
        return None
    return point.latency[bound.metric] <= bound.most


def _gates(summary: Summary, bound: Bound | None) -> tuple[Gate, ...]:
    """Whether the points may be believed; nothing to ask where there is none."""
    if not any(point.latency for point in summary.points):
        return ()
    return (_arrivals(summary), _samples(summary, bound), _long_enough(summary))


def _arrivals(summary: Summary) -> Gate:
    fix = "replay at the arrival times of real traffic, and keep each request's times"
    if summary.paced is None:
        text = "the file does not say whether requests arrived on their own or as others ended"
        return Gate("closed-loop", False, text, (), fix)
    text = "requests were sent at times of their own"
    if not summary.paced:
        text = "requests were sent as others ended, so many at a time: no arrivals made these percentiles"
    return Gate("closed-loop", summary.paced, text, (), fix)


def _samples(summary: Summary, bound: Bound | None) -> Gate:
    metric = bound.metric if bound else DEFAULT
    needed = needed_effective(float(metric.removeprefix("p")) / 100)
    counts = [point.count for point in summary.points if any(name.startswith("p") for name in point.latency)]
    known = [count for count in counts if count is not None]
    if not counts:
        return Gate("samples", False, "the file holds no percentile", (), "one that knows its percentiles")
    fix = f"at least {needed} requests at each operating point, and their number in the file"
    if len(known) < len(counts):
        return Gate("samples", False, "the file does not say how many requests its percentiles rest on", (), fix)
    text = f"{min(known)} requests; {metric} needs at least {needed}, were they independent"
    return Gate("samples", min(known) >= needed, text, (), fix)


def _long_enough(summary: Summary) -> Gate:
    text = f"the tool itself calls the run too short: {'; '.join(summary.short)}"
    return Gate("effective-samples", not summary.short, text, (), "run it for as long as the tool asks")


def _defects(shares: dict[str, float], declared: str) -> tuple[Suspect, ...]:
    if not declared or not shares:
        return ()
    ran = ", ".join(f"{name} {percent(share)}" for name, share in shares.items())
    return defects(Facts(effects={}, declared=declared, executed=shares.get(declared, 0.0), executed_in=ran))


def _with_seen(found: Diagnosis, summary: Summary, bound: Bound | None) -> Diagnosis:
    """Beside what nobody could prove stands what the file shows all the same, and what would say more."""
    asked = UNBOUND if bound is None and any(point.latency for point in summary.points) else ""
    missing = tuple(what for what in (summary.instead, asked, *found.missing) if what and what not in ACCOUNT)
    following = missing[0] if missing else ""
    first = found.classes[0]
    if first.id != "insufficient-evidence":
        return msgspec.structs.replace(found, missing=missing, next_measurement=following)
    seen = (*first.evidence, *_seen(summary, bound))
    classes = (msgspec.structs.replace(first, evidence=seen), *found.classes[1:])
    return msgspec.structs.replace(found, classes=classes, missing=missing, next_measurement=following)


def _seen(summary: Summary, bound: Bound | None) -> tuple[str, ...]:
    lines = (
        _held(summary, bound),
        points.saturated(summary.points),
        points.largest_stage(summary.points),
        layers.changes(summary.layers),
        layers.moves(summary.layers),
    )
    return tuple(line for line in lines if line)


def _held(summary: Summary, bound: Bound | None) -> str:
    """How the points stand to the bound."""
    if bound is None:
        return ""
    known = [point for point in summary.points if bound.metric in point.latency]
    if not known:
        return ""
    if len(known) == 1:
        return f"{bound.metric} is {lasting(known[0].latency[bound.metric])}; {bound.whose} is {lasting(bound.most)}"
    within = sum(point.latency[bound.metric] <= bound.most for point in known)
    return f"{bound.metric} is within {lasting(bound.most)} at {within} of {len(known)} operating points"


def _notes(summary: Summary, sla: Sla | None, declared: str, named: int) -> tuple[str, ...]:
    notes = [METHOD] if summary.points else []
    notes += [f"not used: {what}" for what in summary.refused]
    notes += [f"{name}: {value}" for name, value in summary.facts.items()]
    if sla is not None and sla.metric == "goodput":
        notes.append("goodput needs requests, one by one; a summary has none")
    if declared and not dtype_name(declared):
        notes.append(f"{declared!r} is none of the precisions that layers tell: {', '.join(DTYPES)}")
    if named:
        notes.append(f"{named} of {len(summary.layers)} layers are told of by another file of these, too")
    return tuple(notes)
