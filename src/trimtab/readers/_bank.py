"""The .npz bank, opened with suspicion: plain arrays only, headers before contents, a limit on the unpacked size."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.bank import keys_of
from trimtab.domain.noun import BATCH
from trimtab.domain.study import InputSpec, ModelSpec
from trimtab.errors import DataError
from trimtab.readers._file import near, require_file

LARGEST_ARRAY = 1 << 30
LARGEST_BANK = 8 << 30
_KEY = "workload.payload.bank"


class Bank(NamedTuple):
    """What a bank holds: ``keys`` in sorted order (a payload id is a position), and the dims of each."""

    path: Path
    dim_names: tuple[str, ...]
    keys: tuple[str, ...]
    dims: tuple[tuple[int, ...], ...]


def read_bank(path: Path, model: ModelSpec, dim_names: tuple[str, ...]) -> Bank:
    """The keys of a bank and their dims, from the arrays' headers. DataError for whatever is wrong with it."""
    require_file(path, _KEY)
    shapes = _shapes(path)
    keys = keys_of(shapes, model.inputs)
    if not keys:
        raise _refuse(
            path,
            "the bank has no array for any input",
            f"name arrays <input>/<key>; {near(min(spec.name for spec in model.inputs), shapes)}",
        )
    dims = tuple(_dims_of(path, model, dim_names, key, shapes) for key in keys)
    return Bank(path, dim_names, keys, dims)


class BankFile:
    """The arrays of a bank by name; the file is opened at the first use and stays open in that process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._archive: zipfile.ZipFile | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_path": self._path, "_archive": None}

    def array(self, name: str) -> NDArray[Any]:
        """DataError if it is missing, broken or not plain."""
        with _zip_errors(self._path):
            if self._archive is None:
                require_file(self._path, _KEY)
                self._archive = zipfile.ZipFile(self._path)
            info = self._archive.getinfo(f"{name}.npy")
            _header(self._path, self._archive, info)
            with self._archive.open(info) as member:
                array: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
            return array


def _shapes(path: Path) -> dict[str, tuple[int, ...]]:
    with _zip_errors(path), zipfile.ZipFile(path) as archive:
        members = [info for info in archive.infolist() if info.filename.endswith(".npy")]
        total = sum(info.file_size for info in members)
        if total > LARGEST_BANK:
            raise _refuse(path, f"the bank unpacks to {total >> 30} GiB", f"keep it below {LARGEST_BANK >> 30} GiB")
        return {info.filename.removesuffix(".npy"): _header(path, archive, info) for info in members}


def _header(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> tuple[int, ...]:
    """The shape that an array's header declares, checked against the bytes that the archive declares."""
    with archive.open(info) as member:
        version = np.lib.format.read_magic(member)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(member)
        start = member.tell()
    if dtype.hasobject:
        raise _refuse(path, f"{info.filename} holds Python objects", "store plain numbers; objects are never loaded")
    if dtype.kind not in "biuf":
        raise _refuse(path, f"{info.filename} holds {dtype}, not real numbers", "store plain numbers")
    size = dtype.itemsize
    for length in shape:
        size *= length
    if size > LARGEST_ARRAY:
        raise _refuse(path, f"{info.filename} unpacks to {size >> 20} MiB", f"at most {LARGEST_ARRAY >> 20} MiB each")
    if size + start != info.file_size:
        raise _refuse(path, f"{info.filename} declares {size} bytes and has {info.file_size - start}", "save it again")
    return tuple(shape)


def _dims_of(
    path: Path, model: ModelSpec, dim_names: tuple[str, ...], key: str, shapes: dict[str, tuple[int, ...]]
) -> tuple[int, ...]:
    sizes: dict[str, int] = {}
    for spec in model.inputs:
        name = f"{spec.name}/{key}"
        if name not in shapes:
            raise _refuse(path, f"there is no array {name}", f"each key needs every input; {near(name, shapes)}")
        for dim, size in _named_sizes(path, spec, name, shapes[name]):
            if sizes.setdefault(dim, size) != size:
                raise _refuse(path, f"{name}: {dim} is {size}, another input of this key has {sizes[dim]}", "fix one")
    unknown = [name for name in dim_names if name not in sizes]
    if unknown:
        raise _refuse(path, f"the arrays of {key!r} do not show the dim {unknown[0]!r}", "store them at full size")
    return tuple(sizes[name] for name in dim_names)


def _named_sizes(path: Path, spec: InputSpec, name: str, shape: tuple[int, ...]) -> Iterator[tuple[str, int]]:
    """(dim, size) for each named dim of an input that the array has an axis for; the rest must broadcast."""
    if len(shape) > len(spec.shape):
        raise _refuse(path, f"{name} has {len(shape)} axes, the input has {len(spec.shape)}", "remove axes")
    for wanted, size in zip(reversed(spec.shape), reversed(shape), strict=False):
        if isinstance(wanted, str) and wanted != BATCH:
            yield wanted, size
        elif size not in (1, 1 if wanted == BATCH else wanted):
            expected = f"[{', '.join(map(str, spec.shape))}]"
            raise _refuse(path, f"{name} has shape {list(shape)}, which does not fit {expected}", "one request each")


@contextmanager
def _zip_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError) as error:
        raise _refuse(
            path, f"not a readable .npz file: {error}", "save it again with numpy.savez_compressed"
        ) from error
    except KeyError as error:
        raise _refuse(path, f"the bank does not hold this array: {error}", "read the workload again") from error


def _refuse(path: Path, what: str, fix: str) -> DataError:
    return DataError(what, where=f"{path}; {_KEY}", fix=fix)
