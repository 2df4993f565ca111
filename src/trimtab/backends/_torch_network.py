"""Torch networks: an exported program, or the module that a function makes; never a pickle.

A ``.pt2`` file is a zip archive: the graph as JSON, the weights as bytes. Its format also has room for pickles, for
machine code and for example inputs that torch unpickles without restraint where its safe reader refuses them, so the
archive is searched first and such a file is refused. That is no sandbox: torch evaluates the symbolic sizes of the
graph. Read programs, like modules, only from who may run code here.

A function ``make() -> torch.nn.Module`` returns the network in eval form. It takes the study's inputs by position, in
the study's order, and returns the study's outputs: a tensor, a tuple in the study's order, or a dict by name. A file is
imported by itself: what lies beside it is not on the import path, and not in the digest.
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import json
import re
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from weakref import WeakValueDictionary

from trimtab.backends._options import brief
from trimtab.backends._shapes import check_file
from trimtab.domain.ports import ModelFile
from trimtab.errors import ModelError

DTYPES = {
    "float32": "f32",
    "float64": "f64",
    "float16": "f16",
    "bfloat16": "bf16",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint8": "u8",
    "bool": "bool",
}
"""Torch's names of element types in a study's words."""

HALF = {"bf16": "bfloat16", "f16": "float16"}
"""Floats below 32 bits as torch calls them."""

EXPORTED = ".pt2"
FORBIDDEN = (
    (re.compile(r"(^|/)data/(weights|constants)/[^/]*\.pt$"), "weights as a pickle"),
    (re.compile(r"(^|/)data/constants/(custom|opaque)_obj_"), "an object as a pickle"),
    (re.compile(r"(^|/)data/aotinductor/"), "machine code"),
)
"""Parts of an archive by name, and what they are."""
PAYLOADS = re.compile(r"(^|/)data/(weights|constants)/[^/]*_config\.json$")
SAMPLES = re.compile(r"(^|/)data/sample_inputs/")
SAFE = "export the network again with torch.export.save: plain tensors only, and example inputs of plain tensors"


@dataclass(frozen=True, eq=False)
class Network:
    """A module in eval form, and what is known of it before it has run.

    ``inputs``: name -> (element type, size of each axis; None = open), in the order in which it takes them; None: it
    does not say. ``outputs``: names, where it returns a dict and says so. ``operators``: calls in its graph; None: it
    has no graph.
    """

    module: Any
    inputs: dict[str, tuple[str, tuple[int | None, ...]]] | None = None
    outputs: tuple[str, ...] | None = None
    operators: int | None = None


def source(model: ModelFile) -> ModelFile:
    """``model`` with the torch network as its path, so that errors name it. ModelError where the study has none."""
    import msgspec

    if not model.torch:
        raise ModelError(
            "the study names no torch network",
            where="model.torch",
            fix='add torch = "net.pt2" (an exported program), or "net.py:make" (a function that returns the module)',
        )
    return msgspec.structs.replace(model, path=model.torch)


class Library:
    """The networks of one process. Entries of one network share its weights; it is loaded for as long as one has it."""

    def __init__(self) -> None:
        self._loaded: WeakValueDictionary[tuple[str, str], Network] = WeakValueDictionary()

    def network(self, model: ModelFile) -> Network:
        """The network of a model from :func:`source`. ModelError where it cannot be read, or may not be."""
        key = (model.path, model.torch_sha256)
        found = self._loaded.get(key)
        if found is None:
            found = _exported(model) if model.path.endswith(EXPORTED) else Network(_made(model.path))
            self._loaded[key] = found
        return found


def short_type(dtype: Any) -> str:
    """``torch.float32`` -> ``f32``; what a study has no word for stays as torch calls it."""
    name = str(dtype).removeprefix("torch.")
    return DTYPES.get(name, name)


def _exported(model: ModelFile) -> Network:
    import torch

    check_file(model)
    _refuse_unsafe(model.path)
    try:
        program = torch.export.load(model.path)
    except Exception as error:  # whatever the reader raises, the file is bad
        raise _unreadable(model.path, brief(error)) from error
    nodes = {node.name: node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"}
    values = {name: nodes[name] for name in program.graph_signature.user_inputs if isinstance(name, str)}
    returned = program.call_spec.out_spec
    return Network(
        module=program.module(),
        inputs={name: (short_type(value.dtype), _sizes(value)) for name, value in values.items()},
        outputs=tuple(returned.context) if returned.type is dict else None,
        operators=sum(node.op == "call_function" for node in program.graph.nodes),
    )


def _sizes(value: Any) -> tuple[int | None, ...]:
    return tuple(size if isinstance(size, int) else None for size in value.shape)


def _unreadable(path: str, why: str) -> ModelError:
    return ModelError(f"torch cannot read the exported program: {why}", where=path, fix="export it again")


def _refuse_unsafe(path: str) -> None:
    """ModelError where the archive holds anything that reading would unpickle or load as machine code."""
    try:
        with zipfile.ZipFile(path) as archive:
            found = next(_unsafe(archive), None)
    except (zipfile.BadZipFile, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise _unreadable(path, brief(error)) from error
    if found is not None:
        part, what = found
        raise ModelError(f"the exported program holds {what}: {part}", where=path, fix=SAFE)


def _unsafe(archive: zipfile.ZipFile) -> Iterator[tuple[str, str]]:
    for name in archive.namelist():
        for pattern, what in FORBIDDEN:
            if pattern.search(name):
                yield name, what
        if PAYLOADS.search(name) and _pickled(json.loads(archive.read(name))):
            yield name, "a tensor as a pickle"
        if SAMPLES.search(name) and not _plain(archive.read(name)):
            yield name, "example inputs that are more than plain tensors"


def _pickled(config: Any) -> bool:
    return any(payload.get("use_pickle", True) for payload in config.get("config", {}).values())


def _plain(data: bytes) -> bool:
    """Whether torch's reader of tensors, which unpickles nothing else, takes these bytes."""
    import torch

    try:
        torch.load(io.BytesIO(data), weights_only=True)
    except Exception:  # it says so in many ways
        return not data
    return True


def _made(reference: str) -> Any:
    """What the function of ``net.py:make`` or ``package.module:make`` returns, if it is a network in eval form."""
    import torch

    where, _, name = reference.rpartition(":")
    try:
        made = getattr(_module(where), name)()
    except Exception as error:
        raise ModelError(
            f"{name}() gives no network: {type(error).__name__}: {brief(error)}",
            where=reference,
            fix="call it in Python; it takes nothing and returns a torch.nn.Module",
        ) from error
    if not isinstance(made, torch.nn.Module):
        raise ModelError(f"{name}() returns a {type(made).__name__}", where=reference, fix="return a torch.nn.Module")
    if any(module.training for module in made.modules()):
        raise ModelError("the network is in training form", where=reference, fix="return it with .eval()")
    return made


def _module(where: str) -> ModuleType:
    if not where.endswith(".py"):
        return importlib.import_module(where)
    name = f"_trimtab_network_{Path(where).stem}"
    spec = importlib.util.spec_from_file_location(name, where)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # torch finds a traced function's globals by the name of its module
    spec.loader.exec_module(module)
    return module
