"""The files that a trial reads, and where they lie on the machine that makes it.

A file travels as its bytes and is known by its SHA-256, which the other machine checks. Networks and banks are one file
each; a torch network in a Python file travels as that file alone, and a package must be installed there.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from trimtab.domain.ports import ModelFile
from trimtab.domain.study import Study
from trimtab.loop.trials.executor import Material
from trimtab.store.packet import file_digest

NETWORK, TORCH, CALIBRATION, BANK = "network", "torch", "calibration", "bank"


class Laid(NamedTuple):
    """A file here and its digest."""

    path: Path
    sha256: str


def files_of(material: Material) -> dict[str, Laid]:
    """What trials of this study read beside what they carry."""
    model, bank = material.model, material.study.workload.payload.bank
    torch, _ = _torch(model.torch)
    named = {
        NETWORK: (model.path, model.sha256),
        TORCH: (torch, model.torch_sha256),
        CALIBRATION: (model.calibration, model.calibration_sha256),
    }
    files = {name: Laid(Path(path), sha256) for name, (path, sha256) in named.items() if path}
    if bank:
        path = material.folder / bank
        files[BANK] = Laid(path, file_digest(path))
    return files


def relocated(material: Material, paths: Mapping[str, str], kept: str) -> tuple[Study, ModelFile]:
    """Study and network that name those files at ``paths``. ``kept``: where networks made from this one are kept."""
    study, model = material.study, material.model
    _, function = _torch(model.torch)
    there = replace(
        model,
        path=paths.get(NETWORK, ""),
        torch=f"{paths[TORCH]}{function}" if TORCH in paths else model.torch,
        calibration=paths.get(CALIBRATION, ""),
        kept=kept,
    )
    payload = replace(study.workload.payload, bank=paths.get(BANK, ""))
    return replace(study, workload=replace(study.workload, payload=payload)), there


def _torch(name: str) -> tuple[str, str]:
    """The file of a torch network (empty: it is in a package, or there is none) and ``:function`` behind it."""
    head, colon, function = name.rpartition(":")
    if not colon:
        return name, ""
    return (head, colon + function) if head.endswith(".py") else ("", "")
