"""Precision as a candidate: which moves a study's space gives, and which are refused for what reason."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace
from retuning_cases import STUDY, Recorded, study

from trimtab.domain.plan import CompileSpec
from trimtab.domain.study import Study
from trimtab.retuning import moves

BASE = study().baseline
ALWAYS = ("eager", "fusion-off")
UNABLE = {"mode eager": "it compiles everything", "graph-optimisation levels": "it has none"}
KNOWN = moves.Known(np.array([[100]]), (), Recorded(), unable=UNABLE)
CALIBRATED = {**STUDY["model"], "calibration": {"bank": "lines.npz"}}


def spaced(*precisions: str, model: dict = CALIBRATED, **compiled: object) -> Study:
    found = study(space={"precisions": list(precisions)}, model=model)
    return replace(found, baseline=replace(BASE, compile=replace(BASE.compile, **compiled)))


def test_each_precision_is_a_move_of_the_compiler_lead_and_int8_is_two() -> None:
    options = moves.enumerate_moves(spaced("bf16", "int8"), KNOWN)
    assert [(m.plan.id, m.kind, m.owner, m.size, m.plan.compile.precision) for m in options.moves[1:]] == [
        ("precision-bf16", "precision", "compiler", 600, "bf16"),
        ("precision-int8-dynamic", "precision", "compiler", 600, "int8"),
        ("precision-int8-static", "precision", "compiler", 600, "int8"),
    ]
    assert [m.plan.compile.options for m in options.moves[1:]] == [
        {"hint": "latency"},
        {"hint": "latency", "quantise": "dynamic"},
        {"hint": "latency", "quantise": "static"},
    ]
    assert [m.sentence for m in options.moves[1:]] == [
        "Compute in bf16.",
        "Quantise to int8, activations scaled while they run.",
        "Quantise to int8, activations scaled by ranges from calibration inputs.",
    ]


def test_every_precision_move_says_what_it_needs_to_ship() -> None:
    options = moves.enumerate_moves(spaced("default", "f32", "bf16", "f16", "int8", precision="f32"), KNOWN)
    assert len(options.moves) == 6
    assert {m.risk for m in options.moves[1:]} == {
        "Outputs change with the precision: it never ships without quality evidence and the executed share of time."
    }
    assert {moves.changed(spaced(precision="f32").baseline, m.plan) for m in options.moves[1:]} == {("precision",)}


@pytest.mark.parametrize(
    ("space", "unable", "refused"),
    [
        (spaced("default"), {}, {"precision-default": "it is the baseline's precision"}),
        (
            spaced("int8", precision="int8", options={"quantise": "static"}),
            {},
            {"precision-int8-static": "it is the baseline's precision"},
        ),
        (
            spaced("f16", "bf16"),
            {"precision f16": "the CPU has none"},
            {"precision-f16": "openvino: the CPU has none"},
        ),
        (
            spaced("int8"),
            {"quantise dynamic": "it computes in floats"},
            {"precision-int8-dynamic": "openvino: it computes in floats"},
        ),
        (
            spaced("int8", model=STUDY["model"]),
            {},
            {"precision-int8-static": "static quantisation needs calibration inputs: name them in "
             "model.calibration.bank"},
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_offered_is_refused_with_its_reason(
    space: Study, unable: dict[str, str], refused: dict[str, str]
) -> None:
    options = moves.enumerate_moves(space, lacking(unable))
    assert {r.plan: r.reason for r in options.refused if r.plan not in ALWAYS} == refused


def lacking(unable: dict[str, str]) -> moves.Known:
    return moves.Known(KNOWN.dims, (), Recorded(), unable=UNABLE | unable)


def test_another_way_to_quantise_replaces_the_first() -> None:
    made = {"quantise": "dynamic", "quantise_operators": "MatMul", "hint": "latency"}
    base = spaced("f32", "int8", precision="int8", options=made)
    found = {m.plan.id: m.plan.compile.options for m in moves.enumerate_moves(base, KNOWN).moves[1:]}
    assert found["precision-f32"] == {"hint": "latency"}
    assert found["precision-int8-static"] == {"hint": "latency", "quantise": "static"}


@pytest.mark.parametrize(
    ("options", "kinds"),
    [
        ({"hint": "latency", "quantise_operators": "Conv"}, ("precision",)),
        ({"hint": "latency", "disable": "GeluFusionL1"}, ("optimisation",)),
        ({"hint": "latency", "snippets": "off"}, ("optimisation",)),
        ({"hint": "latency", "fusion": "aggressive"}, ("optimisation",)),
        ({"hint": "throughput"}, ("backend",)),
        ({"quantise": "static", "disable": "GeluFusionL1"}, ("optimisation", "backend", "precision")),
    ],
)
def test_an_option_belongs_to_what_it_changes(options: dict[str, str], kinds: tuple[str, ...]) -> None:
    assert moves.changed(BASE, replace(BASE, compile=replace(BASE.compile, options=options))) == kinds


def test_options_of_another_backend_are_part_of_changing_it() -> None:
    other: CompileSpec = replace(BASE.compile, backend="onnxruntime", options={"quantise": "static"})
    assert moves.changed(BASE, replace(BASE, compile=other)) == ("backend",)
