"""Precision as a move: the same entries, computed in another element type.

A float network becomes int8 in two ways, and each is a move of its own: *dynamic* scales activations while they run,
*static* uses the ranges that calibration inputs showed. What a move declares is not yet what is executed, and answers
change with it: it ships only with quality evidence and the executed share of time beside it.
"""

from __future__ import annotations

from msgspec.structs import replace

from trimtab.domain.plan import Precision
from trimtab.domain.verdict import Move
from trimtab.retuning._change import OWNER, rank, recast
from trimtab.retuning._collector import Collector

QUANTISE = "quantise"
"""The option that says how an int8 network is made; every backend that quantises knows it."""

WAYS = ("dynamic", "static")

SENTENCES: dict[str, str] = {
    "default": "Compute in the precision that the runtime chooses.",
    "f32": "Compute in f32.",
    "bf16": "Compute in bf16.",
    "f16": "Compute in f16.",
    "int8-dynamic": "Quantise to int8, activations scaled while they run.",
    "int8-static": "Quantise to int8, activations scaled by ranges from calibration inputs.",
}

RISK = "Outputs change with the precision: it never ships without quality evidence and the executed share of time."


def precision_moves(found: Collector) -> None:
    """A move for each precision of the study's space; int8 gives one for each way to make it."""
    for precision in found.study.space.precisions:
        if precision != "int8":
            _offer(found, precision, precision, {}, f"precision {precision}")
            continue
        for way in WAYS:
            _offer(found, precision, f"int8-{way}", {QUANTISE: way}, f"{QUANTISE} {way}")


def _offer(found: Collector, precision: Precision, word: str, options: dict[str, str], ability: str) -> None:
    base, sentence = found.study.baseline, SENTENCES[word]
    plan = replace(recast(base, precision, options), id=f"precision-{word}", note="")
    refusal = _refusal(found, word, ability, plan.compile == base.compile)
    if refusal:
        found.refuse(plan.id, sentence, refusal)
        return
    found.add(
        Move(
            kind="precision",
            sentence=sentence,
            owner=OWNER["precision"],
            plan=plan,
            size=rank("precision"),
            risk=RISK,
        )
    )


def _refusal(found: Collector, word: str, ability: str, same: bool) -> str:
    if same:
        return "it is the baseline's precision"
    why = found.known.unable.get(ability)
    if why is not None:
        return f"{found.study.baseline.compile.backend}: {why}"
    if word == "int8-static" and not found.study.model.calibration.bank:
        return "static quantisation needs calibration inputs: name them in model.calibration.bank"
    return ""
