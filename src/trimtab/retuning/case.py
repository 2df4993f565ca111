"""What a decision rests on, and what it came to before it has words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trimtab.domain.study import SignOff, Sla
from trimtab.domain.verdict import Decision, HoldReason, MatrixCell, Move, Role, Running


@dataclass(frozen=True)
class Case:
    """Everything that a decision rests on.

    ``undecided`` = why the replays left open whether a move gains (empty: they did not) · ``quality`` cells judge
    outputs against the reference · ``changes_precision`` = the candidate computes in another precision
    than the baseline, declared or executed · ``executed`` = the share of time that the candidate spends in each
    precision that is known · ``plumbing`` = which backend computes no network (empty: all do) · ``running`` = the
    candidate already serves (None: it is a proposal) · ``tail`` = who owns the tail of the baseline, or of what runs,
    as (cause, share of the tail) · ``scope``, ``not_covered`` and ``risks`` add words to what the cells say themselves
    · ``signed`` = the roles that have signed.
    """

    move: Move
    baseline: str
    cells: tuple[MatrixCell, ...]
    sla: Sla
    signoff: SignOff
    undecided: str = ""
    quality: tuple[MatrixCell, ...] = ()
    changes_precision: bool = False
    executed: Mapping[str, float] = field(default_factory=dict)
    plumbing: str = ""
    running: Running | None = None
    signed: tuple[Role, ...] = ()
    tail: tuple[str, float] | None = None
    scope: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()
    risks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ruling:
    """One line of the rule, with the cells that decide it."""

    decision: Decision
    reason: HoldReason
    why: str
    deciding: tuple[MatrixCell, ...] = ()
