"""The payload store of a worker: the arrays of requests, made once and held up to a bound.

What a request brings is the client's work and not the server's, so making it (reading, decoding, drawing) must never
fall inside a measured time. A worker therefore loads the payloads of a run before the run, as far as the bound allows;
beyond it the least recently used go, and a payload that is not held is made before the batch is marked as started.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from trimtab.domain.noun import Dims
from trimtab.domain.ports import Arrays, Payloads

BOUND_BYTES = 256 * 2**20


class PayloadStore:
    """``get`` by (payload id, true dims); ``bound`` in bytes over all arrays held."""

    def __init__(self, payloads: Payloads, bound: int = BOUND_BYTES) -> None:
        self._payloads = payloads
        self._bound = bound
        self._held: OrderedDict[tuple[int, Dims], Arrays] = OrderedDict()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._held)

    def get(self, payload: int, dims: Dims) -> Arrays:
        """The arrays of one request; made now if they are not held."""
        key = (payload, dims)
        arrays = self._held.get(key)
        if arrays is not None:
            self._held.move_to_end(key)
            return arrays
        made = self._payloads.request(payload, dims)
        self._hold(key, made)
        return made

    def load(self, wanted: Iterable[tuple[int, Dims]]) -> None:
        """Make what is wanted, in order, until the bound is reached."""
        for payload, dims in wanted:
            key = (payload, dims)
            if key in self._held:
                continue
            made = self._payloads.request(payload, dims)
            if self.bytes + _size(made) > self._bound:
                return
            self._hold(key, made)

    def _hold(self, key: tuple[int, Dims], arrays: Arrays) -> None:
        self._held[key] = arrays
        self.bytes += _size(arrays)
        while self.bytes > self._bound and len(self._held) > 1:
            _, gone = self._held.popitem(last=False)
            self.bytes -= _size(gone)


def _size(arrays: Arrays) -> int:
    return sum(array.nbytes for array in arrays.values())
