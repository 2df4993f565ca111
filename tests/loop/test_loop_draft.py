"""``trimtab init``: what it writes runs, and what it measured decides rate, bound and budget."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest
from loop_kit import STUDY, Silent, need_two_cores, trimtab

from trimtab.errors import DataError, ModelError, UsageError
from trimtab.loop.verbs.draft import write_draft
from trimtab.loop.verbs.first_look import Look, paced
from trimtab.store.study import load_study, parse_study

for package in ("onnx", "onnxruntime"):
    if importlib.util.find_spec(package) is None and not os.environ.get("CI"):
        pytest.skip(f"{package} is not installed", allow_module_level=True)

import onnx  # noqa: E402 - only where it is
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

HEAD, RATE = "arrived_s,tokens,client", 40.0


def texts(folder: Path) -> Path:
    """hidden[batch, tokens, 4] = (words[input_ids] + kinds[token_type_ids]) * mask: a table of 100 rows, one of two."""
    nodes = [
        helper.make_node("Gather", ["words", "input_ids"], ["w"]),
        helper.make_node("Gather", ["kinds", "token_type_ids"], ["k"]),
        helper.make_node("Add", ["w", "k"], ["s"]),
        helper.make_node("Cast", ["attention_mask"], ["m"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["m", "last"], ["c"]),
        helper.make_node("Mul", ["s", "c"], ["hidden"]),
    ]
    draw = np.random.default_rng(3)
    tables = {"words": draw.normal(size=(100, 4)).astype("float32"), "kinds": np.ones((2, 4), "float32")}
    tables["last"] = np.array([-1])
    names = ("input_ids", "attention_mask", "token_type_ids")
    return saved(
        folder,
        "texts",
        nodes,
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"]) for name in names],
        helper.make_tensor_value_info("hidden", TensorProto.FLOAT, ["batch", "tokens", 4]),
        tables,
    )


def picture(folder: Path) -> Path:
    """y[batch, 1, height, width] = relu(x): two open dims."""
    axes = ["N", 1, "H", "W"]
    given, made = (helper.make_tensor_value_info(name, TensorProto.FLOAT, axes) for name in ("x", "y"))
    return saved(folder, "picture", [helper.make_node("Relu", ["x"], ["y"])], [given], made, {})


def saved(folder: Path, name: str, nodes: list, given: list, made: object, tables: dict[str, np.ndarray]) -> Path:
    weights = [numpy_helper.from_array(value, key) for key, value in tables.items()]
    graph = helper.make_graph(nodes, name, given, [made], weights)
    path = folder / f"{name}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def trace(folder: Path, head: str, *columns: np.ndarray) -> Path:
    path = folder / "requests.csv"
    times = np.arange(len(columns[0])) / RATE
    rows = [",".join(map(str, row)) for row in zip(times, *columns, strict=True)]
    path.write_text("\n".join([head, *rows]) + "\n")
    return path


def clients(count: int) -> np.ndarray:
    return np.array([f"client-{k % 3}" for k in range(count)])


def test_several_inputs_of_integers_are_told_apart_and_the_study_runs(tmp_path: Path) -> None:
    need_two_cores()
    sizes = np.random.default_rng(1).integers(4, 60, 1500)
    sizes[-1] = 77
    study_path = tmp_path / "study.toml"
    drafted = write_draft(
        texts(tmp_path), trace(tmp_path, HEAD, sizes, clients(1500)), study_path, force=False, progress=Silent()
    )
    assert drafted.fill_in == ()
    assert drafted.traffic == f"the trace holds 1,500 requests, 40/s over 37.48 s; tokens {sizes.min()} to 77"
    assert drafted.measured.startswith(f"measured on {drafted.backend}, core 0: a request takes ")
    study = load_study(study_path)
    assert [spec.random for spec in study.model.inputs] == [None, (1, 1), (0, 0)]
    assert [(crop.axis, crop.dim) for crop in study.model.outputs[0].crop] == [(1, "tokens")]
    assert (study.dims["tokens"].lo, study.dims["tokens"].hi) == (int(sizes.min()), 77)
    assert (study.workload.arrivals.time, study.workload.shapes.stream) == ("arrived_s", "client")
    assert study.workload.rate is None, "one worker keeps up with 40 requests/s, and ten minutes hold enough of them"
    done = trimtab("workload", study_path, "--out", tmp_path / "packet")
    assert done.returncode == 0, done.stderr


def test_a_network_with_two_open_dims_gets_a_column_for_each(tmp_path: Path) -> None:
    need_two_cores()
    draw = np.random.default_rng(2)
    table = trace(tmp_path, "t,image_h,image_w", draw.integers(8, 20, 400), draw.integers(8, 40, 400))
    study_path = tmp_path / "study.toml"
    write_draft(picture(tmp_path), table, study_path, force=False, progress=Silent())
    study = load_study(study_path)
    assert study.model.inputs[0].shape == ("batch", 1, "h", "w")
    assert study.workload.shapes.dims == {"h": "image_h", "w": "image_w"}
    assert [(crop.axis, crop.dim) for crop in study.model.outputs[0].crop] == [(2, "h"), (3, "w")]


def test_what_nobody_can_guess_is_named_and_nothing_is_measured(tmp_path: Path) -> None:
    table = trace(tmp_path, "t,alpha,beta", np.arange(1, 301), np.arange(2, 302))
    drafted = write_draft(picture(tmp_path), table, tmp_path / "study.toml", force=False, progress=Silent())
    assert [what.partition(":")[0] for what in drafted.fill_in] == ["workload.shapes.dims.h", "workload.shapes.dims.w"]
    assert all(what.endswith("; columns: t, alpha, beta") for what in drafted.fill_in)
    assert (drafted.traffic, drafted.measured) == ("", "")
    assert 'dims = { h = "FILL IN", w = "FILL IN" }' in (tmp_path / "study.toml").read_text()


def test_a_row_that_no_run_could_use_is_named_before_anything_is_written(tmp_path: Path) -> None:
    need_two_cores()
    table = trace(tmp_path, HEAD, np.arange(1, 31), clients(30))
    with table.open("a") as file:
        file.write("0.5,7,client-1\n")
    with pytest.raises(DataError) as refused:
        write_draft(texts(tmp_path), table, tmp_path / "study.toml", force=False, progress=Silent())
    assert "earlier than the one before it" in refused.value.what
    assert not (tmp_path / "study.toml").exists()


def test_a_file_that_is_there_is_kept_and_a_misspelt_network_is_answered(tmp_path: Path) -> None:
    table, study = trace(tmp_path, HEAD, np.arange(1, 31), clients(30)), tmp_path / "study.toml"
    network = texts(tmp_path)
    study.write_text("mine")
    with pytest.raises(UsageError, match="is there already"):
        write_draft(network, table, study, force=False, progress=Silent())
    with pytest.raises(ModelError) as refused:
        write_draft(tmp_path / "text.onnx", table, study, force=True, progress=Silent())
    assert refused.value.fix == "did you mean `texts.onnx`?"
    assert study.read_text() == "mine"


@pytest.mark.parametrize(
    ("recorded", "took_ms", "rate", "why", "minutes"),
    [
        (100.0, 1.0, None, "", 10),
        (5.0, 1.0, 17.0, "the trace has 5, which are few for a run of 10 minutes", 10),
        (1000.0, 5.0, 100.0, "the trace has 1e+03, this keeps one worker half busy", 10),
        (5.0, 400.0, 1.2, "the trace has 5, this keeps one worker half busy", 50),
    ],
)
def test_the_rate_is_one_that_a_worker_can_hold_and_a_run_can_judge(
    recorded: float, took_ms: float, rate: float | None, why: str, minutes: int
) -> None:
    """The budget of STUDY leaves 46.8 s for a replay of the tune slice in a run of ten minutes."""
    study = parse_study(STUDY.replace("replay_s = 1.2", ""))
    arrivals = (np.arange(20_001) * (1e9 / recorded)).astype(np.int64)
    assert paced(study, arrivals, Look(took_ms, 2 * took_ms)) == (rate, why, minutes)


def test_a_trace_that_begins_quietly_is_played_faster() -> None:
    """Its first 1,000 requests come at one a second, the others at 100: 100 times as many as a replay can wait for."""
    study = parse_study(STUDY.replace("replay_s = 1.2", ""))
    arrivals = np.concatenate((np.arange(1_000), 1_000 + np.arange(200_000) / 100)) * 1e9
    found = paced(study, arrivals.astype(np.int64), Look(0.1, 0.2))
    assert found.rate == 1100.0
    assert found.minutes == 10


@pytest.mark.parametrize(("slow_ms", "bound_ms"), [(0.3, 2.0), (9.0, 50.0), (20.0, 100.0), (21.0, 200.0)])
def test_the_bound_is_a_round_number_of_at_least_five_slow_requests(slow_ms: float, bound_ms: float) -> None:
    assert Look(slow_ms / 2, slow_ms).bound_ms == bound_ms


def test_a_table_without_rows_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "head.csv").write_text(f"{HEAD}\n")
    with pytest.raises(DataError, match=r"head\.csv has no rows"):
        write_draft(texts(tmp_path), tmp_path / "head.csv", tmp_path / "study.toml", force=False, progress=Silent())


def test_a_network_that_cannot_run_its_largest_size_says_so_beforehand(tmp_path: Path) -> None:
    """A table of positions of 40 rows, and requests of up to 77 tokens."""
    need_two_cores()
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "one"], ["length"]),
        helper.make_node("Slice", ["places", "zero", "length"], ["p"]),
        helper.make_node("Add", ["x", "p"], ["y"]),
    ]
    tables = {"one": np.array([1]), "zero": np.array([0]), "places": np.ones(40, "float32")}
    given, made = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", "tokens"]) for name in ("x", "y"))
    network = saved(tmp_path, "places", nodes, [given], made, tables)
    table = trace(tmp_path, HEAD, np.arange(300) % 77 + 1, clients(300))
    drafted = write_draft(network, table, tmp_path / "study.toml", force=False, progress=Silent())
    assert "(1, 77)" in drafted.fault
    assert drafted.measured == ""
    assert load_study(tmp_path / "study.toml").workload.rate is None
