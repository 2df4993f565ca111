"""OpenVINO's benchmark_app and TensorRT's trtexec: known figures, and what their files do not hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from spans_kit import SAMPLES, kinds, rows, sample

from trimtab.domain.noun import NEVER
from trimtab.errors import DataError
from trimtab.evidence.summary.layers import types
from trimtab.readers import formats, openvino_benchmark, openvino_counters, trtexec_layers, trtexec_times


def write(path: Path, body: Any) -> Path:
    path.write_text(body if isinstance(body, str) else json.dumps(body))
    return path


def test_the_known_report_keeps_shapes_apart() -> None:
    held, report = openvino_benchmark.read(SAMPLES / "openvino_report_pcseq.csv", True)
    whole, *each = held.points
    assert (whole.count, whole.clients, whole.achieved, held.paced) == (63, 2, 1781.09, False)
    assert whole.latency == {"p95": 4_540_000, "mean": 1_070_000, "min": 80_000, "max": 20_350_000}
    assert [(point.name, point.latency["mean"]) for point in each] == [
        ("x: [1,3,32,32]", 450_000), ("x: [1,3,48,320]", 840_000), ("x: [1,3,224,224]", 1_900_000),
    ]  # fmt: skip
    assert (held.refused, report.rows, report.used) == ((), 43, 24)
    assert held.facts["first inference, ms"] == "5.45"


def test_the_json_of_several_shapes_overwrites_its_means() -> None:
    held, _ = openvino_benchmark.read(SAMPLES / "openvino_report_pcseq.json", True)
    [point] = held.points
    assert (point.latency, point.count, point.achieved) == ({"p95": 910_000}, 63, 1701.49)
    assert held.refused == (openvino_benchmark.OVERWRITTEN,)


RESULTS = {"latency (ms)": "0.06", "avg latency": "0.07", "total number of iterations": "20", "throughput": "143.1"}


def test_the_json_of_one_shape_has_nothing_to_overwrite(tmp_path: Path) -> None:
    body = {"configuration_setup": {"inference_only": True, "target device": "CPU"}, "execution_results": RESULTS}
    held, _ = openvino_benchmark.read(write(tmp_path / "r.json", body), True)
    assert held.points[0].latency == {"p50": 60_000, "mean": 70_000}
    assert (held.refused, held.facts) == ((), {"device": "CPU"})


@pytest.mark.parametrize(
    ("name", "body", "what"),
    [
        ("r.json", {"configuration_setup": {}, "execution_results": {"throughput": "1"}}, "holds no latency"),
        ("r.json", {"configuration_setup": {}, "execution_results": {"avg latency": {}}}, "is no whole OpenVINO"),
        ("r.json", '{"configuration_setup": {}, "execution_results": {"a', "is no whole OpenVINO"),
        ("r.csv", "Command line parameters\n-m;x\n\nExecution results\nlatency (ms);nan\n", "holds no latency"),
    ],
)
def test_a_report_that_is_cut_or_empty_is_refused(name: str, body: Any, what: str, tmp_path: Path) -> None:
    path = write(tmp_path / name, body)
    assert formats.find(path) is openvino_benchmark.FORMAT
    with pytest.raises(DataError, match=what):
        openvino_benchmark.read(path, False)


def test_the_known_counters() -> None:
    held, report = openvino_counters.read(SAMPLES / "openvino_counters_pcseq.csv", True)
    assert (report.rows, report.used) == (12, 12)
    by_name = {layer.name: layer for layer in held.layers}
    assert sum(layer.took for layer in held.layers) == 373_000
    conv = by_name["conv2/WithoutBiases"]
    assert (conv.kind, conv.took, conv.dtype, conv.moves) == ("Convolution", 156_000, "bfloat16", False)
    assert by_name["Convert_157"].moves
    assert types(held.layers) == {"bfloat16": 1.0}  # who converts the input computes in no type


def test_counters_as_json() -> None:
    held, report = openvino_counters.read(SAMPLES / "openvino_counters_detailed.json", True)
    assert (report.rows, len(held.layers), types(held.layers)) == (12, 12, {"bfloat16": 1.0})
    with pytest.raises(DataError, match="holds the first layer only") as caught:
        openvino_counters.read(SAMPLES / "openvino_first_layer_only.json", False)
    assert "detailed_counters" in caught.value.fix


def test_a_layer_of_several_requests_is_their_mean(tmp_path: Path) -> None:
    header = "layerName;execStatus;layerType;execType;realTime (ms);cpuTime (ms)"
    block = f"{header}\na;b;EXECUTED;Conv;jit_f32;%s;1\nTotal;;;;1;1\n\n"
    path = write(
        tmp_path / "c.csv", block % "0.100" + block % "0.300" + f"{header}\nbroken;line\nx;E;Conv;jit_f32;-;0\n"
    )
    held, report = openvino_counters.read(path, False)
    [layer] = held.layers
    assert (layer.name, layer.took, layer.dtype) == ("a;b", 200_000, "float32")
    assert report.dropped == {openvino_counters.NO_LAYER: 2}


def test_the_known_times_of_trtexec() -> None:
    spans, report = sample("trtexec_times_mobilenet.json", strict=True)
    assert (report.format, report.rows, report.used) == (trtexec_times.NAME, 6, 6)
    assert kinds(spans) == {"run": 6, "launch": 6, "kernel": 6}
    table = spans.table
    kernels = rows(spans, "kernel")
    assert [int(table["end"][k] - table["start"][k]) for k in kernels] == [
        459_000,
        442_300,
        444_800,
        444_400,
        900_900,
        444_500,
    ]
    launches = [int(table["launch"][k]) for k in kernels]
    assert launches == rows(spans, "launch")
    assert [int(table["end"][k] - table["start"][k]) for k in launches][:2] == [109_800, 41_900]


@pytest.mark.parametrize(
    ("change", "dropped"),
    [({"endD2hMs": None}, "no event of this format"), ({"startEnqMs": 1e300}, trtexec_times.NO_TIMES),
     ({"endComputeMs": 0.5}, trtexec_times.BACKWARDS)],
)  # fmt: skip
def test_inferences_that_are_none_are_counted(change: dict[str, Any], dropped: str, tmp_path: Path) -> None:
    good = {"startEnqMs": 1, "endEnqMs": 2, "startH2dMs": 2, "endH2dMs": 3, "startComputeMs": 3, "endComputeMs": 5,
            "startD2hMs": 5, "endD2hMs": 5}  # fmt: skip
    path = write(tmp_path / "t.json", [good, good | change])
    spans, report = trtexec_times.read(path, False)
    assert kinds(spans) == {"run": 1, "launch": 1, "kernel": 1, "copy": 1}  # the copy out took no time
    assert (report.used, report.dropped) == (1, {dropped: 1})


def test_the_known_profile_of_trtexec() -> None:
    held, report = trtexec_layers.read_profile(SAMPLES / "trtexec_profile_mobilenet.json", True)
    assert (report.used, held.facts["runs"]) == (7, "4216")
    assert held.facts["share of the profile that this file holds"] == "9.7 %"
    assert (held.layers[0].name, held.layers[0].took) == ("QuantizeLinear_2", 12_204)
    assert [layer.moves for layer in held.layers] == [False, False, False, False, True, False, False]


def test_the_known_types_of_layers() -> None:
    held, _ = trtexec_layers.read_info(SAMPLES / "trtexec_layers_mobilenet.json", True)
    assert [(one.kind, one.dtype, one.reads, one.writes, one.moves) for one in held.layers] == [
        ("Reformat", "", "float32", "int8", True), ("CaskConvolution", "int8", "int8", "float16", False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Row major linear FP32", "float32"),
        ("Channel major FP16 format where C % 8 == 0", "float16"),
        ("Row major linear BFloat16", "bfloat16"),
        ("Thirty-two wide channel vectorized row major Int8 format", "int8"),
        ("Row major linear FP8E4M3", "float8"),
        ("Half", "float16"),
        ("Row major Int32 format", ""),
        ("Row major linear Bool", ""),
        ("", ""),
    ],
)
def test_a_type_among_the_words_of_a_format(words: str, expected: str, tmp_path: Path) -> None:
    body = {"Layers": [{"Name": "a", "LayerType": "Conv", "Inputs": [{"Format/Datatype": words}], "Outputs": []}]}
    held, _ = trtexec_layers.read_info(write(tmp_path / "i.json", body), True)
    assert held.layers[0].reads == expected


def test_names_without_types_and_layers_without_times(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="names of layers only") as caught:
        trtexec_layers.read_info(write(tmp_path / "n.json", {"Layers": ["a", "b"]}), False)
    assert "--profilingVerbosity=detailed" in caught.value.fix
    array = [{"count": 3}, {"name": "a", "averageMs": 0.5, "timeMs": 1.5}, {"name": "b", "averageMs": "x", "timeMs": 1}]
    held, report = trtexec_layers.read_profile(write(tmp_path / "p.json", array), False)
    assert ([layer.took for layer in held.layers], report.dropped) == ([500_000], {trtexec_layers.NO_LAYER: 1})
    with pytest.raises(DataError, match="is no whole trtexec profile"):
        trtexec_layers.read_profile(write(tmp_path / "q.json", '[{"averageMs": 1, "timeMs": 1'), False)
    assert NEVER not in [layer.took for layer in held.layers]
