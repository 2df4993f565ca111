"""The process that quantises one network: an Order on standard input, an Answer on standard output.

Before anything is quantised the network is simplified as far as the tools ask for (constants, batch normalisations
folded into convolutions) and its tensors' types are inferred. All files are in a temporary folder.
"""

from __future__ import annotations

import hashlib
import logging
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab import child
from trimtab.backends import _onnx
from trimtab.backends._options import brief
from trimtab.backends._quantise import Answer, Order, Recipe
from trimtab.domain.bank import filled, keys_of, shape_of, sizes_of
from trimtab.domain.ports import ModelFile

PER_CHANNEL_OPSET = 13
"""The first ONNX operator set whose DequantizeLinear has a scale for each channel."""


class Examples:
    """Calibration inputs, one request at a time, as the quantiser asks for them."""

    def __init__(self, model: ModelFile) -> None:
        self.count = 0
        self._requests = _requests(model)

    def get_next(self) -> dict[str, NDArray[Any]] | None:
        given = next(self._requests, None)
        self.count += given is not None
        return given


def _requests(model: ModelFile) -> Iterator[dict[str, NDArray[Any]]]:
    try:
        with np.load(model.calibration, allow_pickle=False) as bank:
            yield from _picked(bank, model)
    except Exception as error:  # whatever is wrong with the file, it is the user's and has to be named
        raise ValueError(f"calibration inputs {model.calibration}: {error}") from error


def _picked(bank: Any, model: ModelFile) -> Iterator[dict[str, NDArray[Any]]]:
    inputs, calibration = model.spec.inputs, model.spec.calibration
    keys = keys_of(bank.files, inputs)
    if not keys:
        raise ValueError(f"no array is named {inputs[0].name}/<key>")
    picked = np.unique(np.linspace(0, len(keys) - 1, min(calibration.samples, len(keys))).round().astype(int))
    for key in (keys[i] for i in picked.tolist()):
        raw = {spec.name: bank[f"{spec.name}/{key}"] for spec in inputs}
        sizes = sizes_of(raw, inputs)
        yield {
            spec.name: filled(raw[spec.name], spec, shape_of(spec, sizes), calibration.scale, calibration.offset)
            for spec in inputs
        }


def quantise(order: Order) -> Answer:
    """Write the quantised network to ``order.target``."""
    import onnxruntime

    recipe = order.recipe
    examples = Examples(order.model) if recipe.how == "static" else None
    with tempfile.TemporaryDirectory(prefix="trimtab-") as folder:
        ready = _prepare(order.model, recipe, Path(folder))
        if examples is None:
            _dynamic(ready, order.target, recipe)
        else:
            _static(ready, order.target, recipe, examples)
    found = _onnx.read(order.target)
    quantised = _onnx.quantised_operators(found)
    if not quantised:
        asked = " ".join(recipe.operators)
        fault = f"nothing was quantised: the tools left every operator float (asked for: {asked})"
        return Answer(kind="unsupported", fault=fault)
    return Answer(
        sha256=hashlib.sha256(Path(order.target).read_bytes()).hexdigest(),
        quantised=quantised,
        examples=examples.count if examples else 0,
        tool=f"onnxruntime {onnxruntime.__version__}",
    )


def _prepare(model: ModelFile, recipe: Recipe, folder: Path) -> Path:
    import onnx
    from onnxruntime.quantization import quant_pre_process

    given, ready = folder / "given.onnx", folder / "ready.onnx"
    network = onnx.load(model.path)
    opset = max((item.version for item in network.opset_import if item.domain in ("", "ai.onnx")), default=0)
    if recipe.per_channel and opset < PER_CHANNEL_OPSET:
        network = onnx.version_converter.convert_version(network, PER_CHANNEL_OPSET)
    onnx.save(network, given)
    quant_pre_process(given, ready, skip_symbolic_shape=True)
    return ready


def _dynamic(ready: Path, target: str, recipe: Recipe) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(
        ready,
        target,
        op_types_to_quantize=list(recipe.operators),
        per_channel=recipe.per_channel,
        weight_type=QuantType.QInt8,
    )


def _static(ready: Path, target: str, recipe: Recipe, examples: Examples) -> None:
    from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static

    quantize_static(
        ready,
        target,
        examples,
        quant_format=QuantFormat.QDQ,
        op_types_to_quantize=list(recipe.operators),
        per_channel=recipe.per_channel,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        calibrate_method=CalibrationMethod.MinMax,
    )


def main(argv: Sequence[str]) -> None:
    """Live no longer than the worker that asked, and answer whatever happens."""
    if not child.tie_to(int(argv[0])):
        return
    logging.disable(logging.CRITICAL)  # the tools advise their user on the root logger; here that is nobody
    answers, sys.stdout = sys.stdout.buffer, sys.stderr  # what the tools print is no answer
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    try:
        answer = quantise(order)
    except MemoryError as error:
        answer = Answer(kind="out-of-memory", fault=brief(error))
    except Exception as error:  # the tools raise whatever they meet; all mean: no network
        answer = Answer(fault=f"{type(error).__name__}: {brief(error)}")
    answers.write(msgspec.json.encode(answer))
    answers.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
