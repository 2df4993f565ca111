"""The torch network that a study names, and what the digest of each form covers.

- ``net.pt2``: an exported program; the digest is that of the file.
- ``net.py:make``: a function in one file; the digest is that of the file. What the file imports or reads is not in it.
- ``package.module:make``: a function in an installed package; the digest is that of the text ``name==version`` of what
  provides the package. A package that is installed for editing can change without it.

Files are relative to the study's folder. Nothing is imported here: user code runs in worker processes only.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import re
from collections.abc import Iterator
from pathlib import Path

from trimtab.domain.study import ModelSpec
from trimtab.errors import MissingTool
from trimtab.store._strict import Fault

EXPORTED = ".pt2"
PICKLES = (".pt", ".pth", ".bin", ".pkl", ".pickle", ".ckpt")
_FACTORY = re.compile(r"(?P<file>[^:]+\.py):[A-Za-z_]\w*|(?P<module>[A-Za-z_]\w*(\.[A-Za-z_]\w*)*):[A-Za-z_]\w*")
_FORMS = 'write "net.pt2", "net.py:make" or "package.module:make"'


def network_faults(spec: ModelSpec) -> Iterator[Fault]:
    """What is wrong with the names of the network: none at all, a form that means nothing, a pin of nothing."""
    if not spec.path and not spec.torch:
        yield Fault(("model", "path"), "the study names no network", 'add path = "net.onnx", or torch = "net.pt2"')
    for key, text in (("path", spec.path), ("torch", spec.torch)):
        if text and (not text.strip() or not text.isprintable()):
            yield Fault(("model", key), "must be printable text and not empty", "write it in plain characters")
    if spec.torch.endswith(PICKLES):
        text = "is a pickle, which runs code when it is read"
        yield Fault(("model", "torch"), text, "save the network with torch.export.save as a .pt2 file")
    elif spec.torch and not spec.torch.endswith(EXPORTED) and not _FACTORY.fullmatch(spec.torch):
        yield Fault(("model", "torch"), f"{spec.torch!r} is neither a file nor a function", _FORMS)
    pins = (("sha256", spec.sha256, "path", spec.path), ("torch_sha256", spec.torch_sha256, "torch", spec.torch))
    for pin, digest, key, named in pins:
        if digest and not named:
            yield Fault(("model", pin), f"pins model.{key}, which is not given", f"add {key}, or remove {pin}")
    if spec.package and not spec.path:
        yield Fault(("model", "package"), "ships model.path, which is not given", "add path, or remove package")


def torch_file(spec: ModelSpec, folder: Path) -> Path | None:
    """The file of ``spec.torch``; None where it names an installed package."""
    factory = _FACTORY.fullmatch(spec.torch)
    if factory is None:
        return folder / spec.torch
    return folder / factory["file"] if factory["file"] else None


def torch_name(spec: ModelSpec, file: Path | None) -> str:
    """``spec.torch`` with ``file``, where it is in one, in full."""
    if file is None or not _FACTORY.fullmatch(spec.torch):
        return str(file or spec.torch)
    return f"{file}:{spec.torch.rpartition(':')[2]}"


def package_digest(spec: ModelSpec) -> str:
    """Digest of the version of what provides the package of ``spec.torch``. MissingTool where it is not installed."""
    package = spec.torch.partition(":")[0].partition(".")[0]
    providers = sorted(set(importlib.metadata.packages_distributions().get(package, ())))
    if not providers:
        raise MissingTool(
            f"no installed package provides the module {package!r}",
            where="model.torch",
            fix=f"install it, or write {package}.py:<function> for a file beside the study",
        )
    versions = [f"{name}=={importlib.metadata.version(name)}" for name in providers]
    return hashlib.sha256("\n".join(versions).encode()).hexdigest()
