"""The Score of one run, and the Diagnosis: which class explains the tail, on what proof, what is missing (R19)."""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import field

from trimtab.domain.figure import Figure
from trimtab.domain.noun import Noun
from trimtab.domain.verdict import Role

LossCause = Literal["cold", "premium", "padding", "interference", "unprofiled"]
LOSS_CAUSES: tuple[LossCause, ...] = get_args(LossCause)
"""Where mapping accuracy is lost, as shares of measured time. They add up to 1 - accuracy."""


class Score(Noun, frozen=True, kw_only=True):
    """How well one run's mapping fitted its traffic. Shares of measured time; ``loss`` by :data:`LOSS_CAUSES`.

    ``promise_warm`` leaves first runs out, ``promise`` does not. ``bias`` is signed: above 0 = slower than promised.
    """

    run: str
    plan: str
    mapping: Figure
    loss: dict[LossCause, Figure]
    promise: Figure
    promise_warm: Figure
    bias: Figure
    bias_warm: Figure
    coverage: Figure
    fit: Figure


class Interpretation(Noun, frozen=True, kw_only=True):
    """What accuracy against gain means here, which action follows, and whose it is (R35)."""

    sentence: str
    action: str
    owner: Role


ClassId = Literal[
    "capacity-queueing",
    "batch-policy",
    "core-imbalance",
    "oversubscription",
    "cold-shape",
    "mapping-fallback",
    "padding-waste",
    "launch-overhead",
    "memory-burst",
    "memory-limit",
    "precision-fallback",
    "compute-bound",
    "envelope",
    "whole-shift",
    "invalid-measurement",
    "insufficient-evidence",
    "healthy",
]

CLASS_OWNERS: dict[ClassId, Role] = {
    "capacity-queueing": "runtime",
    "batch-policy": "runtime",
    "core-imbalance": "runtime",
    "oversubscription": "runtime",
    "cold-shape": "compiler",
    "mapping-fallback": "compiler",
    "padding-waste": "compiler",
    "launch-overhead": "compiler",
    "memory-burst": "compiler",
    "memory-limit": "compiler",
    "precision-fallback": "compiler",
    "compute-bound": "compiler",
    "envelope": "observability",
    "whole-shift": "observability",
    "invalid-measurement": "observability",
    "insufficient-evidence": "observability",
    "healthy": "observability",
}
"""Who owns a class unless the study says otherwise (R37)."""


class Named(Noun, frozen=True, kw_only=True):
    """One class that explains the symptom. ``share`` = change of the primary metric when this cause alone is removed,
    over the change when all are; shares need not sum to 1. None where no removal was computed.
    """

    id: ClassId = field(name="class")
    share: float | None
    interval: tuple[float, float] | None
    owner: Role
    evidence: tuple[str, ...]
    ruled_out: tuple[str, ...] = ()


class Diagnosis(Noun, frozen=True, kw_only=True):
    """The leading class first. ``missing`` lists the evidence that would decide more, ``next_measurement`` how to get
    the first of it; both are empty where nothing is missing. ``failures`` says how many requests failed, of which kinds
    and where, and comes before any class; empty where none did."""

    classes: tuple[Named, ...]
    missing: tuple[str, ...] = ()
    next_measurement: str = ""
    failures: str = ""
