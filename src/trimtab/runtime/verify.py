"""Is what a network gave back an answer at all? Stale or empty output is a failure, however fast it came.

Checked for every batch, after its end has been marked: every output that the study names is there, not empty, with one
row for each executed row, without nan, without an infinity that the network has no business to give, and not the very
output of the batch before although the inputs differ. The last one compares a fingerprint (sums and some 64 samples of
each array) first, and inputs in full only where fingerprints agree, so that a usual batch costs one sum over each
output.

Infinities. Masked logits and log-probabilities are honestly -inf; an overflow is infinite, too. No reference can be
asked in the middle of serving, so it is asked once, before anything is profiled: an infinity is an answer where the
reference gave one of that sign in that output for any sampled request (``infinities``). Without a reference to hold
them against (random payloads) every infinity is taken, and only nan is refused.

Limits: a mask that no sampled request triggers is not known, so such a batch fails; sample more requests. A network
whose outputs hold fewer than 16 floating values (a single saturated score) or only integers may honestly repeat
itself, so it is not suspected of staleness; nor is a run on pad values alone, which stands for no request. An output
whose first axis is not the batch (a list of detections) is refused, whatever it holds: its rows cannot be given back to
requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.ports import Arrays

SAMPLES = 64
ENOUGH = 16

Infinities: TypeAlias = Mapping[str, str] | None
"""Output -> the signs of the infinities that it may hold (``-``, ``+`` or ``-+``); None = nothing is known, all may."""

Fingerprint: TypeAlias = tuple[tuple[tuple[int, ...], str, bytes], ...]


class OutputCheck:
    """Remembers the batch before. ``judge`` returns what is wrong, or an empty string."""

    def __init__(self, names: tuple[str, ...], infinities: Infinities = None) -> None:
        self._names = names
        self._infinities = infinities
        self._inputs: Arrays = {}
        self._print: Fingerprint = ()

    def judge(self, inputs: Arrays, outputs: Arrays, rows: int) -> str:
        """``rows`` is the executed batch size. Inputs must not be changed later: they are kept, not copied."""
        fault, totals = self._content(outputs, rows)
        if fault:
            return fault
        prints: Fingerprint = tuple(_fingerprint(outputs[name], total) for name, total in totals.items())
        judged = sum(outputs[name].size for name in totals) >= ENOUGH
        stale = judged and prints == self._print and not _same(inputs, self._inputs)
        self._inputs, self._print = inputs, prints
        return "the output is the one of the batch before, although the inputs differ" if stale else ""

    def judge_filled(self, outputs: Arrays, rows: int) -> str:
        """As ``judge``, for a run on pad values alone. A network that masks padding answers them all alike, whatever
        their size, so they raise no suspicion, and nothing is compared with them."""
        return self._content(outputs, rows)[0]

    def _content(self, outputs: Arrays, rows: int) -> tuple[str, dict[str, float]]:
        """What is wrong with the outputs by themselves, or the sum of each that holds floating values."""
        fault = next((fault for name in self._names if (fault := _fault(name, outputs, rows))), "")
        if fault:
            return fault, {}
        totals = {name: _total(outputs[name]) for name in self._names if outputs[name].dtype.kind == "f"}
        unsure = [name for name, total in totals.items() if not np.isfinite(total)]
        return next((fault for name in unsure if (fault := self._not_finite(name, outputs[name]))), ""), totals

    def _not_finite(self, name: str, array: NDArray[Any]) -> str:
        if np.isnan(array).any():
            return f"output {name!r} holds nan"
        if self._infinities is None:
            return ""
        foreign = [sign for sign in signs(array) if sign not in self._infinities.get(name, "")]
        return f"output {name!r} holds {foreign[0]}inf, which the reference never gives" if foreign else ""


def signs(array: NDArray[Any]) -> str:
    """Which infinities an array holds: ``-``, ``+``, ``-+``, or none."""
    if array.dtype.kind != "f":
        return ""
    return "-" * bool(np.isneginf(array).any()) + "+" * bool(np.isposinf(array).any())


def _fault(name: str, outputs: Arrays, rows: int) -> str:
    if name not in outputs:
        return f"output {name!r} is missing; the network gave {', '.join(outputs) or 'none'}"
    array = outputs[name]
    if array.size == 0:
        return f"output {name!r} is empty"
    if array.ndim == 0 or array.shape[0] != rows:
        return f"output {name!r} has shape {list(array.shape)} for a batch of {rows}: its axis 0 is not the batch"
    return ""


def _total(array: NDArray[Any]) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        return float(array.sum())


def _fingerprint(array: NDArray[Any], total: float) -> tuple[tuple[int, ...], str, bytes]:
    flat = array.reshape(-1)
    return array.shape, total.hex(), flat[:: max(1, flat.size // SAMPLES)].tobytes()


def _same(one: Arrays, two: Arrays) -> bool:
    return one.keys() == two.keys() and all(np.array_equal(one[k], two[k]) for k in one)
