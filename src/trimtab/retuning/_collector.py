"""The moves found so far: each plan once, each under a fresh id, and every refusal with its reason."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from msgspec.structs import replace

from trimtab.domain.study import Study
from trimtab.domain.verdict import Move, Rejected
from trimtab.retuning._known import Known


@dataclass
class Collector:
    """Gathers moves, gives each plan a fresh id, and refuses a plan that is already there."""

    study: Study
    known: Known
    moves: list[Move] = field(default_factory=list)
    refused: list[Rejected] = field(default_factory=list)

    def refuse(self, plan: str, sentence: str, reason: str) -> None:
        self.refused.append(Rejected(plan=plan, sentence=sentence, reason=reason))

    def add(self, move: Move) -> None:
        halves = (move.plan.compile, move.plan.serve)
        twin = next((m for m in self.moves if (m.plan.compile, m.plan.serve) == halves), None)
        if twin is not None:
            self.refuse(move.plan.id, move.sentence, f"the same plan as {twin.plan.id}")
            return
        self.moves.append(replace(move, plan=replace(move.plan, id=self.fresh(move.plan.id))))

    def fresh(self, stem: str) -> str:
        word = re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-.") or "plan"
        taken = {m.plan.id for m in self.moves}
        name, number = word, 2
        while name in taken:
            name, number = f"{word}-{number}", number + 1
        return name
