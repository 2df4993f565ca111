"""Payloads: the recipe is small and picklable, the numbers depend on nothing but the seed and the id."""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path

import msgspec
import numpy as np
import pytest
from readers_kit import study, write

from trimtab.domain.ports import Payloads
from trimtab.domain.study import DimSpec, InputSpec, PayloadSpec, ShapeSource
from trimtab.errors import DataError
from trimtab.readers import _bank
from trimtab.readers.payload import BankPayloads, RandomPayloads, assign, open_bank, payloads_of
from trimtab.readers.traffic import read_workload

BANK = PayloadSpec(kind="rendered", bank="bank.npz", scale=1 / 255, offset=-0.5)


def line(width: int, value: int) -> np.ndarray:
    return np.full((4, width), value, dtype=np.uint8)


def sent(recipe: Payloads) -> Payloads:
    """The recipe as a worker gets it."""
    return pickle.loads(pickle.dumps(recipe))  # noqa: S301 - our own bytes


def banked(folder: Path, **arrays: np.ndarray):
    np.savez_compressed(folder / "bank.npz", **{name.replace("__", "/"): array for name, array in arrays.items()})
    return study(payload=BANK)


def refusal(folder: Path, spec=None) -> str:
    with pytest.raises(DataError) as caught:
        open_bank(spec or study(payload=BANK), folder)
    assert str(folder / "bank.npz") in caught.value.where
    return caught.value.what


def test_a_bank_gives_scaled_inputs_at_true_dims(tmp_path: Path) -> None:
    spec = banked(tmp_path, x__b=line(7, 255), x__a=line(5, 51))
    assert (open_bank(spec, tmp_path).keys, open_bank(spec, tmp_path).dims) == (("a", "b"), ((5,), (7,)))
    recipe = payloads_of(spec, tmp_path)
    assert isinstance(recipe, BankPayloads)
    assert recipe.kind == "rendered"
    x = recipe.request(0, (5,))["x"]
    assert (x.shape, x.dtype) == ((1, 3, 4, 5), np.dtype("float32"))
    assert np.all(x == np.float32(51 / 255 - 0.5))


@pytest.mark.parametrize("shape", [(5,), (4, 5), (1, 1, 5), (3, 1, 5), (1, 3, 4, 5)])
def test_an_array_may_leave_out_what_repeats(tmp_path: Path, shape: tuple[int, ...]) -> None:
    spec = banked(tmp_path, x__a=np.ones(shape, dtype=np.float32))
    assert open_bank(spec, tmp_path).dims == ((5,),)
    assert payloads_of(spec, tmp_path).request(0, (5,))["x"].shape == (1, 3, 4, 5)


def test_the_recipe_travels_small_and_opens_the_bank_where_it_arrives(tmp_path: Path) -> None:
    spec = banked(tmp_path, x__a=line(900, 9))
    recipe = payloads_of(spec, tmp_path)
    recipe.request(0, (900,))
    assert len(pickle.dumps(recipe)) < 2500
    assert np.array_equal(sent(recipe).request(0, (900,))["x"], recipe.request(0, (900,))["x"])


def test_each_request_gets_a_payload_of_its_own_dims_the_same_for_the_same_seed(tmp_path: Path) -> None:
    spec = banked(tmp_path, **{f"x__{k:02}": line(5 if k % 2 else 7, k) for k in range(20)})
    bank = open_bank(spec, tmp_path)
    dims = np.array([[5], [7], [7], [5]] * 50)
    ids = assign(bank, dims, seed=2)
    assert [bank.dims[k] for k in ids] == [tuple(row) for row in dims.tolist()]
    assert len(set(ids.tolist())) == 20
    assert np.array_equal(ids, assign(bank, dims, seed=2))
    assert not np.array_equal(ids, assign(bank, dims, seed=3))


def test_a_shape_without_a_payload_is_named(tmp_path: Path) -> None:
    spec = banked(tmp_path, x__a=line(5, 1))
    with pytest.raises(DataError) as caught:
        assign(open_bank(spec, tmp_path), np.array([[5], [8], [9], [8]]), seed=1)
    assert caught.value.what == "no payload for width = 8 (request 1); 3 requests, 2 shapes have none"


def test_a_workload_carries_the_ids_and_names_the_bank(tmp_path: Path) -> None:
    spec = banked(tmp_path, x__a=line(5, 1), x__b=line(7, 2), x__c=line(9, 2))
    write(tmp_path / "trace.csv", "t,w\n0,7\n1,5\n2,7\n")
    load = read_workload(spec, tmp_path)
    assert load.payload_kind == "rendered"
    assert load.payload.tolist() == [1, 0, 1]
    assert [(f.name, f.rows, f.used) for f in load.provenance.files] == [("trace.csv", 3, 3), ("bank.npz", 3, 2)]


def two_inputs(folder: Path, **arrays: np.ndarray):
    spec = banked(folder, **arrays)
    inputs = (
        InputSpec(name="ids", shape=("batch", "width"), dtype="i64"),
        InputSpec(name="side", shape=("batch", "width", "depth"), dtype="f16"),
    )
    dims = {"depth": DimSpec(lo=1, hi=9), "width": DimSpec(lo=1, hi=9)}
    return msgspec.structs.replace(spec, model=msgspec.structs.replace(spec.model, inputs=inputs), dims=dims)


def test_inputs_of_one_request_share_a_key(tmp_path: Path) -> None:
    spec = two_inputs(tmp_path, ids__a=np.arange(4), side__a=np.ones((4, 2)), other__z=np.ones(3))
    assert open_bank(spec, tmp_path).dims == ((2, 4),)
    made = payloads_of(
        msgspec.structs.replace(
            spec,
            workload=msgspec.structs.replace(
                spec.workload,
                payload=PayloadSpec(kind="real", bank="bank.npz"),
                shapes=ShapeSource(dims={"depth": "d", "width": "w"}),
            ),
        ),
        tmp_path,
    ).request(0, (2, 4))
    assert (made["ids"].tolist(), made["ids"].dtype) == ([[0, 1, 2, 3]], np.dtype("int64"))
    assert (made["side"].shape, made["side"].dtype) == ((1, 4, 2), np.dtype("float16"))


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"ids__a": np.arange(4)}, "there is no array side/a"),
        ({"ids__a": np.arange(4), "side__a": np.ones((5, 2))}, "side/a: width is 5, another input of this key has 4"),
        ({"ids__a": np.ones((2, 4)), "side__a": np.ones((4, 2))}, "ids/a has shape [2, 4], which does not fit"),
        ({"ids__a": np.ones((1, 1, 4)), "side__a": np.ones((4, 2))}, "ids/a has 3 axes, the input has 2"),
        ({"ids__a": np.ones(4), "side__a": np.ones(())}, "the arrays of 'a' do not show the dim 'depth'"),
        ({"ids__a": np.ones(4, dtype="c16"), "side__a": np.ones(4)}, "ids/a.npy holds complex128, not real numbers"),
        ({"ids__a": np.array(["x"]), "side__a": np.ones(4)}, "ids/a.npy holds <U1, not real numbers"),
        ({"idz__a": np.ones(4)}, "the bank has no array for any input"),
    ],
)
def test_a_bank_that_does_not_fit_is_refused(tmp_path: Path, arrays: dict[str, np.ndarray], said: str) -> None:
    assert refusal(tmp_path, two_inputs(tmp_path, **arrays)).startswith(said)


def test_python_objects_are_never_loaded(tmp_path: Path) -> None:
    class Boom:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (pytest.fail, ("the bank was unpickled",))

    spec = banked(tmp_path, x__a=np.array([Boom()], dtype=object))
    assert refusal(tmp_path, spec) == "x/a.npy holds Python objects"
    recipe = BankPayloads(tmp_path / "bank.npz", BANK, spec.model, spec.dim_names, ("a",))
    with pytest.raises(DataError, match="holds Python objects"):
        recipe.request(0, (1,))


def npy(shape: tuple[int, ...], data: bytes) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": "|u1", "fortran_order": False, "shape": shape})
    return out.getvalue() + data


@pytest.mark.parametrize(
    ("member", "said"),
    [
        (npy((1 << 31,), b""), "x/a.npy unpacks to 2048 MiB"),
        (npy((1 << 62, 4), b""), "x/a.npy unpacks to"),
        (npy((9,), b"12345678"), "x/a.npy declares 9 bytes and has 8"),
        (npy((7,), b"12345678"), "x/a.npy declares 7 bytes and has 8"),
        (b"\x93NUMPY\x01\x00", "not a readable .npz file"),
        (b"not an array", "not a readable .npz file"),
        (b"", "not a readable .npz file"),
    ],
)
def test_a_header_that_lies_is_refused(tmp_path: Path, member: bytes, said: str) -> None:
    with zipfile.ZipFile(tmp_path / "bank.npz", "w") as archive:
        archive.writestr("x/a.npy", member)
    assert refusal(tmp_path).startswith(said)


def test_a_bank_that_unpacks_too_far_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = banked(tmp_path, x__a=np.zeros((4, 500), dtype=np.uint8), x__b=np.zeros((4, 500), dtype=np.uint8))
    monkeypatch.setattr(_bank, "LARGEST_BANK", 4000)
    assert refusal(tmp_path, spec).startswith("the bank unpacks to")


@pytest.mark.parametrize("keep", [0, 10, -30])
def test_a_torn_bank_is_refused(tmp_path: Path, keep: int) -> None:
    banked(tmp_path, x__a=line(500, 1))
    data = (tmp_path / "bank.npz").read_bytes()
    (tmp_path / "bank.npz").write_bytes(data[:keep])
    assert refusal(tmp_path).startswith("bank.npz is empty" if keep == 0 else "not a readable .npz file")


def test_a_bank_altered_after_it_was_read_is_refused_by_the_worker(tmp_path: Path) -> None:
    spec = banked(tmp_path, x__a=line(5, 1))
    recipe = payloads_of(spec, tmp_path)
    banked(tmp_path, x__a=line(6, 1))
    with pytest.raises(DataError, match=r"x/a has shape \[4, 6\], the request needs \[1, 3, 4, 5\]"):
        recipe.request(0, (5,))
    with pytest.raises(DataError, match="there is no payload 1; the bank has 1"):
        recipe.request(1, (5,))
    (tmp_path / "bank.npz").unlink()
    with pytest.raises(DataError, match=r"there is no file bank\.npz"):
        sent(recipe).request(0, (5,))


def test_random_payloads_depend_on_seed_id_and_dims_alone() -> None:
    spec = study()
    recipe = payloads_of(spec, Path())
    assert isinstance(recipe, RandomPayloads)
    x = recipe.request(3, (5,))["x"]
    assert (x.shape, x.dtype, recipe.kind) == ((1, 3, 4, 5), np.dtype("float32"), "random")
    assert x.min() >= 0
    assert x.max() < 1
    recipe.request(9, (7,))
    assert np.array_equal(sent(recipe).request(3, (5,))["x"], x)
    assert not np.array_equal(recipe.request(4, (5,))["x"], x)
    assert not np.array_equal(RandomPayloads(spec.model, spec.dim_names, 99).request(3, (5,))["x"], x)


@pytest.mark.parametrize(("dtype", "top"), [("i64", 99), ("i32", 99), ("u8", 255), ("bool", 1), ("f16", 1)])
def test_random_values_fit_the_dtype(dtype: str, top: int) -> None:
    spec = study()
    inputs = (InputSpec(name="x", shape=("batch", 50, "width"), dtype=dtype),)  # type: ignore[arg-type]
    model = msgspec.structs.replace(spec.model, inputs=inputs)
    x = RandomPayloads(model, spec.dim_names, 1).request(0, (40,))["x"]
    assert x.dtype == np.dtype({"i64": "int64", "i32": "int32", "u8": "uint8", "bool": "bool", "f16": "float16"}[dtype])
    assert float(x.min()) >= 0
    assert top * 0.9 <= float(x.max()) <= top


@pytest.mark.parametrize(
    ("dtype", "lowest", "highest"), [("i64", 1, 1), ("i64", -5, 5), ("i32", 0, 30_000), ("u8", 7, 9)]
)
def test_random_integers_keep_to_the_range_that_the_study_gives(dtype: str, lowest: int, highest: int) -> None:
    spec = study()
    given = InputSpec(name="x", shape=("batch", 50, "width"), dtype=dtype, random=(lowest, highest))  # type: ignore[arg-type]
    model = msgspec.structs.replace(spec.model, inputs=(given,))
    x = RandomPayloads(model, spec.dim_names, 1).request(0, (4000,))["x"].astype(np.int64)
    span = highest - lowest
    assert lowest <= x.min() <= lowest + span / 100
    assert highest - span / 100 <= x.max() <= highest
