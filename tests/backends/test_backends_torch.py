"""What only torch does, without compiling: functions and exported programs, what may not be read, plain options."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import backends_nets as nets
import numpy as np
import pytest

from trimtab import backends
from trimtab.backends import _torch_events as events
from trimtab.backends._torch_operators import Piece, compiled, eager
from trimtab.backends._torch_profile import Arguments, Called, Span, operators
from trimtab.backends.torch import rehearsal
from trimtab.domain.ports import Backend, CompiledEntry, ModelFile
from trimtab.domain.profile import CompileEvent, CompileFailure, CompileOptions, Operator
from trimtab.domain.study import InputSpec, OutputSpec
from trimtab.errors import ModelError

nets.needs("torch")

EAGER = {"mode": "eager"}
WHOLE = nets.entry("dynamic", (1,), (40,), (1, 4))
TWO = (InputSpec(name="a", shape=("batch", "width")), InputSpec(name="b", shape=("batch", "width")))
NET = """
import torch

class Net(torch.nn.Module):
    def forward(self, a, b):
        return {returned}

def make():
    return Net().eval()
"""


@pytest.fixture(scope="module")
def backend() -> Backend:
    return backends.factory("torch")()


def model_of(reference: str, outputs: tuple[str, ...] = ("y",)) -> ModelFile:
    spec = nets.spec(TWO, tuple(OutputSpec(name=name) for name in outputs))
    return ModelFile(path="", sha256="", spec=spec, dim_names=("width",), torch=reference)


def written(folder: Path, text: str, outputs: tuple[str, ...] = ("y",)) -> ModelFile:
    """A file with ``text`` beside the study, whose function ``make`` is the network."""
    path = folder / "net.py"
    path.write_text(text)
    return model_of(f"{path}:make", outputs)


def started(backend: Backend, model: ModelFile, **options: object) -> CompiledEntry:
    result = backend.compile(model, WHOLE, CompileOptions(**({"extra": EAGER} | options)))
    assert not isinstance(result, CompileFailure), result
    return result


def refused(backend: Backend, model: ModelFile, **options: object) -> CompileFailure:
    result = backend.compile(model, WHOLE, CompileOptions(**options))
    assert isinstance(result, CompileFailure)
    return result


# --- functions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("returned", "outputs"),
    [("2 * a - b", ("y",)), ("(2 * a - b, a)", ("y", "z")), ("{'z': a, 'y': 2 * a - b}", ("y", "z"))],
)
def test_a_function_in_a_file_gets_inputs_by_position_and_returns_outputs_in_three_ways(
    backend: Backend, tmp_path: Path, returned: str, outputs: tuple[str, ...]
) -> None:
    model = written(tmp_path, NET.replace("{returned}", returned), outputs)
    given = nets.inputs(model, 2, 7)
    answer = started(backend, model).run(given)
    assert tuple(answer) == outputs
    np.testing.assert_allclose(answer["y"], 2 * given["a"] - given["b"], atol=1e-6)


def test_a_function_in_an_installed_package(backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torchnets").mkdir()
    (tmp_path / "torchnets" / "small.py").write_text(NET.replace("{returned}", "a + b"))
    monkeypatch.syspath_prepend(str(tmp_path))
    given = nets.inputs(model_of(""), 1, 3)
    answer = started(backend, model_of("torchnets.small:make")).run(given)
    np.testing.assert_allclose(answer["y"], given["a"] + given["b"], atol=1e-6)


@pytest.mark.parametrize(
    ("text", "what", "fix"),
    [
        (NET.replace("Net().eval()", "Net()"), "the network is in training form", "return it with .eval()"),
        (NET.replace("Net().eval()", "7"), "make() returns a int", "return a torch.nn.Module"),
        (NET.replace("Net().eval()", "1 / 0"), "make() gives no network: ZeroDivisionError", "call it in Python"),
        ("import layers\n", "make() gives no network: ModuleNotFoundError: No module named 'layers'", "call it"),
        ("def made(): ...", "make() gives no network: AttributeError", "call it in Python"),
        (
            NET.replace("{returned}", "(a, b)"),
            "the network returns 2 outputs, the study names 1: y",
            "name all of them",
        ),
        (NET.replace("{returned}", "{'yy': a}"), "the network has no output 'y'", "did you mean `yy`?"),
    ],
)
def test_a_function_that_breaks_its_contract_is_told_how_to_keep_it(
    backend: Backend, tmp_path: Path, text: str, what: str, fix: str
) -> None:
    (tmp_path / "layers.py").write_text("")  # beside the study, and yet not on the import path
    with pytest.raises(ModelError) as caught:
        backend.compile(written(tmp_path, text.replace("{returned}", "a")), WHOLE, CompileOptions(extra=EAGER))
    assert caught.value.what.startswith(what)
    assert caught.value.where.endswith("net.py:make")
    assert fix in caught.value.fix


def test_entries_share_a_network_for_as_long_as_one_of_them_is_open(backend: Backend, tmp_path: Path) -> None:
    count = f"with open({str(tmp_path / 'made')!r}, 'a') as file: file.write('.')\n    return Net()"
    model = written(tmp_path, NET.replace("{returned}", "a").replace("return Net()", count))
    first, second = started(backend, model), started(backend, model)
    assert (tmp_path / "made").read_text() == "."
    for entry in (first, second):
        entry.close()
    started(backend, model).close()
    assert (tmp_path / "made").read_text() == ".."


def test_a_study_without_a_torch_network_is_told_so(backend: Backend) -> None:
    with pytest.raises(ModelError, match="the study names no torch network") as caught:
        backend.compile(model_of(""), WHOLE, CompileOptions(extra=EAGER))
    assert caught.value.where == "model.torch"


def test_runtimes_that_read_onnx_are_told_that_there_is_none() -> None:
    with pytest.raises(ModelError, match="names no network that this runtime reads"):
        backends.factory("onnxruntime")().compile(model_of("net.py:make"), WHOLE, CompileOptions())


def test_memory_that_may_not_be_written_is_copied(backend: Backend, tmp_path: Path) -> None:
    model = written(tmp_path, NET.replace("{returned}", "a.add_(b)"))
    given = {name: np.frombuffer(array.tobytes(), np.float32).reshape(1, 5) for name, array in
             nets.inputs(model, 1, 5).items()}  # fmt: skip
    before = given["a"].copy()
    started(backend, model).run(given)
    np.testing.assert_array_equal(given["a"], before)


# --- exported programs --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> ModelFile:
    import backends_torch_nets

    return backends_torch_nets.twin(nets.line(tmp_path_factory.mktemp("line")))


class Bomb:
    """Unpickling it leaves a folder behind."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return os.mkdir, (self.path,)


def saved(value: object) -> bytes:
    """What torch.save makes of a value."""
    import torch

    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def rewritten(good: str, bad: Path, change: Callable[[dict[str, bytes]], None]) -> None:
    """A copy of an archive with ``change`` made to its parts, by name without the archive's own root."""
    with zipfile.ZipFile(good) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    root = next(iter(parts)).partition("/")[0] + "/"
    inner = {name.removeprefix(root): data for name, data in parts.items()}
    change(inner)
    with zipfile.ZipFile(bad, "w", zipfile.ZIP_STORED) as archive:
        for name, data in inner.items():
            archive.writestr(root + name, data)


def pickle_a_weight(parts: dict[str, bytes], bomb: Bomb) -> None:
    name = "data/weights/model_weights_config.json"
    parts[name] = parts[name].replace(b'"use_pickle": false', b'"use_pickle": true')
    parts["data/weights/weight_0"] = saved(bomb)


def pickle_an_object(parts: dict[str, bytes], bomb: Bomb) -> None:
    parts["data/constants/opaque_obj_0"] = pickle.dumps(bomb)


def pickle_the_examples(parts: dict[str, bytes], bomb: Bomb) -> None:
    parts["data/sample_inputs/model.pt"] = saved(bomb)


def pickle_all_weights(parts: dict[str, bytes], bomb: Bomb) -> None:
    parts["data/weights/model.pt"] = saved({"kernel": bomb})


def add_machine_code(parts: dict[str, bytes], bomb: Bomb) -> None:
    parts["data/aotinductor/model/net.so"] = b"\x7fELF"


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (pickle_a_weight, "a tensor as a pickle: "),
        (pickle_an_object, "an object as a pickle: "),
        (pickle_the_examples, "example inputs that are more than plain tensors: "),
        (pickle_all_weights, "weights as a pickle: "),
        (add_machine_code, "machine code: "),
    ],
)
def test_an_archive_that_would_be_unpickled_is_refused_unread(
    backend: Backend, line: ModelFile, tmp_path: Path, change: Callable[[dict[str, bytes], Bomb], None], what: str
) -> None:
    mark, bad = tmp_path / "exploded", tmp_path / "bad.pt2"
    rewritten(line.torch, bad, lambda parts: change(parts, Bomb(mark)))
    with pytest.raises(ModelError) as caught:
        backend.compile(nets_line(line, bad), WHOLE, CompileOptions(extra=EAGER))
    assert caught.value.what.startswith(f"the exported program holds {what}")
    assert not mark.exists()


def nets_line(line: ModelFile, path: Path) -> ModelFile:
    return ModelFile(path="", sha256="", spec=line.spec, dim_names=line.dim_names, torch=str(path))


def test_the_same_archive_unchanged_is_read(backend: Backend, line: ModelFile, tmp_path: Path) -> None:
    rewritten(line.torch, tmp_path / "same.pt2", lambda parts: None)
    given = nets.inputs(line, 1, 9)
    answer = started(backend, nets_line(line, tmp_path / "same.pt2")).run(given)
    np.testing.assert_allclose(answer["y"], nets.line_reference(given)["y"], atol=1e-5)


def test_torch_would_have_run_the_pickle_of_the_examples(line: ModelFile, tmp_path: Path) -> None:
    """Why the archive is searched first: torch's own reader falls back to unpickling."""
    import torch

    mark, bad = tmp_path / "exploded", tmp_path / "bad.pt2"
    rewritten(line.torch, bad, lambda parts: pickle_the_examples(parts, Bomb(mark)))
    with contextlib.suppress(Exception):  # what it got is no example input, and it says so afterwards
        torch.export.load(bad)
    assert mark.exists()


# --- options and precision ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "kind", "said"),
    [
        ({"extra": {"recompile_limit": "few"}}, "unknown-option", "recompile_limit = 'few': give a whole number"),
        ({"extra": {"recompile_limit": "0"}}, "unknown-option", "give a whole number from 1"),
        ({"extra": EAGER | {"dynamic": "always"}}, "unsupported", "option dynamic means nothing in eager mode"),
        ({"extra": EAGER | {"recompile_limit": "3"}}, "unsupported", "option recompile_limit means nothing"),
        ({"extra": EAGER, "optimisation": "off"}, "unsupported", "eager mode has no graph-optimisation levels"),
        ({"optimisation": "extended"}, "unsupported", "the levels off, basic and all; 'extended' is none of them"),
    ],
)
def test_what_has_no_meaning_is_a_failure(
    backend: Backend, line: ModelFile, options: dict[str, object], kind: str, said: str
) -> None:
    failure = refused(backend, line, **options)
    assert failure.kind == kind
    assert said in failure.message


def test_without_a_compiler_compiling_fails_and_is_never_eager(
    backend: Backend, line: ModelFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    failure = refused(backend, line)
    assert (failure.kind, failure.message) == (
        "unsupported",
        "Inductor needs a C++ compiler: no-such-compiler is not installed",
    )
    able = {ability.name: ability.ok for ability in backend.info().abilities}
    assert (able["mode compile"], able["mode eager"], able["graph-optimisation levels"]) == (False, True, False)
    assert started(backend, line).events() == ()


def test_f32_is_not_made_out_of_another_type(backend: Backend, tmp_path: Path) -> None:
    text = NET.replace("Net().eval()", "torch.nn.Linear(3, 3).bfloat16().eval()")
    failure = refused(backend, written(tmp_path, text), precision="f32", extra=EAGER)
    assert failure.message == "the network's weights are bf16, not f32"


def test_half_precision_is_what_the_kernels_say(backend: Backend, line: ModelFile) -> None:
    if not next(a.ok for a in backend.info().abilities if a.name == "precision bf16"):
        assert refused(backend, line, precision="bf16", extra=EAGER).kind == "unsupported"
        return
    entry, given = started(backend, line, precision="bf16"), nets.inputs(line, 2, 16)
    found = entry.inspect(given)
    assert {op.kind: op.precision for op in found.operators}["conv1d"] == "bf16"
    answer, want = entry.run(given)["y"], nets.line_reference(given)["y"]
    assert answer.dtype == np.float32
    assert 0 < np.abs(answer - want).max() < 3e-2 * np.abs(want).max()


@pytest.mark.parametrize(
    ("entry", "extra", "shapes"),
    [
        (nets.entry("dynamic", (3,), (40,), (1, 4)), {}, [(4, 40), (2, 21), (1, 21)]),
        (nets.entry("dynamic", (1,), (2,), (1, 1)), {}, [(1, 2)]),
        (nets.entry("dynamic", (7, 9), (8, 9), (1, 1)), {}, [(1, 8, 9), (1, 7, 9)]),
        (nets.entry("bucket", (3,), (40,), (1, 4)), {}, [(4, 40), (2, 40), (1, 40)]),
        (nets.entry("bucket", (3,), (40,), (2, 2)), {}, [(2, 40)]),
        (nets.entry("dynamic", (3,), (40,), (1, 4)), {"dynamic": "never"}, [(4, 40)]),
        (nets.entry("dynamic", (3,), (40,), (1, 4)), EAGER, [(4, 40)]),
    ],
)
def test_compiling_runs_the_ends_that_torch_must_see(entry, extra, shapes) -> None:
    assert list(rehearsal(entry, extra)) == shapes


# --- torch's words in ours ----------------------------------------------------------------------------------


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
