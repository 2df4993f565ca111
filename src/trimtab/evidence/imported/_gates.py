"""May an imported table be believed? The gates of a run of ours, as far as a table can answer them."""

from __future__ import annotations

import numpy as np

from trimtab.domain.imported import Imported, ReadReport
from trimtab.domain.noun import NEVER
from trimtab.domain.study import Sla
from trimtab.evidence.classify.gates import ISSUE_RATE, Gate, load_generator, samples, successes
from trimtab.evidence.figures import percent
from trimtab.evidence.imported.recorded import TOLERATED, Calls
from trimtab.evidence.stats.quantiles import Floats

BROKEN = 0.5
BACK_TO_BACK = 0.9


def gates(
    table: Imported, read: ReadReport, given: Calls, seconds: Floats, sla: Sla, known: dict[str, float]
) -> tuple[Gate, ...]:
    """All gates of one table; ``seconds`` are its latencies in order of start."""
    return (
        _issue(table, seconds, sla, known),
        *samples(table.trace, seconds, sla),
        successes(table.trace, seconds),
        _rows(read),
        _stages(given),
        _closed_loop(table, given),
    )


def _issue(table: Imported, seconds: Floats, sla: Sla, known: dict[str, float]) -> Gate:
    req = table.trace.requests
    if np.any(req["enqueued"] != NEVER):
        return load_generator(table.trace, seconds, sla)
    fix = "record when each request was due and when it was issued (start_s, issued_s)"
    span = float(req["scheduled"][-1] - req["scheduled"][0]) / 1e9 if len(req) else 0.0
    if "offered_rate" not in known or span <= 0:
        text = "issue times are not recorded: a late load generator cannot be ruled out"
        return Gate("load-generator", False, text, (), fix, decides=False)
    achieved = (len(req) - 1) / span
    text = f"{achieved:.3g} requests/s of the {known['offered_rate']:.3g} that were asked for"
    passed = achieved >= ISSUE_RATE * known["offered_rate"]
    return Gate("load-generator", passed, text, (), f"{fix}; these latencies are not those of the asked rate")


def _rows(read: ReadReport) -> Gate:
    lost = sum(read.dropped.values())
    text = f"{lost} of {read.rows} rows could not be used" if lost else "every row was used"
    fix = "complete the rows that were left out: requests without a latency are often the slow ones"
    return Gate("rows", not lost, text, (), fix, decides=False)


def _stages(given: Calls) -> Gate:
    text = f"the recorded stages exceed the latency in {percent(given.oversum)} of the rows"
    fix = "record stages and latency with one clock and in the units of their headers"
    return Gate("stages", given.oversum <= TOLERATED, text, (), fix, decides=given.oversum > BROKEN)


def _closed_loop(table: Imported, given: Calls) -> Gate:
    """Requests that each begin when the one before has ended wait for the system: their arrivals are not traffic.

    Where the tool itself says so, there is no tail to explain: nothing of what it recorded is one that arrivals make.
    """
    fix = "replay at the arrival times of real traffic"
    if not table.paced:
        text = "the tool sent each request when the one before had ended, or all at once: no arrivals made this tail"
        return Gate("closed-loop", False, text, (), fix)
    text = "requests arrive whether or not the one before has ended"
    if given.latency.size < 3 or given.overlap or np.any(table.trace.requests["enqueued"] != NEVER):
        return Gate("closed-loop", True, text, ())
    start = table.trace.requests["scheduled"][given.row].astype(np.float64)
    gap = start[1:] - (start + given.latency)[:-1]
    near = float((gap <= 0.02 * given.latency[:-1] + 1e5).mean())
    if near < BACK_TO_BACK:
        return Gate("closed-loop", True, text, ())
    text = f"{percent(near)} of the requests begin when the one before ends: no queue can show"
    return Gate("closed-loop", False, text, (), fix, decides=False)
