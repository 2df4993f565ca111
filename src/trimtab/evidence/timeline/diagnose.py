"""The diagnosis of a timeline: what a profiler or a compiler's log proves on its own.

Sources of a class, each by the rules of its own module:

- launches and idle time of a device (:mod:`.device`): ``launch-overhead``;
- compiles (:mod:`.compiles`): ``cold-shape``, ``mapping-fallback``. Arithmetic proves them, so they stand beside
  whatever else is named, as defects do;
- the types in which operators compute (:mod:`.host`), against a declared one: ``precision-fallback``;
- runs of the network, where the file marks enough of them for a p95 (:mod:`.calls`): all classes of an imported table.

A timeline of work says what the recorded time went to. Whether that owns the tail of real traffic, only requests with
their arrival can say; so that is always among what is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from trimtab.domain.dtypes import DTYPES, dtype_name
from trimtab.domain.figure import Findings, Series
from trimtab.domain.imported import ReadReport
from trimtab.domain.score import Diagnosis, Named
from trimtab.domain.spans import Spans
from trimtab.domain.study import Sla
from trimtab.evidence.classify.classes import Case, classify
from trimtab.evidence.classify.diagnose import findings
from trimtab.evidence.classify.known import Facts
from trimtab.evidence.classify.symptoms import defects
from trimtab.evidence.figures import percent
from trimtab.evidence.imported import diagnose as imported
from trimtab.evidence.stats.quantiles import needed_effective
from trimtab.evidence.timeline import calls, compiles, device, host
from trimtab.evidence.timeline.charts import charts
from trimtab.evidence.timeline.tell import Told, tell

UNNAMED = ("insufficient-evidence", "healthy")
METHOD = "says what the recorded time went to, not what the tail of traffic is made of"
NO_REQUESTS = "requests with their time of arrival: which of them were slow, and what each waited for"
FEWEST_RUNS = needed_effective(0.95)
ACCOUNT = ("an account of the tail",)
"""What :func:`classify` asks for where nobody is suspected; a timeline has better to ask for."""


class Reading(msgspec.Struct, frozen=True):
    """A timeline's diagnosis, its figures and tables, what to know when reading either, and what makes the series of
    its charts."""

    diagnosis: Diagnosis
    found: Findings
    notes: tuple[str, ...]
    charts: Callable[[], tuple[Series, ...]]


def diagnose(
    spans: Spans,
    read: ReadReport,
    *,
    sla: Sla | None = None,
    numbers: Mapping[str, float] | None = None,
    texts: Mapping[str, str] | None = None,
    seed: int = 0,
) -> Reading:
    """What ``spans`` prove. ``numbers`` and ``texts`` are said beside the file; ``seed`` draws the intervals."""
    facts = Told(
        spans=spans,
        device=device.device(spans),
        compiles=compiles.compiles(spans.compiles),
        types=host.precision(spans),
        shapes=calls.shapes(spans),
        busiest=host.busiest(spans),
    )
    declared = (texts or {}).get("declared", "")
    own = _own(facts, dtype_name(declared))
    runs = _of_runs(spans, read, sla, numbers or {}, texts or {}, seed)
    diagnosis = _joined(own, None if runs is None else runs.diagnosis, facts)
    figures, series = tell(facts, read.file)
    found = findings("timeline", diagnosis, read.file, figures, series)

    def drawn() -> tuple[Series, ...]:
        return (*charts(facts, read.file), *(() if runs is None else runs.charts()))

    return Reading(diagnosis, found, _notes(facts, runs, declared), drawn)


def _own(facts: Told, declared: str) -> Diagnosis:
    """What the timeline proves without its runs."""
    suspects = () if facts.device is None else (device.suspect(facts.device),)
    silent = compiles.suspects(facts.compiles)
    if declared and facts.types:
        ran = ", ".join(f"{name} {percent(share)}" for name, share in facts.types.items())
        executed = facts.types.get(declared, 0.0)
        silent += defects(Facts(effects={}, declared=declared, executed=executed, executed_in=ran))
    return classify(Case(gates=(), met=None, fits=None, suspects=suspects, defects=silent))


def _of_runs(
    spans: Spans, read: ReadReport, sla: Sla | None, numbers: Mapping[str, float], texts: Mapping[str, str], seed: int
) -> imported.Reading | None:
    """The runs as a table of requests; None where there are too few for a p95."""
    requests = calls.as_requests(spans, read)
    if requests is None or len(requests.trace.requests) < FEWEST_RUNS:
        return None
    return imported.diagnose(requests, read, sla=sla, numbers=numbers, texts=texts, seed=seed)


def _joined(own: Diagnosis, runs: Diagnosis | None, facts: Told) -> Diagnosis:
    """Classes of the runs first, then what the timeline proves; where neither names one, what was seen all the same."""
    given = [one for one in (runs, own) if one is not None]
    asked = [what for one in given for what in (one.next_measurement, *one.missing) if what and what not in ACCOUNT]
    missing = tuple(dict.fromkeys((*_missing(facts), *asked, NO_REQUESTS)))
    named = [one for diagnosis in given for one in diagnosis.classes if one.id not in UNNAMED]
    if named:
        return Diagnosis(
            classes=_once([_told(one, facts) for one in named]), missing=missing, next_measurement=missing[0]
        )
    if runs is not None and runs.classes[0].id == "healthy":
        return runs
    seen = [line for diagnosis in given for one in diagnosis.classes for line in one.evidence]
    first = msgspec.structs.replace(own.classes[0], evidence=tuple(dict.fromkeys((*_seen(facts), *seen))))
    return Diagnosis(classes=(first,), missing=missing, next_measurement=missing[0])


def _told(one: Named, facts: Told) -> Named:
    """A class that the runs prove, with what their shapes and compiles show beside it."""
    if one.id != "cold-shape":
        return one
    beside = (calls.first_runs(facts.shapes), calls.compiling(facts.spans))
    return msgspec.structs.replace(one, evidence=(*one.evidence, *(line for line in beside if line)))


def _once(named: list[Named]) -> tuple[Named, ...]:
    """Each class once, as it is named first."""
    out: dict[str, Named] = {}
    for one in named:
        out.setdefault(one.id, one)
    return tuple(out.values())


def _seen(facts: Told) -> tuple[str, ...]:
    """What the timeline shows without proving a class by it."""
    long = "" if facts.device is None else device.long_calls(facts.device)
    lines = (
        long,
        calls.first_runs(facts.shapes),
        calls.compiling(facts.spans),
        compiles.first_compiles(facts.compiles),
        compiles.breaks(facts.compiles),
    )
    return tuple(line for line in lines if line)


def _missing(facts: Told) -> tuple[str, ...]:
    """What this file cannot say, the most telling first."""
    out = []
    if facts.device is not None and device.long_calls(facts.device):
        out.append("a recording after warm-up (let the profiler skip the first steps): long driver calls hide the rest")
    runs = int((facts.spans.table["kind"] == calls.RUN).sum())
    if runs and runs < FEWEST_RUNS:
        out.append(f"at least {FEWEST_RUNS} runs of the network in one recording; {runs} are there")
    if not runs and len(facts.spans.table):
        out.append(
            f"what is one call of the network: mark each (steps of the profiler), at least {FEWEST_RUNS} of them"
        )
    return tuple(out)


def _notes(facts: Told, runs: imported.Reading | None, declared: str) -> tuple[str, ...]:
    notes, on = [METHOD], facts.device
    if on is not None and on.early:
        notes.append(f"{on.early} kernels start before their launch does: the clocks of host and device differ")
    if on is not None and on.matched < on.kernels:
        notes.append(f"{on.kernels - on.matched} of {on.kernels} kernels have no launch in the file")
    if declared and not dtype_name(declared):
        notes.append(f"{declared!r} is none of the precisions that a timeline tells: {', '.join(DTYPES)}")
    if not facts.spans.complete:
        notes.append("the file is cut short: what it shows is a part")
    if runs is not None:
        notes += [f"runs: {note}" for note in runs.notes]
    return tuple(notes)
