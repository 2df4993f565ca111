"""What precision really ran: shares of profiled time by executed element type, over the entries of a plan (R17, R32).

A backend that cannot say what an operator computes in says so; such time is *unknown*. It is left out of every share,
so that it counts neither as the declared precision nor as another one. Where more than half of an entry's time is
unknown, nothing is said of that entry.

Limits: the shares are those of the one shape that was inspected, and each entry counts alike.
"""

from __future__ import annotations

from collections.abc import Sequence

from trimtab.domain.profile import CompileProfile

UNKNOWN = ("none", "undefined", "")
"""What backends say of an operator where they do not know."""
MOSTLY = 0.5
"""Share of an entry's time whose precision must be known before anything is said of it."""


def executed(profiles: Sequence[CompileProfile]) -> dict[str, float]:
    """Share of profiled time by executed precision, the largest first: means over the entries that are known. Empty
    where none is."""
    found = [shares for profile in profiles if (shares := known(profile))]
    total: dict[str, float] = {}
    for shares in found:
        for name, part in shares.items():
            total[name] = total.get(name, 0.0) + part / len(found)
    return dict(sorted(total.items(), key=lambda item: -item[1]))


def executed_share(profiles: Sequence[CompileProfile], precision: str) -> float | None:
    """Share of profiled time that ran in ``precision``; None where it is unknown, or ``default``: nothing declared."""
    shares = executed(profiles)
    return shares.get(precision, 0.0) if shares and precision != "default" else None


def known(profile: CompileProfile) -> dict[str, float]:
    """Shares of the time whose precision is known; empty where most of the time is of unknown precision."""
    found = {name: part for name, part in profile.inspection.precision_share().items() if name not in UNKNOWN}
    whole = sum(found.values())
    return {name: part / whole for name, part in found.items()} if whole >= MOSTLY else {}


def told(profile: CompileProfile) -> dict[str, float]:
    """Shares of all profiled time, the unknown under one word."""
    found: dict[str, float] = {}
    for name, part in profile.inspection.precision_share().items():
        found[word(name)] = found.get(word(name), 0.0) + part
    return found


def word(precision: str) -> str:
    """``precision``, or ``unknown``."""
    return "unknown" if precision in UNKNOWN else precision
