"""Moves, proposals, the validation matrix and the verdict (R20-R22, R31, R35-R37)."""

from __future__ import annotations

from typing import Literal

from trimtab.domain.figure import Figure, Interval
from trimtab.domain.noun import Noun
from trimtab.domain.plan import Plan

Role = Literal["compiler", "runtime", "observability"]
ROLES: tuple[Role, ...] = ("compiler", "runtime", "observability")
ROLE_TITLES: dict[str, str] = {
    "compiler": "compiler lead",
    "runtime": "runtime lead",
    "observability": "observability engineer",
}

Decision = Literal["ship", "hold", "rollback"]
HoldReason = Literal["", "no-benefit", "inconclusive", "guard-failed"]
CellRole = Literal["primary", "guard", "informative"]
CellStatus = Literal["pass", "fail", "inconclusive", "not-run"]


class Move(Noun, frozen=True, kw_only=True):
    """One bounded change of a plan: ``kind`` names the function that makes it, ``size`` ranks smaller before larger.

    ``sentence`` is the imperative that heads the report: "Add entries 640 and 960, and warm both at start."
    ``memory_mib`` is what its compiled entries take, ``peak_mib`` the most that all its workers hold at once.
    """

    kind: str
    sentence: str
    owner: Role
    plan: Plan
    size: int
    compile_s: float | None = None
    memory_mib: float | None = None
    peak_mib: float | None = None
    risk: str = ""


class Rejected(Noun, frozen=True, kw_only=True):
    """A candidate that was not chosen, with its figure and the reason (R34)."""

    plan: str
    sentence: str
    reason: str
    figure: Figure | None = None


class Proposal(Noun, frozen=True, kw_only=True):
    """A move with its owner, what it is expected to do, what it did, and where it must be undone. ``undecided`` says why
    the replays could neither choose nor rule out a move; empty where they could."""

    move: Move
    baseline: str
    expected: Figure
    measured: Figure | None
    rollback: str
    rejected: tuple[Rejected, ...]
    undecided: str = ""


class MatrixCell(Noun, frozen=True, kw_only=True):
    """slice x condition x metric. ``change`` = (candidate - baseline) / baseline; negative is better for latency and
    for misses. ``margin`` is the largest worsening that a guard forgives."""

    id: str
    slice: str
    condition: str
    metric: str
    role: CellRole
    status: CellStatus
    baseline: float | None = None
    candidate: float | None = None
    change: float | None = None
    interval: Interval | None = None
    floor: float | None = None
    margin: float | None = None
    samples: int = 0
    note: str = ""


class Verdict(Noun, frozen=True, kw_only=True):
    """Ship, hold or roll back, why, and for what it holds (R22, R36)."""

    decision: Decision
    reason: HoldReason
    sentence: str
    deciding: tuple[str, ...]
    cells: tuple[MatrixCell, ...]
    scope: tuple[str, ...]
    not_covered: tuple[str, ...]
    risks: tuple[str, ...]
