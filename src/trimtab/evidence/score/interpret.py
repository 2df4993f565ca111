"""One sentence that reads accuracy and gain together: what it means, which action follows, and whose it is (R35).

    promise right, mapping right   the mapping fits: keep the plan                   observability engineer
    promise right, mapping low     the shapes drifted: refit                         runtime lead
    promise low,   mapping right   the profile no longer holds: profile again        compiler lead
    both low                       check measurement and envelope first              observability engineer
    no promise for much of it      those shapes were never profiled: profile them    compiler lead

An accuracy is low where its interval (else its value) lies below 1 - tolerance. Mapping accuracy compares sums, so
scatter cancels: 10 %, for profile and replay of the same shape differ by several percent without any cause. Promise
accuracy adds up the misses of single batches, so scatter does not cancel, and warm runs of one shape scatter by 10 to
20 % on a virtual machine: 20 %. It is the one without first runs.
"""

from __future__ import annotations

import math

from trimtab.domain.figure import Figure
from trimtab.domain.score import Interpretation, LossCause, Score
from trimtab.domain.verdict import ROLE_TITLES, Role
from trimtab.evidence.figures import percent, percent_within

TOLERANCE = 0.10
PROMISE_TOLERANCE = 0.20
DRIFT = 0.05

_MEANINGS: dict[LossCause, str] = {
    "cold": "the traffic brings shapes that were not run before",
    "premium": "a faster entry is known for these shapes",
    "padding": "the shapes lie well below the dims that they run at",
    "interference": "batches run slower than their profile",
    "unprofiled": "shapes run that no profile knows",
}
_ACTIONS: dict[LossCause, str] = {
    "cold": "refit the entries to the shapes seen, and warm these at start",
    "premium": "send these shapes to the faster entry that the reference set already holds",
    "padding": "refit the buckets to the shapes seen",
    "interference": "find what slows the batches beyond their profile",
    "unprofiled": "profile the shapes that no profile knows",
}


def low(figure: Figure, tolerance: float = TOLERANCE) -> bool:
    """Whether an accuracy lies below 1 - ``tolerance``, its whole interval where it has one. Unknown is not low."""
    if figure.value is None:
        return False
    top = figure.interval.hi if figure.interval is not None else figure.value
    return top < 1 - tolerance


def interpret(
    score: Score,
    gain: Figure | None,
    trend: tuple[float, float] | None,
    uncovered: float,
    simulated: str = "",
) -> Interpretation:
    """The reading of one Score. ``trend`` = mapping accuracy of the first and the last third of the windows;
    ``uncovered`` = share of measured time that ran without a promise. ``gain`` was measured;
    ``simulated`` says what refitting would win, empty = nothing is known."""
    mapping, promise = score.mapping, score.promise_warm
    if mapping.value is None:
        return _say(f"Mapping accuracy cannot be read ({mapping.note})", "measure again", "observability")
    figures = (
        f"Mapping accuracy is {_with_interval(mapping)}{_trend(trend)}, promise accuracy {_with_interval(promise)}"
    )
    won = _gain(gain) + (f"; {simulated}" if simulated else "")
    if not math.isnan(uncovered) and uncovered > TOLERANCE:
        text = f"{figures}; {percent(uncovered)} of the run time was never promised anything{won}"
        return _say(text, "profile the shapes that run without a promise", "compiler")
    broken = low(promise, PROMISE_TOLERANCE)
    if not low(mapping) and not broken:
        return _say(f"{figures}: the mapping fits its traffic{won}", "keep the plan", "observability")
    if not broken:
        cause = max(score.loss, key=lambda name: score.loss[name].value or 0.0)
        text = f"{figures}: {_MEANINGS[cause]}, {cause} is the largest loss ({percent(score.loss[cause].value)}){won}"
        return _say(text, _ACTIONS[cause], "runtime")
    if not low(mapping):
        return _say(f"{figures}: the profile no longer holds{won}", "profile the plan again", "compiler")
    text = f"{figures}: both are low, so neither may be read yet{won}"
    return _say(text, "check the measurement and the envelope first", "observability")


def _say(text: str, action: str, owner: Role) -> Interpretation:
    order = f"{action[0].upper()}{action[1:]} ({ROLE_TITLES[owner]})."
    return Interpretation(sentence=f"{text}. {order}", action=action, owner=owner)


def _with_interval(figure: Figure) -> str:
    if figure.value is None or figure.interval is None:
        return percent(figure.value)
    return percent_within(figure.value, figure.interval)


def _trend(trend: tuple[float, float] | None) -> str:
    if trend is None or abs(trend[1] - trend[0]) < DRIFT:
        return ""
    word = "falling" if trend[1] < trend[0] else "rising"
    return f" ({word} from {percent(trend[0])} to {percent(trend[1])} over the run)"


def _gain(gain: Figure | None) -> str:
    if gain is None:
        return ""
    if gain.value is None:
        return f"; the adaptation gain could not be computed ({gain.note})"
    if gain.interval is None or gain.interval.lo <= 0 <= gain.interval.hi:
        return f"; no adaptation gain is shown ({_with_interval(gain)})"
    verb = "wins back" if gain.value > 0 else "loses"
    return f"; run-time adaptation {verb} {_with_interval(gain)}"
