"""int8 networks, made from a float ONNX network when an entry is compiled.

An 8-bit integer q stands for scale x (q - zero). Weights become symmetric int8 (zero = 0), once. Activations become
uint8, because x86 multiplies unsigned with signed bytes: *dynamic* takes scale and zero from the values of each tensor
while it runs; *static* fixes them by the smallest and largest values seen on calibration inputs, and what lies outside
is clipped. Each output channel of a weight has its own scale, unless ``quantise_per_channel`` is off.

Products and convolutions are quantised, and the clipping that is free behind them; dynamic takes products by weights
only. On the text recogniser of the demo that was better on both runtimes: static took 0.71 to 0.75 of the float time
and agreed in 0.98 of the places; with additions and multiplications too, 0.78 to 1.4 and 0.92; one scale for a whole
weight agreed in 0.49; dynamic convolutions took six times as long. ``quantise_operators`` names others.

ONNX Runtime's own tools do it (``_quantiser``), in a process of their own: what they take of memory and leave behind in
a process is not the served program's. A network is quantised once for each recipe and kept in the folder that the model
names for it, so that a later worker only loads it; else in a temporary one that lives as long as the backend. Nothing
is written beside the user's file. What is not quantised stays float.

The same network, recipe, calibration inputs and version give the same bytes, whose digest is in the profile's note.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import subprocess
import tempfile
import weakref
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from trimtab import __version__, child
from trimtab.backends import _kept
from trimtab.backends._options import brief, failure, words_of
from trimtab.domain.noun import EntryId, Noun
from trimtab.domain.ports import ModelFile
from trimtab.domain.profile import CompileFailure, CompileOptions, FailureKind

CHOICES: dict[str, tuple[str, ...]] = {"quantise": ("off", "dynamic", "static"), "quantise_per_channel": ("on", "off")}
"""Options of every backend that quantises, the default first."""

LISTS: dict[str, tuple[str, ...]] = {
    "quantise_operators": (
        "Add", "ArgMax", "Attention", "AveragePool", "BatchNormalization", "Clip", "Concat", "Conv", "ConvTranspose",
        "CumSum", "EmbedLayerNormalization", "Flatten", "Gather", "GatherElements", "Gemm", "GlobalAveragePool",
        "InstanceNormalization", "LSTM", "LayerNormalization", "LeakyRelu", "MatMul", "MaxPool", "Mul", "Pad", "Relu",
        "Reshape", "Resize", "Sigmoid", "Slice", "Softmax", "Split", "Squeeze", "TopK", "Transpose", "Unsqueeze",
        "Where",
    )
}  # fmt: skip
"""Options that list words: which operators are quantised."""

OPERATORS = {
    "dynamic": ("Attention", "LSTM", "MatMul"),
    "static": ("Clip", "Conv", "ConvTranspose", "Gemm", "MatMul", "Relu"),
}
"""What is quantised where ``quantise_operators`` is not given."""

TOOLS = ("onnxruntime", "onnx")


class Recipe(Noun, frozen=True, kw_only=True):
    """How a network is quantised: which operators, and whether each channel of a weight has its own scale."""

    how: str
    per_channel: bool
    operators: tuple[str, ...]


class Order(Noun, frozen=True, kw_only=True):
    """What the tools are told, as JSON."""

    model: ModelFile
    recipe: Recipe
    target: str


class Answer(Noun, frozen=True, kw_only=True):
    """What the tools answer, as JSON: the network's digest and what went into it, or why there is none."""

    sha256: str = ""
    quantised: int = 0
    examples: int = 0
    tool: str = ""
    kind: FailureKind = "compiler-error"
    fault: str = ""


class NetworkFile(NamedTuple):
    """A network ready to be read: its file and, where it was made here, what has to be known to make it again.

    Where it lies in a temporary folder, it is there for as long as ``owner`` is.
    """

    path: str
    note: str = ""
    owner: object = None

    @property
    def made(self) -> bool:
        """Whether it was made here, and is not the user's own file."""
        return bool(self.note)


class QuantiseError(Exception):
    """There is no such network; ``kind`` says whether it cannot be or did not work."""

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind


def recipe_of(options: Mapping[str, str]) -> Recipe | None:
    """The recipe that a plan's options ask for, or None."""
    how = options.get("quantise", "off")
    if how == "off":
        return None
    return Recipe(
        how=how,
        per_channel=options.get("quantise_per_channel", "on") == "on",
        operators=words_of(options.get("quantise_operators", "")) or OPERATORS[how],
    )


def refuse_recipe(entry: EntryId, options: CompileOptions) -> CompileFailure | None:
    """The failure where options of quantising would do nothing, or contradict the declared precision; or None."""
    asked = options.extra.get("quantise", "off") != "off"
    details = [name for name in options.extra if name.startswith("quantise_")]
    if details and not asked:
        return failure(entry, "unknown-option", f"option {details[0]} does nothing without quantise")
    if asked and options.precision != "int8":
        return failure(entry, "unsupported", f"quantise makes int8, but the plan declares {options.precision!r}")
    return None


def refuse_int8(entry: EntryId, options: CompileOptions, quantised: bool) -> CompileFailure | None:
    """The failure where int8 needs a recipe and has none, or has one for a network that is ``quantised``; or None."""
    asked = recipe_of(options.extra) is not None
    if quantised and asked:
        return failure(entry, "unsupported", "the network is already quantised: leave quantise out")
    if options.precision == "int8" and not quantised and not asked:
        why = 'int8 of a float network has to be made: set option quantise = "dynamic" or "static"'
        return failure(entry, "unsupported", why)
    return None


def missing_tools() -> str:
    """Why nothing can be quantised here; empty = it can."""
    missing = [name for name in TOOLS if importlib.util.find_spec(name) is None]
    return f"quantising needs {' and '.join(missing)}: pip install 'trimtab[onnx]'" if missing else ""


class Folder:
    """A temporary folder that goes when the last one who holds it goes."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="trimtab-quantised-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


class Quantiser:
    """Makes each quantised network once, unless it is kept from before."""

    def __init__(self) -> None:
        self._folder: Folder | None = None

    def file_for(self, model: ModelFile, options: CompileOptions) -> NetworkFile:
        """The network that ``options`` ask for: quantised, or the model's own file. QuantiseError if there is none."""
        recipe = recipe_of(options.extra)
        if recipe is None:
            return NetworkFile(model.path)
        why = missing_tools()
        if why:
            raise QuantiseError("unsupported", why)
        if recipe.how == "static" and not model.calibration:
            why = "static quantisation needs calibration inputs: name them in model.calibration.bank"
            raise QuantiseError("unsupported", why)
        key = _key(model, recipe)
        try:
            shelf, owner = self._shelf(model)
            path, note = _kept.find(shelf, key) or _make(shelf, key, model, recipe)
        except OSError as error:
            raise QuantiseError("compiler-error", f"the quantised network cannot be kept: {brief(error)}") from error
        return NetworkFile(str(path), note, owner)

    def _shelf(self, model: ModelFile) -> tuple[Path, Folder | None]:
        """Where networks that are made from ``model`` are kept, and who has to live for it to be there."""
        if model.kept:
            shelf = Path(model.kept)
            shelf.mkdir(parents=True, exist_ok=True)
            return shelf, None
        self._folder = self._folder or Folder()
        return self._folder.path, self._folder


def _key(model: ModelFile, recipe: Recipe) -> str:
    """Digest of all that the network depends on: what it is made from, how, and by which versions."""
    tools = (__version__, *(version(name) for name in TOOLS))
    return hashlib.sha256(msgspec.json.encode((replace(model, kept=""), recipe, tools))).hexdigest()


def _make(shelf: Path, key: str, model: ModelFile, recipe: Recipe) -> tuple[Path, str]:
    draft = _kept.part(shelf, f"{key}.onnx")
    try:
        answer = _ask(Order(model=model, recipe=recipe, target=str(draft)))
        if answer.fault:
            raise QuantiseError(answer.kind, answer.fault)
        note = _note(recipe, answer)
        return _kept.keep(shelf, key, draft, note), note
    finally:
        draft.unlink(missing_ok=True)


def _ask(order: Order) -> Answer:
    done = subprocess.run(
        child.command("trimtab.backends._quantiser"),
        input=msgspec.json.encode(order),
        capture_output=True,
        env=child.environment(),
        check=False,
    )
    try:
        return msgspec.json.decode(done.stdout, type=Answer)
    except msgspec.DecodeError:
        said = " ".join(done.stderr.decode(errors="replace").split())[-400:]
        fault = f"the quantiser ended with exit code {done.returncode}" + (f": {said}" if said else "")
        return Answer(kind="out-of-memory" if done.returncode == -9 else "compiler-error", fault=fault)


def _note(recipe: Recipe, answer: Answer) -> str:
    per = "per channel" if recipe.per_channel else "per tensor"
    examples = f", {answer.examples} calibration inputs" if recipe.how == "static" else ""
    return (
        f"quantised to int8 ({recipe.how}, {per}, {' '.join(recipe.operators)}{examples}) by {answer.tool}: "
        f"{answer.quantised} operators, sha256 {answer.sha256}"
    )
