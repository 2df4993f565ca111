"""Exported programs for torch: what would be unpickled is refused unread, plain tensors are taken."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import backends_nets as nets
import numpy as np
import pytest

from trimtab import backends
from trimtab.domain.ports import Backend, ModelFile
from trimtab.domain.profile import CompileFailure, CompileOptions
from trimtab.errors import ModelError

nets.needs("torch")

EAGER = CompileOptions(extra={"mode": "eager"})
WHOLE = nets.entry("dynamic", (1,), (40,), (1, 4))


@pytest.fixture(scope="module")
def backend() -> Backend:
    return backends.factory("torch")()


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
        backend.compile(nets_line(line, bad), WHOLE, EAGER)
    assert caught.value.what.startswith(f"the exported program holds {what}")
    assert not mark.exists()


def nets_line(line: ModelFile, path: Path) -> ModelFile:
    return ModelFile(path="", sha256="", spec=line.spec, dim_names=line.dim_names, torch=str(path))


def test_the_same_archive_unchanged_is_read(backend: Backend, line: ModelFile, tmp_path: Path) -> None:
    rewritten(line.torch, tmp_path / "same.pt2", lambda parts: None)
    given = nets.inputs(line, 1, 9)
    program = backend.compile(nets_line(line, tmp_path / "same.pt2"), WHOLE, EAGER)
    assert not isinstance(program, CompileFailure), program
    np.testing.assert_allclose(program.run(given)["y"], nets.line_reference(given)["y"], atol=1e-5)


def test_torch_would_have_run_the_pickle_of_the_examples(line: ModelFile, tmp_path: Path) -> None:
    """Why the archive is searched first: torch's own reader falls back to unpickling."""
    import torch

    mark, bad = tmp_path / "exploded", tmp_path / "bad.pt2"
    rewritten(line.torch, bad, lambda parts: pickle_the_examples(parts, Bomb(mark)))
    with contextlib.suppress(Exception):  # what it got is no example input, and it says so afterwards
        torch.export.load(bad)
    assert mark.exists()
