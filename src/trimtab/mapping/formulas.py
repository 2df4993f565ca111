"""Boundaries by formula, as serving stacks set them: what a fit to measured milliseconds is compared with.

- *linear*: equal distances (a fixed step from the least to the largest size).
- *exponential*: equal ratios, finer among small sizes.
- *powers of two*: the same with ratio 2, on the numbers themselves: what inference servers capture graphs for.
- *padding-aware*: multiples of a step, of which those are left out that neither an absolute nor a relative limit of
  padding needs. This is the rule of vLLM's Gaudi plugin (its padding-aware bucketing strategy; the defaults there: the
  step is the cache's block of 128 tokens, a quarter of the largest size, and 25 %).

None of them looks at the traffic or at what a size costs.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

_ROUNDING = 1e-9
"""The formulas work in floats; this keeps 64.00000001 from becoming 65."""


def linear(low: int, high: int, k: int) -> tuple[int, ...]:
    """At most ``k`` boundaries at equal distances above ``low``; the last is ``high``."""
    steps = (low + (high - low) * (np.arange(k) + 1) / k) if high > low else np.array([float(high)])
    return _whole(steps, high)


def exponential(low: int, high: int, k: int) -> tuple[int, ...]:
    """At most ``k`` boundaries at equal ratios above ``low``; the last is ``high``."""
    steps = low * (high / low) ** ((np.arange(k) + 1) / k)
    return _whole(steps, high)


def powers_of_two(low: int, high: int, limit: int | None = None) -> tuple[int, ...]:
    """Every power of two from the one that covers ``low`` to the one that covers ``high``, none beyond ``limit``."""
    first, last = (int(n - 1).bit_length() for n in (low, high))
    ends = {1 << bits for bits in range(first, last + 1)}
    return tuple(sorted(ends if limit is None else {min(end, limit) for end in ends}))


def padding_aware(high: int, step: int, *, share: float = 0.25, most: int | None = None) -> tuple[int, ...]:
    """Multiples of ``step`` up to ``high``, without those that the next one can stand in for.

    It can where the smallest size that would then be padded up to it (one above the boundary kept last) gets at most
    ``most`` positions of padding (None: a quarter of ``high``) and at most ``share`` of the bucket. Multiples of
    ``most`` always stay.
    """
    most = math.ceil(high / 4) if most is None else most
    ends = [min(step, high)]
    for end in range(2 * step, high, step):
        padding = end + step - ends[-1] - 1
        if padding > most or padding > share * (end + step) or end % most == 0:
            ends.append(end)
    return tuple(dict.fromkeys((*ends, high)))


def _whole(steps: NDArray[np.float64], high: int) -> tuple[int, ...]:
    ends = np.minimum(np.ceil(steps - _ROUNDING * steps), high).astype(np.int64)
    ends[-1] = high
    return tuple(int(end) for end in np.unique(ends))
