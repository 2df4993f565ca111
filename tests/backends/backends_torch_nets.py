"""The tiny networks of ``backends_nets`` as torch modules with the same weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import backends_nets as nets
import msgspec
import torch
from torch import nn
from torch.export import Dim

from trimtab.domain.noun import BATCH
from trimtab.domain.ports import ModelFile
from trimtab.domain.study import InputSpec


class Line(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.kernel = nn.Parameter(torch.from_numpy(nets.KERNEL.copy()))

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"y": torch.relu(nn.functional.conv1d(x, self.kernel, padding=1))}


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.from_numpy(nets.TABLE.copy()))
        self.weight = nn.Parameter(torch.from_numpy(nets.WEIGHT.copy()))

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"y": (nn.functional.embedding(ids, self.table) * mask) @ self.weight}


class Image(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.kernel = nn.Parameter(torch.from_numpy(nets.IMAGE_KERNEL.copy()))

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"y": nn.functional.conv2d(x, self.kernel, stride=2)}


class Heavy(nn.Module):
    def __init__(self, mib: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(256, mib * 1024))

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"y": x @ self.weight}


MODULES: dict[str, Callable[[], nn.Module]] = {"line": Line, "words": Words, "heavy": lambda: Heavy(48)}


def image() -> nn.Module:
    """The network of ``backends_torch_nets.py:image``."""
    return Image().eval()


def twin(model: ModelFile) -> ModelFile:
    """``model`` with its torch twin: exported beside it with every dim of the study open, or made by ``image``."""
    path = Path(model.path).with_suffix(".pt2")
    if path.stem == "image":
        return msgspec.structs.replace(model, torch=f"{__file__}:image")
    open_axes = {name: Dim(name, min=1) for name in (BATCH, *model.dim_names)}
    shapes = {spec.name: tuple(open_axes.get(axis, Dim.STATIC) for axis in spec.shape) for spec in model.spec.inputs}
    given = tuple(example(spec, model.dim_names) for spec in model.spec.inputs)
    torch.export.save(torch.export.export(MODULES[path.stem]().eval(), given, dynamic_shapes=shapes), path)
    return msgspec.structs.replace(model, torch=str(path))


def example(spec: InputSpec, dim_names: tuple[str, ...]) -> torch.Tensor:
    """An input with sizes that torch does not take for constants: not 0 and not 1, and even."""
    sizes = {BATCH: 2} | {name: 6 + 2 * place for place, name in enumerate(dim_names)}
    shape = [sizes[axis] if isinstance(axis, str) else axis for axis in spec.shape]
    return torch.zeros(shape, dtype=torch.int64 if spec.dtype == "i64" else torch.float32)


def factory(folder: Path, text: str, name: str = "net.py") -> str:
    """A file with ``text``, and the study's name of its function ``make``."""
    (folder / name).write_text(text)
    return f"{folder / name}:make"
