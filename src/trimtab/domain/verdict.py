"""Moves, proposals, the validation matrix and the verdict (R20-R22, R31, R35-R37)."""

from __future__ import annotations

from typing import Literal

from trimtab.domain.figure import Figure, Interval
from trimtab.domain.noun import Noun
from trimtab.domain.plan import Bounds, Plan

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
    ``compile_s``: what a worker, or all further workers, compile and warm at start and the baseline does not.
    ``memory_mib``: what the compiled entries of all workers hold beyond the baseline's, below 0 less. ``peak_mib``: the
    most that all its workers hold at once.
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


class Trial(Noun, frozen=True, kw_only=True):
    """A trigger tried on ``runs`` runs of one injected regression: the share that it ``found``, and after how many
    requests (``delay``, the median over all runs; None = fewer than half were found), with the ends between which nine
    of ten runs lie (+inf = not found)."""

    name: str
    runs: int
    found: float
    delay: float | None
    between: Interval


class Trigger(Noun, frozen=True, kw_only=True):
    """When a shipped move must be undone: a larger share than ``bound`` of the slice's requests is later than
    ``late_ms`` in two windows of ``window`` arrivals running. ``bound`` None: no such bound could be set, and
    ``sentence`` says why.

    ``cell`` = the matrix cell whose promise it watches · ``windows`` = healthy ones behind the bound · ``false_alarms``
    = share of ``runs`` further healthy ones, on other arrivals, in which it fires · ``trials`` = how soon it finds what
    was injected · ``back_to`` = the plan to go back to.
    """

    cell: str
    slice: str
    metric: str
    window: int
    late_ms: float
    bound: float | None
    windows: int
    runs: int = 0
    false_alarms: float | None
    false_alarms_interval: Interval | None
    trials: tuple[Trial, ...]
    back_to: str
    owner: Role
    sentence: str


class Proposal(Noun, frozen=True, kw_only=True):
    """A move with its owner, what it is expected to do, what it did, and where it must be undone: ``rollback`` is the
    sentence of the first of ``triggers``. ``undecided`` says why the replays could neither choose nor rule out a move;
    empty where they could. ``bounds``: how far a controller may refit the plan while it serves (None: not at all)."""

    move: Move
    baseline: str
    expected: Figure
    measured: Figure | None
    rollback: str
    rejected: tuple[Rejected, ...]
    undecided: str = ""
    triggers: tuple[Trigger, ...] = ()
    bounds: Bounds | None = None


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


class Watched(Noun, frozen=True, kw_only=True):
    """A trigger held against new replays of what runs: it ``fired`` in so many of ``runs``, the soonest ``after`` so
    many requests (None: in none). ``note`` says why it could not be held; then there are no runs."""

    cell: str
    slice: str
    metric: str
    runs: int
    fired: int
    after: int | None = None
    note: str = ""


class Running(Noun, frozen=True, kw_only=True):
    """A change that runs already: ``plan`` instead of ``back_to``, since the packet whose manifest has the SHA-256
    ``packet`` shipped it. ``triggers`` are those of that packet, on the replays of this one."""

    packet: str
    shipped: str
    plan: str
    back_to: str
    triggers: tuple[Watched, ...] = ()


class Verdict(Noun, frozen=True, kw_only=True):
    """Ship, hold or roll back, why, and for what it holds (R22, R36). ``running``: what is judged runs already, so that
    ship means keep; None = it was a proposal."""

    decision: Decision
    reason: HoldReason
    sentence: str
    deciding: tuple[str, ...]
    cells: tuple[MatrixCell, ...]
    scope: tuple[str, ...]
    not_covered: tuple[str, ...]
    risks: tuple[str, ...]
    running: Running | None = None
