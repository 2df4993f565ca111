"""The first study of a user: a guess that is marked as one, and a valid study."""

from __future__ import annotations

import pytest

from trimtab.errors import ModelError, StudyError
from trimtab.store._guess import guess_random, guess_sizes, guess_stream, guess_time, guess_unit
from trimtab.store.draft import DraftInput, DraftModel, DraftOutput, DraftTrace, Facts, draft_study
from trimtab.store.study import parse_study

OCR = DraftModel("net.onnx", (DraftInput("x", (None, 3, 48, None)),), (DraftOutput("y"),), sha256="a" * 64)
TRACE = DraftTrace(
    "trace.csv",
    {
        "TIMESTAMP": ["2023-11-16 18:17:03.9799600", "2023-11-16 18:17:04.0319600", "2023-11-16 18:17:05"],
        "latency_ms": ["9", "12", "10"],
        "line_w": ["40", "320", "96"],
        "client": ["a", "a", "a"],
    },
)


def test_a_draft_is_a_valid_study_with_every_guess_in_it() -> None:
    text = draft_study('My "first" study', OCR, TRACE, (0, 1, 2), "openvino")
    study = parse_study(text)
    assert study.name == "My -first- study"
    assert study.model.inputs[0].shape == ("batch", 3, 48, "width")
    assert (study.dims["width"].lo, study.dims["width"].hi) == (40, 320)
    assert (study.workload.arrivals.time, study.workload.arrivals.unit) == ("TIMESTAMP", "iso")
    assert (study.workload.shapes.dims, study.workload.shapes.stream) == ({"width": "line_w"}, "client")
    assert (study.envelope.cores, study.envelope.driver_core) == ((0, 1, 2), 2)
    assert study.baseline.compile.backend == "openvino"
    assert study.baseline.compile.entries[0].hi == (320,)
    assert [policy.kind for policy in study.space.batches] == ["size-hold"]


def test_every_line_that_is_a_guess_says_so() -> None:
    lines = draft_study("s", OCR, TRACE, (0, 1), "null").splitlines()
    for start in ('time = "TIMESTAMP"', "unit =", "dims = {", "stream =", "[dims.width]"):
        (line,) = [line for line in lines if line.startswith(start)]
        assert "GUESS" in line
    assert any(line.startswith("bound_ms") and "CHOOSE" in line for line in lines)


def test_a_network_without_a_batch_axis_gets_no_batches() -> None:
    model = DraftModel("net.onnx", (DraftInput("x", (1, "T")),), (DraftOutput("y"),))
    study = parse_study(draft_study("s", model, TRACE, (0, 1), "null"))
    assert (study.dim_names, study.space.batches) == (("t",), ())


def test_inputs_share_dims_of_one_name_and_a_hostile_name_is_quoted() -> None:
    inputs = (
        DraftInput('ids"\n[x]', ("N", "sequence_length"), "i64"),
        DraftInput("mask", ("N", "sequence_length"), "i64"),
    )
    columns = {"t_s": ["0.0", "0.5"], "input#tokens": ["3", "4"], "output_tokens": ["5", "6"]}
    study = parse_study(
        draft_study(
            "s", DraftModel("n.onnx", inputs, (DraftOutput("y"),)), DraftTrace("t.csv", columns), (0, 1), "null"
        )
    )
    assert study.dim_names == ("sequence_length",)
    assert study.model.inputs[0].name == 'ids"\n[x]'
    assert study.workload.shapes.dims == {"sequence_length": "input#tokens"}
    assert study.workload.arrivals.unit == "s"


def test_a_trace_without_usable_columns_is_to_be_filled_in() -> None:
    study = parse_study(draft_study("s", OCR, DraftTrace("t.csv", {"a": ["x", "y"]}), (0, 1), "null"))
    assert study.workload.arrivals.time == "FILL IN"
    assert study.workload.shapes.dims == {"width": "FILL IN"}


@pytest.mark.parametrize("shape", [(1, 3, 48, 320), (None, 3, 48, 320)])
def test_a_network_whose_sizes_never_change_gets_no_study(shape: tuple[int | None, ...]) -> None:
    """It would be refused as soon as it is read: a study is about dims that change."""
    model = DraftModel("net.onnx", (DraftInput("x", shape),), (DraftOutput("y"),))
    with pytest.raises(ModelError, match="no size of this network changes besides its batch"):
        draft_study("s", model, TRACE, (0, 1), "null")


def test_one_core_is_not_enough_and_the_study_says_so_when_it_is_read() -> None:
    with pytest.raises(StudyError, match="no core is left for a worker"):
        parse_study(draft_study("s", OCR, TRACE, (0,), "null"))


@pytest.mark.parametrize(
    ("name", "values", "unit"),
    [
        ("t", ["2023-11-16T18:17:03Z"], "iso"),
        ("arrival_us", ["5"], "us"),
        ("ts", ["1700000000.25"], "s"),
        ("ts", ["1700000000250"], "ms"),
        ("ts", ["1700000000250000000"], "ns"),
        ("timestamp", ["0", "3000"], "ms"),
        ("timestamp", ["0", "0.5"], "s"),
        ("t", ["soon"], "s"),
        ("t", [], "s"),
    ],
)
def test_units_of_time(name: str, values: list[str], unit: str) -> None:
    assert guess_unit(name, values) == unit


def test_columns_by_name_and_content() -> None:
    columns = {
        "id": ["3", "1", "2", "4"],
        "image_h": ["20", "21", "22", "23"],
        "image_w": ["40", "30", "20", "10"],
        "user": ["a", "b", "a", "b"],
        "start_s": ["0", "1", "1", "2"],
        "time_left": ["9", "8", "7", "6"],
    }
    assert guess_time(columns) == "start_s"
    assert guess_sizes(columns, ("height", "width"), "start_s") == {"height": "image_h", "width": "image_w"}
    assert guess_sizes({"width": ["3", "4"]}, ("height", "width"), "") == {"height": "", "width": "width"}
    assert guess_stream(columns, {"start_s"}) == "user"


def test_facts_of_the_whole_trace_and_of_a_first_look_go_into_the_study() -> None:
    facts = Facts({"width": (8, 900)}, 12_000, rate=25.0, rate_why="the trace has 5.4", bound_ms=50.0, minutes=15)
    study = parse_study(draft_study("s", OCR, TRACE, (0, 1), "null", facts))
    assert (study.dims["width"].lo, study.dims["width"].hi) == (8, 900)
    assert (study.workload.rate, study.sla.bound_ms, study.budget.time) == (25.0, 50.0, "15m")
    entry = study.baseline.compile.entries[0]
    assert (entry.lo, entry.hi) == ((8,), (900,))


def test_an_output_that_is_as_long_as_an_input_is_cropped_and_one_of_unknown_length_is_to_be_decided() -> None:
    inputs = (DraftInput("ids", ("batch", "tokens"), "i64"), DraftInput("attention_mask", ("batch", "tokens"), "i64"))
    outputs = (
        DraftOutput("hidden", ("batch", "tokens", 384)),
        DraftOutput("pooled", ("batch", 384)),
        DraftOutput("steps", ("batch", "floor(tokens/2)", 96)),
    )
    columns = {"t_s": ["0.0", "0.5"], "tokens": ["3", "4"]}
    text = draft_study("s", DraftModel("n.onnx", inputs, outputs), DraftTrace("t.csv", columns), (0, 1), "null")
    study = parse_study(text)
    assert [(crop.axis, crop.dim) for crop in study.model.outputs[0].crop] == [(1, "tokens")]
    assert (study.model.outputs[1].crop, study.model.outputs[2].crop) == ((), ())
    assert text.count("# CHOOSE: if its size follows a dim") == 1
    assert [spec.random for spec in study.model.inputs] == [None, (1, 1)]


@pytest.mark.parametrize(
    ("name", "dtype", "drawn"),
    [
        ("input_ids", "i64", None),
        ("attention_mask", "i64", (1, 1)),
        ("attention_mask", "f32", None),
        ("token_type_ids", "i32", (0, 0)),
        ("position_ids", "i64", (0, 0)),
    ],
)
def test_inputs_that_are_no_contents_are_not_drawn(name: str, dtype: str, drawn: tuple[int, int] | None) -> None:
    assert guess_random(name, dtype) == drawn  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("columns", "dims", "found"),
    [
        ({"size": ["3", "4"]}, ("width",), {"width": "size"}),
        ({"size": ["3", "4"], "count": ["5", "6"]}, ("width",), {"width": ""}),
        ({"ContextTokens": ["3"], "GeneratedTokens": ["5"]}, ("width",), {"width": ""}),
        ({"ContextTokens": ["3"], "GeneratedTokens": ["5"]}, ("seq_len",), {"seq_len": "ContextTokens"}),
        ({"input_length": ["3"], "output_length": ["5"]}, ("src", "tokens"), {"src": "", "tokens": "input_length"}),
        ({"line_width": ["3"], "request_id": ["5"]}, ("width",), {"width": "line_width"}),
    ],
)
def test_a_column_is_taken_for_a_dim_by_its_name(
    columns: dict[str, list[str | None]], dims: tuple[str, ...], found: dict[str, str]
) -> None:
    assert guess_sizes(columns, dims, "") == found


def test_times_that_are_not_in_order_are_still_times() -> None:
    """Reading the trace then says which row is early, and how to sort."""
    moments = ["2023-11-16 18:17:04", "2023-11-16 18:17:03"]
    assert guess_time({"width": ["3", "4"], "when": list(moments)}) == "when"
    assert guess_time({"width": ["3", "4"], "start": ["2.5", "0"]}) == "start"
