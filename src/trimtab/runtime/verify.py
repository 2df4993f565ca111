"""Is what a network gave back an answer at all? Stale or empty output is a failure, however fast it came.

Checked for every batch, after its end has been marked: every output that the study names is there, not empty, with one
row for each executed row, finite where it is a floating type, and not the very output of the batch before although the
inputs differ. The last one compares a fingerprint (sums and some 64 samples of each array) first, and inputs in full
only where fingerprints agree, so that a usual batch costs one sum over each output.

Limits: a network whose outputs hold fewer than 16 floating values (a single saturated score) or only integers may
honestly repeat itself, so it is not suspected of staleness.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.ports import Arrays

SAMPLES = 64
ENOUGH = 16

Fingerprint: TypeAlias = tuple[tuple[tuple[int, ...], float, bytes], ...]


class OutputCheck:
    """Remembers the batch before. ``judge`` returns what is wrong, or an empty string."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        self._inputs: Arrays = {}
        self._print: Fingerprint = ()

    def judge(self, inputs: Arrays, outputs: Arrays, rows: int) -> str:
        """``rows`` is the executed batch size. Inputs must not be changed later: they are kept, not copied."""
        for name in self._names:
            fault = _fault(name, outputs, rows)
            if fault:
                return fault
        floating = [outputs[n] for n in self._names if outputs[n].dtype.kind == "f"]
        prints: Fingerprint = tuple(_fingerprint(array) for array in floating)
        if any(not np.isfinite(total) for _, total, _ in prints) and not all(np.isfinite(a).all() for a in floating):
            return "an output holds values that are not finite"
        judged = sum(a.size for a in floating) >= ENOUGH
        stale = judged and prints == self._print and not _same(inputs, self._inputs)
        self._inputs, self._print = inputs, prints
        return "the output is the one of the batch before, although the inputs differ" if stale else ""


def _fault(name: str, outputs: Arrays, rows: int) -> str:
    if name not in outputs:
        return f"output {name!r} is missing; the network gave {', '.join(outputs) or 'none'}"
    array = outputs[name]
    if array.size == 0:
        return f"output {name!r} is empty"
    if array.ndim == 0 or array.shape[0] != rows:
        return f"output {name!r} has shape {list(array.shape)} for a batch of {rows}"
    return ""


def _fingerprint(array: NDArray[Any]) -> tuple[tuple[int, ...], float, bytes]:
    flat = array.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(flat.sum())
    return array.shape, total, flat[:: max(1, flat.size // SAMPLES)].tobytes()


def _same(one: Arrays, two: Arrays) -> bool:
    return one.keys() == two.keys() and all(np.array_equal(one[k], two[k]) for k in one)
