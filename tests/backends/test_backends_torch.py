"""What only torch does, without compiling: networks that functions make, plain options, precision."""

from __future__ import annotations

from pathlib import Path

import backends_nets as nets
import numpy as np
import pytest

from trimtab import backends
from trimtab.backends.torch import rehearsal
from trimtab.domain.ports import Backend, CompiledEntry, ModelFile
from trimtab.domain.profile import CompileFailure, CompileOptions
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


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> ModelFile:
    import backends_torch_nets

    return backends_torch_nets.twin(nets.line(tmp_path_factory.mktemp("line")))


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
