"""The pace kernel: how fast this core is right now, measured with work that never changes.

Theory. A virtual machine can slow down in ways that no counter of the guest shows: on-core time equals wall time, no
run-queue delay, no stolen time, and yet the same work takes longer. The only instrument left is fixed work. Two
halves are timed apart, because they slow down for different reasons: a product of two 192 x 192 float32 matrices stays
in the first-level caches and follows the core's clock and its sibling thread; the sum of 4 MiB of float64 exceeds a
usual second-level cache and follows the memory system. Together they take about 0.2 ms.

During a run the kernel is repeated a few times in a row and the fastest of each half is kept: a network has used the
caches just before, and it takes some passes until the arrays are back in them. On the machine this was written on the
first pass after it took 1.1 and 2.1 times the reference on a core that was as fast as ever, the fastest of eight 1.0.

Reference = the 10th percentile of at least 200 quiet runs on the core. A pace above its reference means: this core was
slower than it can be. Limits: it is only run while our workers are idle, so it samples the gaps between batches; a
plan that itself saturates memory slows it too, which is evidence and not noise.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from trimtab.domain.envelope import Pace
from trimtab.domain.noun import Ns

SIDE = 192
STREAM_BYTES = 4 * 2**20
REPEATS = 8
"""How often the kernel is repeated for one pace during a run."""
COST_NS: Ns = 3_000_000
"""What to allow for one pace, ns: nearly twice its usual length, so that it does not reach into the next arrival."""
SHARE = 0.01
"""The largest share of the time that pace may take."""
REFERENCE_RUNS = 200
WARM_RUNS = 5


class PaceKernel:
    """The fixed work, its arrays allocated once."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self._left = rng.random((SIDE, SIDE), dtype=np.float32)
        self._right = rng.random((SIDE, SIDE), dtype=np.float32)
        self._out = np.empty_like(self._left)
        self._stream = np.ones(STREAM_BYTES // 8)
        for _ in range(WARM_RUNS):
            self.run()

    def run(self) -> tuple[Ns, Ns]:
        """(compute, stream): the wall time of each half, ns."""
        start = time.monotonic_ns()
        np.matmul(self._left, self._right, out=self._out)
        middle = time.monotonic_ns()
        self._stream.sum()
        return middle - start, time.monotonic_ns() - middle


def reference(core: int, compute_ns: Sequence[Ns], stream_ns: Sequence[Ns]) -> Pace:
    """The reference pace of ``core``: the 10th percentile of each half (an observed value, never interpolated)."""
    return Pace(core=core, compute_ns=_p10(compute_ns), stream_ns=_p10(stream_ns), runs=len(compute_ns))


def _p10(values: Sequence[Ns]) -> Ns:
    return int(np.percentile(np.asarray(values, dtype=np.int64), 10, method="lower"))


class Allowance:
    """Keeps pace below its share of the time: after a run of length d the next may start d / share after it began."""

    def __init__(self, share: float = SHARE) -> None:
        self._share = share
        self._next: Ns = 0

    def open(self, now: Ns) -> bool:
        """May a run start at ``now``?"""
        return now >= self._next

    def spent(self, began: Ns, ended: Ns) -> None:
        """A run took ``began..ended``."""
        self._next = began + round((ended - began) / self._share)
