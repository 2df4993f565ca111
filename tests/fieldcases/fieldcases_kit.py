"""Tables of requests made from published figures. Jitter is a fixed pattern of +-1 %: no random numbers."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from trimtab.loop.verbs.tables import Answer, diagnose_table

Column = Sequence[object] | np.ndarray


def jitter(n: int) -> np.ndarray:
    """1 +- 1 %, n values without any order to speak of."""
    return 1 + 0.01 * np.sin(np.arange(n) * 2.399963)


def apart(durations_ms: np.ndarray, pause_ms: float = 50.0) -> list[str]:
    """Start times, seconds, of calls that never overlap: a pause after the end of each."""
    ends = np.cumsum(durations_ms + pause_ms)
    return [f"{t / 1e3:.6f}" for t in ends - durations_ms - pause_ms]


def seconds(ms: np.ndarray) -> list[str]:
    return [f"{t / 1e3:.6f}" for t in ms]


def from_quantiles(n: int, points: Mapping[float, float]) -> np.ndarray:
    """n latencies whose order statistics pass through ``points`` (share -> ms), dealt out in a fixed order."""
    shares, values = list(points), list(points.values())
    ordered = np.interp(np.arange(1, n + 1) / n, shares, values)
    return ordered[np.argsort(np.sin(np.arange(n) * 12.9898) * 43758.5453 % 1)]


def table(folder: Path, name: str, columns: Mapping[str, Column]) -> Path:
    path = folder / f"{name}.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def classes(answer: Answer) -> list[str]:
    return [one.id for one in answer.diagnosis.classes]


def first(path: Path, *facts: str, baseline: Path | None = None, sla: str | None = None) -> str:
    """The leading class of a table."""
    return classes(diagnose_table(path, baseline=baseline, facts=facts, sla=sla))[0]
