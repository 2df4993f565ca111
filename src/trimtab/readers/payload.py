"""What requests carry: recipes that a worker process unpickles and fills by itself.

Kinds: *real* (recorded inputs), *rendered* (made to look like real ones), *random* (numbers from a seed: they may time,
they never judge quality). Real and rendered payloads come from a bank: an .npz file of plain arrays, each named
``<input>/<key>`` and broadcastable to the input's shape at its true dims with a batch of 1. All inputs of one request
share a key; payload ids count the keys in sorted order.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.bank import DTYPES, filled, shape_of
from trimtab.domain.noun import BATCH
from trimtab.domain.ports import Payloads
from trimtab.domain.study import InputSpec, ModelSpec, PayloadSpec, Study
from trimtab.domain.workload import PayloadKind
from trimtab.errors import DataError
from trimtab.readers._bank import Bank, BankFile, read_bank

RANDOM_IDS = 64
"""How many different random payloads there are of one shape: request i carries i modulo this."""

_SMALL = {"u8": 256, "bool": 2}
_FEW = 100


def payloads_of(study: Study, folder: Path) -> Payloads:
    """The recipe that the study declares. DataError if its bank is missing or broken."""
    spec = study.workload.payload
    if spec.kind == "random":
        return RandomPayloads(study.model, study.dim_names, study.seeds.payload)
    bank = open_bank(study, folder)
    return BankPayloads(folder / spec.bank, spec, study.model, study.dim_names, bank.keys)


def open_bank(study: Study, folder: Path) -> Bank:
    """The bank's keys and what dims each has, read from the headers alone."""
    return read_bank(folder / study.workload.payload.bank, study.model, study.dim_names)


def assign(bank: Bank, dims: NDArray[np.int64], seed: int) -> NDArray[np.int32]:
    """A payload id for each request: one of those whose dims equal its own, drawn from ``seed``.

    DataError names the first shape that no payload has, and how many requests have such shapes.
    """
    ids: dict[tuple[int, ...], list[int]] = {}
    for number, key_dims in enumerate(bank.dims):
        ids.setdefault(key_dims, []).append(number)
    shapes, kind = np.unique(dims, axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    missing = [k for k, shape in enumerate(shapes) if tuple(shape.tolist()) not in ids]
    if missing:
        without = np.isin(kind, missing)
        first = int(np.argmax(without))
        named = ", ".join(f"{n} = {v}" for n, v in zip(bank.dim_names, dims[first].tolist(), strict=True))
        raise DataError(
            f"no payload for {named} (request {first}); {int(without.sum())} requests, {len(missing)} shapes have none",
            where=f"{bank.path}; workload.payload.bank",
            fix="add arrays of these shapes to the bank, or filter the trace to shapes that it has",
        )
    out = np.empty(len(dims), dtype=np.int32)
    generator = np.random.default_rng(seed)
    for k, shape in enumerate(shapes):
        rows = np.flatnonzero(kind == k)
        out[rows] = generator.choice(np.asarray(ids[tuple(shape.tolist())], dtype=np.int32), size=rows.size)
    return out


def random_ids(count: int) -> NDArray[np.int32]:
    """Payload ids of ``count`` requests that carry random numbers."""
    return (np.arange(count) % RANDOM_IDS).astype(np.int32)


class RandomPayloads:
    """Uniform numbers in [0, 1) for float inputs, integers in the input's own range for the others; the same id and
    dims, the same numbers, whatever was asked before."""

    kind: PayloadKind = "random"

    def __init__(self, model: ModelSpec, dim_names: tuple[str, ...], seed: int) -> None:
        self._model, self._dim_names, self._seed = model, dim_names, seed

    def request(self, payload: int, dims: tuple[int, ...]) -> dict[str, NDArray[Any]]:
        """Inputs of one request at its true dims, batch axis of length 1."""
        generator = np.random.default_rng((self._seed, payload, *dims))
        return {spec.name: _random(generator, spec, _shape(spec, self._dim_names, dims)) for spec in self._model.inputs}


class BankPayloads:
    """Arrays of a bank, scaled and cast; ``kind`` is what the study says of them."""

    def __init__(
        self, path: Path, spec: PayloadSpec, model: ModelSpec, dim_names: tuple[str, ...], keys: tuple[str, ...]
    ) -> None:
        self.kind: PayloadKind = spec.kind
        self._file = BankFile(path)
        self._path, self._spec, self._model, self._dim_names, self._keys = path, spec, model, dim_names, keys

    def request(self, payload: int, dims: tuple[int, ...]) -> dict[str, NDArray[Any]]:
        """Inputs of one request at its true dims, batch axis of length 1."""
        if not 0 <= payload < len(self._keys):
            raise DataError(
                f"there is no payload {payload}; the bank has {len(self._keys)}",
                where=f"{self._path}; workload.payload.bank",
                fix="read the workload again with this bank",
            )
        key = self._keys[payload]
        return {spec.name: self._array(spec, key, dims) for spec in self._model.inputs}

    def _array(self, spec: InputSpec, key: str, dims: tuple[int, ...]) -> NDArray[Any]:
        raw = self._file.array(f"{spec.name}/{key}")
        shape = _shape(spec, self._dim_names, dims)
        try:
            return filled(raw, spec, shape, self._spec.scale, self._spec.offset)
        except ValueError as error:
            raise DataError(
                f"array {spec.name}/{key} has shape {list(raw.shape)}, the request needs {list(shape)}",
                where=f"{self._path}; workload.payload.bank",
                fix="read the workload again with this bank",
            ) from error


def _shape(spec: InputSpec, dim_names: tuple[str, ...], dims: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of one input of one request: named dims replaced by ``dims``, the batch axis by 1."""
    sizes = {BATCH: 1, **dict(zip(dim_names, dims, strict=True))}
    return shape_of(spec, sizes)


def _random(generator: np.random.Generator, spec: InputSpec, shape: tuple[int, ...]) -> NDArray[Any]:
    dtype = DTYPES[spec.dtype]
    if spec.dtype in ("f32", "f16"):
        return generator.random(shape, dtype=np.float32).astype(dtype)
    lowest, highest = spec.random or (0, _SMALL.get(spec.dtype, _FEW) - 1)
    return generator.integers(lowest, highest, size=shape, endpoint=True).astype(dtype)
