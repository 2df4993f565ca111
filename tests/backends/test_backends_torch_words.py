"""Torch's words in ours: its compile events, its profile, and which operators of the network a kernel holds."""

from __future__ import annotations

from types import SimpleNamespace

import backends_nets as nets
import pytest

from trimtab.backends import _torch_events as events
from trimtab.backends._torch_operators import Piece, compiled, eager
from trimtab.backends._torch_profile import Arguments, Called, Span, operators
from trimtab.domain.profile import CompileEvent, Operator

nets.needs("torch")


def record(**facts: object) -> SimpleNamespace:
    plain = {"fail_type": None, "fail_reason": None, "recompile_reason": None, "duration_us": 5, "graph_op_count": 2}
    return SimpleNamespace(**(plain | facts))


SIZE = "0/1: tensor 'tensors[1]' size mismatch at index 2. expected 40, actual 3"
RANGE = "0/0: 2 <= tensors[0].size()[0] <= 15  # return f(x)  # net.py:16 in forward (user code shown is first use)"
LIMIT = "Dynamo recompile limit exceeded\n  Explanation: too many"


@pytest.mark.parametrize(
    ("facts", "kind", "reason", "ns"),
    [
        ({}, "compile", "first run", 5000),
        (
            {"recompile_reason": SIZE},
            "recompile",
            "tensor 'mask' size mismatch at index 2. expected 40, actual 3",
            5000,
        ),
        ({"recompile_reason": RANGE, "duration_us": None}, "recompile", "2 <= ids.size()[0] <= 15", -1),
        (
            {"recompile_reason": SIZE, "fail_type": "Unsupported", "fail_reason": LIMIT, "graph_op_count": None},
            "eager",
            "recompile limit reached: tensor 'mask' size mismatch at index 2. expected 40, actual 3",
            5000,
        ),
        ({"fail_type": "Unsupported", "fail_reason": "call\n  of print"}, "eager", "Unsupported: call of print", 5000),
    ],
)
def test_a_record_of_torch_is_an_event_with_the_guard_that_failed(facts, kind, reason, ns) -> None:
    (found,) = events.events([record(**facts)], ("ids", "mask"))
    assert found == CompileEvent(kind=kind, reason=reason, ns=ns)


@pytest.mark.parametrize("facts", [{"fail_type": "SkipFrame"}, {"graph_op_count": 0}, {"graph_op_count": None}])
def test_code_without_operators_is_no_event(facts) -> None:
    assert events.events([record(**facts)], ()) == ()


def span(name: str, ts: float, dur: float, *types: object, cat: str = "cpu_op") -> Span:
    return Span(name=name, cat=cat, ts=ts, dur=dur, args=Arguments(types=types))


def test_the_profile_is_read_from_the_last_run_down_to_what_did_the_work() -> None:
    spans = [
        span("trimtab run", 0, 50, cat="user_annotation"),
        span("aten::conv1d", 1, 40, "float"),
        span("trimtab run", 100, 60, cat="user_annotation"),
        span("Torch-Compiled Region: 0/0", 101, 55),
        span("aten::conv1d", 110, 20, "float", "float", "ScalarList"),
        span("aten::to", 111, 3, "float"),
        span("aten::conv1d", 114, 15, "c10::BFloat16", "c10::BFloat16"),
        span("aten::mkldnn_convolution", 115, 13, "c10::BFloat16", ["float"]),
        span("aten::empty", 116, 0.2, "ScalarList"),
        span("graph_0_cpp_fused_relu_1", 140, 2.5),
        span("aten::conv1d", 170, 10, "float"),
    ]
    assert operators(spans) == [
        Called("aten::conv1d", "aten::mkldnn_convolution", ("bf16",), 20_000),
        Called("graph_0_cpp_fused_relu_1", "graph_0_cpp_fused_relu_1", (), 2_500),
    ]


CALLS = [
    Called("graph_0_cpp_fused_convolution_0", "", (), 1000),
    Called("aten::convolution", "aten::mkldnn_convolution", ("bf16", "bf16"), 9000),
    Called("graph_0_cpp_fused_add_mean_relu_1", "", (), 2000),
    Called("aten::mm", "aten::mm", ("f32",), 3000),
]
PIECES = [
    Piece(True, ("conv",), "bf16"),
    Piece(False, ("conv",), "bf16"),
    Piece(True, ("relu", "add", "mean"), "bf16"),
    Piece(False, ("mean", "transpose", "linear"), "f32"),
]


def test_calls_and_pieces_are_joined_and_each_operator_of_the_network_counts_once() -> None:
    found = compiled(CALLS, PIECES, 6)
    loop, routine = "cpp_fused_convolution_0", "aten::mkldnn_convolution"
    assert found.operators == (
        Operator(name=loop, kind="convolution", kernel=loop, precision="f32", ns=1000),
        Operator(name="conv", kind="convolution", kernel=routine, precision="bf16", ns=9000),
        Operator(name="mean", kind="add_mean_relu", kernel="cpp_fused_add_mean_relu_1", precision="f32", ns=2000,
                 fused=("relu", "add")),
        Operator(name="linear", kind="mm", kernel="aten::mm", precision="f32", ns=3000, fused=("transpose",)),
    )  # fmt: skip
    assert found.before == 6


def test_where_calls_and_pieces_differ_nothing_is_claimed_to_be_fused() -> None:
    found = compiled(CALLS, PIECES[:3], 6)
    assert found.note == "what was fused is not known: 3 pieces were planned and 4 calls seen"
    assert [op.fused for op in found.operators] == [(), (), (), ()]
    assert [op.precision for op in found.operators] == ["unknown", "bf16", "unknown", "f32"]


def test_in_eager_mode_every_call_is_an_operator_with_a_name_of_its_own() -> None:
    found = eager([Called("aten::relu", "aten::clamp_min", ("f32",), 10)] * 2, None)
    assert [(op.name, op.kind, op.kernel) for op in found.operators] == [
        ("relu", "relu", "aten::clamp_min"),
        ("relu_2", "relu", "aten::clamp_min"),
    ]
    assert found.before == 2
