"""What the full tail account costs: on-core seconds and peak memory, for growing runs of 1, 2 and 4 workers.

Every cause is present, so all 2K + 2 replays run. Each case is a process of its own; memory is its peak, the trace
included, after the simulator that made the trace has been forgotten.

Run: python bench/account.py [requests]
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "evidence"))  # the simulator that the tests use

from account_cases import Scene, poisson, simulate

from trimtab.domain.account import CAUSES
from trimtab.evidence.attribute.account import build

MS = 1_000_000
LIMIT_S, LIMIT_GIB, LIMIT_REQUESTS = 15.0, 1.2, 1_000_000


def scene(n: int, workers: int) -> Scene:
    """About 0.85 busy, with every work cause."""
    rng = np.random.default_rng(1)
    mean = 2 * MS + 20_000 * 410
    return Scene(
        arrivals=poisson(rng, n, mean / workers / 0.68),
        dims=rng.integers(20, 800, n),
        workers=workers,
        bucket=64,
        premium=1.05,
        cold=20 * MS,
        interference=rng.integers(-300_000, 1_500_000, n),
        off_core=np.where(rng.random(n) < 0.002, 200 * MS, 0),
        dispatch=rng.integers(0, 100_000, n),
    )


def peak_gib(*, reset: bool = False) -> float:
    """Peak resident memory of this process; ``reset`` forgets the peak so far."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith("VmHWM"))
    return int(line.split()[1]) / 2**20


def case(n: int, workers: int) -> None:
    """Print one row."""
    made = scene(n, workers)
    trace = simulate(made)
    before = peak_gib(reset=True)
    start = time.process_time()
    account = build(trace, made.promise, made.reference, "reference", made.plan, made.by_entry)
    spent, peak = time.process_time() - start, peak_gib()
    present = sum(bool(account.requests[f"relief.{cause}"].any()) for cause in CAUSES)
    print(f"{n:>9} {workers:>7} {present:>6} {spent:>9.2f} {spent / n * 1e6:>10.2f} {before:>9.2f} {peak:>8.2f}")
    if n == LIMIT_REQUESTS and (spent > LIMIT_S or peak > LIMIT_GIB):
        raise SystemExit(1)


def main() -> int:
    if len(sys.argv) == 3:
        case(int(sys.argv[1]), int(sys.argv[2]))
        return 0
    most = int(sys.argv[1]) if len(sys.argv) == 2 else LIMIT_REQUESTS
    print(
        f"{'requests':>9} {'workers':>7} {'causes':>6} {'on-core s':>9} {'us/request':>10} "
        f"{'trace GiB':>9} {'peak GiB':>8}"
    )
    codes = [
        subprocess.run([sys.executable, __file__, str(n), str(workers)], check=False).returncode
        for workers in (1, 2, 4)
        for n in (most // 4, most)
    ]
    print(
        f"limit for {LIMIT_REQUESTS} requests: {LIMIT_S:g} s, {LIMIT_GIB:g} GiB: {'NOT met' if any(codes) else 'met'}"
    )
    return max(codes)


if __name__ == "__main__":
    raise SystemExit(main())
