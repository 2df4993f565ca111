"""One contract for every runtime. What a runtime cannot do is a mark that says why."""

from __future__ import annotations

import gc
import multiprocessing
import pickle
from pathlib import Path

import backends_nets as nets
import msgspec
import numpy as np
import pytest
from backends_kit import ACCURACY, COMPUTES_NOTHING, MISSING, READS_NOTHING, Eager, compiled, every

from trimtab import backends
from trimtab.domain.ports import Backend, ModelFile
from trimtab.domain.profile import CompileFailure, CompileOptions
from trimtab.domain.study import InputSpec, OutputSpec
from trimtab.errors import ModelError, StudyError


@pytest.fixture(scope="session")
def made() -> dict[str, Backend]:
    found = {name: backends.factory(name)() for name in backends.names() if name not in MISSING}
    return found | {name: Eager(backend) for name, backend in found.items() if name == "torch"}


def with_twin(model: ModelFile) -> ModelFile:
    """``model`` with its torch network, where torch is installed."""
    if "torch" in MISSING:
        return model
    import backends_torch_nets

    return backends_torch_nets.twin(model)


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ModelFile]:
    folder = tmp_path_factory.mktemp("nets")
    return {name: with_twin(write(folder)) for name, (write, _) in nets.NETS.items()}


@pytest.mark.parametrize(
    ("net", "lo", "hi", "runs"),
    [
        ("line", (3,), (40,), [(1, 3), (2, 17), (4, 40), (1, 3)]),
        ("words", (1,), (30,), [(1, 1), (3, 30), (2, 7)]),
        ("image", (2, 2), (20, 30), [(1, 2, 2), (2, 20, 30), (4, 9, 13)]),
    ],
)
@every(null=COMPUTES_NOTHING)
def test_a_dynamic_entry_covers_its_range_and_agrees_with_numpy(name, net, lo, hi, runs, made, models) -> None:
    model, reference = models[net], nets.NETS[net][1]
    program = compiled(made[name].compile(model, nets.entry("dynamic", lo, hi, (1, 4)), CompileOptions()))
    for executed in runs:
        given = nets.inputs(model, *executed)
        want, got = reference(given)["y"], program.run(given)["y"]
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, atol=ACCURACY[name] * np.abs(want).max())


@pytest.mark.parametrize("kind", ["static", "bucket"])
@pytest.mark.parametrize(
    ("net", "hi", "others"),
    [("line", (24,), [(1, 23), (1, 25)]), ("words", (8,), [(1, 4)]), ("image", (8, 6), [(1, 6, 8), (1, 8, 5)])],
)
@every(null=COMPUTES_NOTHING)
def test_a_fixed_entry_runs_its_one_shape_and_refuses_others(name, net, hi, others, kind, made, models) -> None:
    model, reference = models[net], nets.NETS[net][1]
    lo = hi if kind == "static" else tuple(1 for _ in hi)
    program = compiled(made[name].compile(model, nets.entry(kind, lo, hi), CompileOptions()))
    for other in others:
        with pytest.raises(ValueError, match="was compiled for"):
            program.run(nets.inputs(model, *other))
    given = nets.inputs(model, 1, *hi)
    want = reference(given)["y"]
    np.testing.assert_allclose(program.run(given)["y"], want, atol=ACCURACY[name] * np.abs(want).max())


@every()
def test_a_batch_with_one_size_is_fixed_and_with_two_is_a_range(name, made, models) -> None:
    model = models["line"]
    four = compiled(made[name].compile(model, nets.entry("static", (9,), (9,), (4, 4)), CompileOptions()))
    assert four.run(nets.inputs(model, 4, 9))["y"].shape[0] == 4
    with pytest.raises(ValueError, match="compiled for batch = 4, not 3"):
        four.run(nets.inputs(model, 3, 9))
    some = compiled(made[name].compile(model, nets.entry("static", (9,), (9,), (1, 4)), CompileOptions()))
    assert [some.run(nets.inputs(model, n, 9))["y"].shape[0] for n in (1, 4, 2)] == [1, 4, 2]


@every()
def test_outputs_depend_on_inputs_and_are_not_overwritten_by_the_next_run(name, made, models) -> None:
    model = models["line"]
    program = compiled(made[name].compile(model, nets.entry("dynamic", (1,), (40,)), CompileOptions()))
    given = nets.inputs(model, 1, 12, seed=1)
    untouched = given["x"].copy()
    first = program.run(given)["y"]
    kept = first.copy()
    second = program.run(nets.inputs(model, 1, 12, seed=2))["y"]
    np.testing.assert_array_equal(first, kept)
    np.testing.assert_array_equal(given["x"], untouched)
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(program.run(given)["y"], first)


@every()
def test_inputs_need_not_be_contiguous(name, made, models) -> None:
    model = models["line"]
    program = compiled(made[name].compile(model, nets.entry("dynamic", (1,), (40,)), CompileOptions()))
    wide = nets.inputs(model, 1, 24)["x"]
    np.testing.assert_array_equal(
        program.run({"x": wide[:, :, ::2]})["y"], program.run({"x": wide[:, :, ::2].copy()})["y"]
    )


@every()
def test_arrays_that_contradict_the_study_are_refused_before_the_runtime_sees_them(name, made, models) -> None:
    model = models["words"]
    program = compiled(made[name].compile(model, nets.entry("dynamic", (1,), (9,)), CompileOptions()))
    given = nets.inputs(model, 1, 5)
    with pytest.raises(ValueError, match="'mask' is missing"):
        program.run({"ids": given["ids"]})
    with pytest.raises(ValueError, match="length should be 5"):
        program.run(given | {"mask": given["mask"][:, :4]})
    with pytest.raises(ValueError, match="rank 2, the study says 3"):
        program.run(given | {"mask": given["mask"][:, :, 0]})


@pytest.mark.parametrize(("net", "executed"), [("line", (2, 16)), ("words", (1, 6)), ("image", (1, 8, 8))])
@every()
def test_inspection_names_operators_kernels_and_precision(name, net, executed, made, models) -> None:
    model = models[net]
    ones = tuple(1 for _ in model.dim_names)
    whole = nets.entry("dynamic", ones, tuple(64 for _ in ones), (1, 4))
    program = compiled(made[name].compile(model, whole, CompileOptions()))
    found = program.inspect(nets.inputs(model, *executed))
    assert found.executed == executed
    assert found.operators_before >= 1
    assert all(op.name and op.kind and op.kernel and op.precision and op.ns >= 0 for op in found.operators)
    assert sum(found.precision_share().values()) == pytest.approx(1)
    assert program.run(nets.inputs(model, *executed))["y"].shape[0] == executed[0], "still usable after inspection"


@every(null=COMPUTES_NOTHING, torch="nothing is folded in eager mode")
def test_inspection_shows_that_relu_was_folded_into_the_convolution(name, made, models) -> None:
    model = models["line"]
    program = compiled(made[name].compile(model, nets.entry("dynamic", (1,), (40,)), CompileOptions()))
    found = program.inspect(nets.inputs(model, 1, 16))
    assert [op.fused for op in found.operators if "Conv" in op.kind] == [("y",)]
    assert found.fusions == 1


@every()
def test_an_unknown_option_is_a_failure_with_a_suggestion(name, made, models) -> None:
    whole = nets.entry("dynamic", (1,), (40,))
    known = {
        "iree": "fusion",
        "null": "first_us",
        "onnxruntime": "spinning",
        "openvino": "bounds",
        "torch": "dynamic",
    }[name]
    failure = made[name].compile(models["line"], whole, CompileOptions(extra={known[:-1]: "1"}))
    assert isinstance(failure, CompileFailure)
    assert (failure.entry, failure.kind) == ("dynamic-entry", "unknown-option")
    assert f"did you mean `{known}`" in failure.message


@every()
def test_an_option_with_a_value_that_means_nothing_is_a_failure(name, made, models) -> None:
    option = {
        "iree": "fusion",
        "null": "mode",
        "onnxruntime": "arena",
        "openvino": "bounds",
        "torch": "mode",
    }[name]
    failure = made[name].compile(
        models["line"], nets.entry("dynamic", (1,), (40,)), CompileOptions(extra={option: "perhaps"})
    )
    assert isinstance(failure, CompileFailure)
    assert failure.kind == "unknown-option"
    assert "perhaps" in failure.message


@every()
def test_int8_of_a_float_network_is_unsupported_not_ignored(name, made, models) -> None:
    failure = made[name].compile(models["line"], nets.entry("dynamic", (1,), (40,)), CompileOptions(precision="int8"))
    assert isinstance(failure, CompileFailure)
    assert failure.kind == "unsupported"


def changed(model: ModelFile, **parts: object) -> ModelFile:
    return msgspec.structs.replace(model, spec=msgspec.structs.replace(model.spec, **parts))


@pytest.mark.parametrize(
    ("parts", "what", "fix"),
    [
        ({"inputs": (InputSpec(name="xx", shape=("batch", 2, "width")),)}, "no input 'xx'", "did you mean `x`?"),
        ({"inputs": (InputSpec(name="x", shape=("batch", 3, "width")),)}, "fixes axis 1 of input 'x' at 2", "write 2"),
        ({"inputs": (InputSpec(name="x", shape=("batch", "width")),)}, "has rank 3", "[open, 2, open]"),
        ({"inputs": (InputSpec(name="x", shape=("batch", 2, "width"), dtype="i64"),)}, "is f32", 'dtype = "f32"'),
        ({"outputs": (OutputSpec(name="yy"),)}, "no output 'yy'", "did you mean `y`?"),
    ],
)
@every(null=READS_NOTHING)
def test_a_study_that_contradicts_the_network_is_told_what_where_and_how_to_fix(
    name, parts, what, fix, made, models
) -> None:
    with pytest.raises(ModelError) as caught:
        made[name].compile(changed(models["line"], **parts), nets.entry("dynamic", (1,), (40,)), CompileOptions())
    assert what in caught.value.what
    assert caught.value.where.endswith(("line.onnx", "line.pt2"))
    assert fix in caught.value.fix


@every(null=READS_NOTHING)
def test_an_input_that_the_study_forgot_is_named(name, made, models) -> None:
    half = changed(models["words"], inputs=models["words"].spec.inputs[:1])
    with pytest.raises(ModelError, match="input 'mask' is not in the study"):
        made[name].compile(half, nets.entry("dynamic", (1,), (9,)), CompileOptions())


@pytest.mark.parametrize(
    ("content", "what"), [(None, "does not exist"), (b"", "is empty"), (b"not a network " * 9, "read")]
)
@every(null=READS_NOTHING)
def test_a_missing_or_broken_file_is_a_model_error(name, content, what, made, models, tmp_path: Path) -> None:
    paths = [tmp_path / "broken.onnx", tmp_path / "broken.pt2"]
    for path in paths if content is not None else ():
        path.write_bytes(content)
    model = msgspec.structs.replace(models["line"], path=str(paths[0]), torch=str(paths[1]))
    with pytest.raises(ModelError, match=what):
        made[name].compile(model, nets.entry("dynamic", (1,), (40,)), CompileOptions())


@pytest.mark.parametrize(
    ("kind", "lo", "hi", "batch", "what"),
    [
        ("static", (8,), (9,), (1, 1), "lo and hi differ"),
        ("dynamic", (9,), (8,), (1, 1), "width runs from 9 to 8"),
        ("dynamic", (0,), (8,), (1, 1), "width runs from 0 to 8"),
        ("dynamic", (1,), (8,), (4, 2), "batch runs from 4 to 2"),
        ("dynamic", (1, 1), (8, 8), (1, 1), "gives 2 lower and 2 upper dims, the model has 1"),
    ],
)
@every()
def test_an_entry_that_makes_no_sense_is_a_study_error(name, kind, lo, hi, batch, what, made, models) -> None:
    with pytest.raises(StudyError, match=what):
        made[name].compile(models["line"], nets.entry(kind, lo, hi, batch), CompileOptions())


@every()
def test_a_closed_entry_refuses_to_run(name, made, models) -> None:
    model = models["line"]
    program = compiled(made[name].compile(model, nets.entry("dynamic", (1,), (40,)), CompileOptions()))
    program.close()
    program.close()
    with pytest.raises(RuntimeError, match="closed"):
        program.run(nets.inputs(model, 1, 8))


def resident() -> float:
    """MiB of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


@every(null="holds no memory")
def test_closing_gives_the_memory_back(name, made, models, tmp_path: Path) -> None:
    big = with_twin(nets.heavy(tmp_path, mib=48))
    before = resident()
    program = compiled(made[name].compile(big, nets.entry("dynamic", (1,), (4,)), CompileOptions()))
    program.run(nets.inputs(big, 1, 2))
    held = resident() - before
    program.close()
    gc.collect()
    assert held > 20
    assert resident() - before < held / 2


def in_a_worker(pickled: bytes, model: ModelFile) -> tuple[str, tuple[int, ...]]:
    backend = pickle.loads(pickled)()  # noqa: S301 - our own bytes
    options = CompileOptions(extra={"mode": "eager"} if backend.name == "torch" else {})
    program = backend.compile(model, nets.entry("dynamic", (1,), (40,)), options)
    return backend.name, program.run(nets.inputs(model, 1, 12))["y"].shape


def test_a_factory_survives_the_way_into_a_spawned_worker(models) -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for name in [name for name in backends.names() if name not in MISSING]:
            said, shape = pool.apply(in_a_worker, (pickle.dumps(backends.factory(name)), models["line"]))
            assert said == name
            assert shape[0] == 1


@every()
def test_info_names_the_versions_and_has_a_reason_for_each_ability(name) -> None:
    found = backends.info(name)
    assert (found.name, found.available) == (name, True)
    assert found.versions
    assert all(ability.why for ability in found.abilities)
