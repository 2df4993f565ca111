"""Memory charged to every candidate: one that would not fit is not tried, a measured peak above the limit is no pass.

The limit is the envelope's: the least of what the study assumes, what the control group allows, what the machine has.
A profile's peak refuses a candidate before it is replayed; the replays' own peaks make a cell of the matrix, because
serving may hold more than profiling did. The baseline is never refused: it runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from trimtab.domain.verdict import MatrixCell, Move, Rejected
from trimtab.evidence.figures import MIB
from trimtab.evidence.memory import above
from trimtab.retuning._change import NO_CHANGE
from trimtab.retuning.arms import HELD_OUT, Arms


def admit(moves: Sequence[Move], limit: int | None) -> tuple[list[Move], list[Rejected]]:
    """The moves that fit into ``limit`` bytes by their profiles' peak, and the others with that reason."""
    fitting: list[Move] = []
    refused: list[Rejected] = []
    for move in moves:
        most = None if move.peak_mib is None else round(move.peak_mib * MIB)
        why = "" if move.kind == NO_CHANGE else above(most, limit)
        if why:
            refused.append(Rejected(plan=move.plan.id, sentence=move.sentence, reason=why))
        else:
            fitting.append(move)
    return fitting, refused


def limit_cell(arms: Arms, limit: int | None) -> tuple[MatrixCell, ...]:
    """Whether the candidate's workers stayed below the limit in every replay; nothing where either is unknown."""
    if limit is None or not arms.candidate_bytes:
        return ()
    before, most = max(arms.baseline_bytes, default=0), max(arms.candidate_bytes)
    why = above(most, limit)
    cell = MatrixCell(
        id=f"guard/{arms.condition}/memory-limit".replace(" ", "-"),
        slice=HELD_OUT,
        condition=arms.condition,
        metric="memory limit",
        role="guard",
        status="fail" if why else "pass",
        baseline=before / MIB if before else None,
        candidate=most / MIB,
        samples=len(arms.candidate_bytes),
        note=why or f"limit {limit / MIB:.4g} MiB; peak of all workers",
    )
    return (cell,)
