"""The plan stage's findings: the machine, and what the study assumes of it."""

from __future__ import annotations

from collections.abc import Sequence

from trimtab.domain.envelope import Envelope, EnvelopeCheck
from trimtab.domain.figure import Figure, Finding, Findings, Series

ARTIFACT = "envelope.json"


def findings(envelope: Envelope, checks: Sequence[EnvelopeCheck], machines: Sequence[str] = ()) -> Findings:
    """One sentence for each assumption that does not hold or cannot be checked; ``machines``: what is to be known where
    there are several; the reference pace as figures."""
    broken = [check for check in checks if check.status == "differs"]
    unknown = [check for check in checks if check.status == "unknown"]
    said = [
        Finding(text=f"{check.name} is {check.probed}; the study assumes {check.assumed}.", owner="observability")
        for check in broken
    ]
    said += [
        Finding(text=f"{check.name}: this machine does not say, so it is not checked.", owner="observability")
        for check in unknown
    ]
    said += [Finding(text=text, owner="observability") for text in machines]
    figures = [
        Figure(id=f"plan.pace.{pace.core}.{kind}", value=ns / 1e3, unit="us", samples=pace.runs, scope="this machine",
               artifact=ARTIFACT, note="p10 of quiet runs")
        for pace in envelope.pace
        for kind, ns in (("compute", pace.compute_ns), ("stream", pace.stream_ns))
    ]  # fmt: skip
    columns = {
        name: tuple(getattr(check, name) for check in checks) for name in ("name", "assumed", "probed", "status")
    }
    return Findings(
        stage="plan",
        headline=_headline(len(checks), len(broken), len(unknown)),
        findings=tuple(said),
        figures=tuple(figures),
        series=(Series(id="plan.checks", columns=columns, artifact=ARTIFACT),) if checks else (),
    )


def _headline(made: int, broken: int, unknown: int) -> str:
    if not made:
        return "The study assumes nothing of the machine."
    if broken:
        return f"{broken} of {made} assumptions about the machine do not hold."
    if unknown:
        return f"{made - unknown} of {made} assumptions about the machine hold; {unknown} cannot be checked."
    return f"All {made} assumptions about the machine hold."
