"""When a controller may act: tests that hold at every moment of a run, for bounded numbers that come one by one.

Theory
------
For x in [-1, 1] and ``most`` in [0, 1), let H0: the mean of x, given all that came before, never exceeds ``most``. For
0 < l < 1 / (1 + most) each factor 1 + l (x - most) is positive and at most 1 in the mean under H0, so that

    E_t = E_{t-1} (1 + l (x_t - most)),  E_0 = 1            *test*     P(E ever reaches 1 / a) <= a            (Ville)
    M_t = max(M_{t-1}, 1) (1 + l (x_t - most)),  M_0 = 0    *detector* mean number of x before M reaches N >= N

hold whatever the x depend on and however long one looks; nothing is assumed of their distribution. An average over
several l keeps both. The detector is the e-detector of CUSUM type (Shin, Ramdas, Rinaldo 2023, "E-detectors: a
nonparametric framework for sequential change detection"): it starts anew by itself, for a change that comes late.

A miss is not such an x: a queue makes misses come together, so that their mean given the past does exceed the healthy
rate. They are taken as shares over windows of arrivals (:data:`MISS_WINDOW`), for which the test is calibrated, not
guaranteed.
"""

from __future__ import annotations

from statistics import fmean

BETS = (0.1, 0.3, 0.9)
MISS_WINDOW = 100


class Proof:
    """Is the mean above ``most``? ``proved`` once the evidence reaches 1 / ``error``."""

    def __init__(self, most: float, error: float) -> None:
        self._most, self._needed = most, 1 / error
        self._evidence = [1.0] * len(BETS)
        self.proved = False

    def add(self, x: float) -> None:
        """Take the next number, in [-1, 1]."""
        self._evidence = [e * (1 + bet * (x - self._most)) for e, bet in zip(self._evidence, BETS, strict=True)]
        self.proved = self.proved or fmean(self._evidence) >= self._needed


class Detector:
    """Has the mean come to lie above ``most``? Evidence for one false alarm in so many numbers, in the mean."""

    def __init__(self, most: float) -> None:
        self._most = most
        self._evidence = [0.0] * len(BETS)

    def add(self, x: float) -> None:
        """Take the next number, in [-1, 1]."""
        pairs = zip(self._evidence, BETS, strict=True)
        self._evidence = [max(e, 1.0) * (1 + bet * (x - self._most)) for e, bet in pairs]

    def reached(self, every: float) -> bool:
        """Whether the evidence suffices for at most one false alarm in ``every`` numbers, in the mean."""
        return fmean(self._evidence) >= every
