"""The diagnosis of a timeline: what a profiler or a compiler's log proves on its own.

Sources of a class, each by the rules of its own module:

- launches and idle time of a device (:mod:`.device`): ``launch-overhead``;
- compiles (:mod:`.compiles`): ``cold-shape``, ``mapping-fallback``. Arithmetic proves them, so they stand beside
  whatever else is named, as defects do;
- the types in which operators compute (:mod:`.host`), against a declared one: ``precision-fallback``;
- runs of the network, where the file marks them (:mod:`.calls`): all classes of an imported table, with its gates.

A timeline of work says what the recorded time went to. Whether that owns the tail of real traffic, only requests with
their arrival can say; so that is always among what is missing, unless the runs themselves carry the diagnosis.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from trimtab.domain.figure import Finding, Findings
from trimtab.domain.imported import ReadReport
from trimtab.domain.score import Diagnosis, Named
from trimtab.domain.spans import Spans
from trimtab.domain.study import Sla
from trimtab.evidence.classify.classes import Case, Suspect, classify
from trimtab.evidence.classify.diagnose import told
from trimtab.evidence.classify.known import Facts
from trimtab.evidence.classify.symptoms import defects
from trimtab.evidence.figures import percent
from trimtab.evidence.imported.diagnose import diagnose as diagnose_requests
from trimtab.evidence.timeline import calls, compiles, device, host
from trimtab.evidence.timeline.tell import Told, tell

UNNAMED = ("insufficient-evidence", "healthy")
METHOD = "says what the recorded time went to, not what the tail of traffic is made of"
NO_REQUESTS = "requests with their time of arrival: which of them were slow, and what each waited for"


class Reading(msgspec.Struct, frozen=True):
    """A timeline's diagnosis, its figures and tables, and what to know when reading either."""

    diagnosis: Diagnosis
    found: Findings
    notes: tuple[str, ...]


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
    on = device.device(spans, np.random.default_rng(seed))
    log = compiles.compiles(spans.compiles)
    types = host.precision(spans)
    own = _own(on, log, types, texts or {})
    runs = _of_runs(spans, read, sla, numbers or {}, texts or {}, seed)
    diagnosis = _joined(own, None if runs is None else runs[0], _missing(spans, on, runs is not None))
    facts = Told(
        spans=spans, device=on, compiles=log, types=types, shapes=calls.shapes(spans), busiest=host.busiest(spans)
    )
    figures, series = tell(facts, read.file)
    said, _ = told(diagnosis, read.file)
    found = Findings(
        stage="timeline",
        headline=said[0].text,
        findings=(*said, *(Finding(text=f"Missing: {what}.") for what in diagnosis.missing)),
        figures=(*figures, *(() if runs is None else runs[1].figures)),
        series=series,
    )
    return Reading(diagnosis, found, _notes(spans, on, runs))


def _own(
    on: device.Device | None, log: compiles.Compiles, types: Mapping[str, float], texts: Mapping[str, str]
) -> Diagnosis:
    suspects: list[Suspect] = [] if on is None else [device.suspect(on)]
    proven = compiles.suspects(log)
    case = Case(gates=(), met=None, fits=None, suspects=tuple(suspects), defects=(*proven, *_precision(types, texts)))
    return classify(case)


def _precision(types: Mapping[str, float], texts: Mapping[str, str]) -> tuple[Suspect, ...]:
    declared = texts.get("declared", "")
    if not types or not declared:
        return ()
    ran = ", ".join(f"{name} {percent(share)}" for name, share in types.items())
    return defects(Facts(effects={}, declared=declared, executed=types.get(declared, 0.0), executed_in=ran))


def _of_runs(
    spans: Spans, read: ReadReport, sla: Sla | None, numbers: Mapping[str, float], texts: Mapping[str, str], seed: int
) -> tuple[Diagnosis, Findings, tuple[str, ...]] | None:
    requests = calls.as_requests(spans, read)
    if requests is None:
        return None
    found = diagnose_requests(requests, read, sla=sla, numbers=numbers, texts=texts, seed=seed)
    return found.diagnosis, found.tail, found.notes


def _joined(own: Diagnosis, runs: Diagnosis | None, missing: tuple[str, ...]) -> Diagnosis:
    """Classes of the runs first, then what the timeline proves; where neither names one, why not."""
    given = [one for one in (runs, own) if one is not None]
    named = tuple(one for diagnosis in given for one in diagnosis.classes if one.id not in UNNAMED)
    if named:
        later = tuple(
            dict.fromkeys((*missing, *(what for one in given for what in one.missing if what not in ACCOUNT)))
        )
        return Diagnosis(classes=_once(named), missing=later, next_measurement=later[0] if later else "")
    if runs is not None and runs.classes[0].id == "healthy":
        return runs
    evidence = tuple(dict.fromkeys(line for one in given for named_ in one.classes for line in named_.evidence))
    first = msgspec.structs.replace(own.classes[0], evidence=evidence)
    asked = [what for one in given for what in (one.next_measurement, *one.missing) if what and what not in ACCOUNT]
    wanted = tuple(dict.fromkeys((*missing[:1], *asked, *missing[1:])))
    return Diagnosis(classes=(first,), missing=wanted, next_measurement=wanted[0] if wanted else "")


ACCOUNT = ("an account of the tail",)
"""What :func:`classify` asks for where nobody is suspected; a timeline has better to ask for."""


def _once(named: tuple[Named, ...]) -> tuple[Named, ...]:
    """Each class once, the first time it is named."""
    return tuple({one.id: one for one in reversed(named)}.values())[::-1]


def _missing(spans: Spans, on: device.Device | None, runs: bool) -> tuple[str, ...]:
    """What this file cannot say, the most telling first."""
    out = []
    start = "" if on is None else device.start_up(on)
    if start:
        out.append(f"a recording after warm-up: {start}")
    if on is None and spans.table.columns["kind"].size and not runs and not spans.compiles:
        out.append("what is one call of the network: mark each (steps of the profiler), at least 90 of them")
    out.append(NO_REQUESTS)
    return tuple(out)


def _notes(
    spans: Spans, on: device.Device | None, runs: tuple[Diagnosis, Findings, tuple[str, ...]] | None
) -> tuple[str, ...]:
    notes = [METHOD]
    if on is not None and on.early:
        notes.append(f"{on.early} kernels start before their launch does: the clocks of host and device differ")
    if on is not None and on.matched < on.kernels:
        notes.append(f"{on.kernels - on.matched} of {on.kernels} kernels have no launch in the file")
    if on is not None and on.reason:
        notes.append(f"no interval for the launches' share: {on.reason}")
    if not spans.complete:
        notes.append("the file is cut short: what it shows is a part")
    if runs is not None:
        notes += [f"runs: {note}" for note in runs[2]]
    return tuple(notes)
