"""Speed and memory of the readers of traces: a Chrome trace of 200 MB, like the PyTorch profiler writes it.

Promise: at least 100 MB/s, under 300 MB of memory. Each reading runs in a fresh process; its peak memory is that of the
whole process, Python and numpy included. A plain JSON reader stands beside it. On a busy machine the CPU time counts.

    python bench/readers.py [MB]
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SEED = 20261130
SHAPES = ([[1, 3, 224, 224], [64, 3, 7, 7]], [[8, 128], [128, 512], []], [[32, 77, 768]], [[]])
KERNELS = [f"void at::native::vectorized_elementwise_kernel<4, functor_{k}<float>, array{k}>(int)" for k in range(60)]


def events(rng: random.Random, k: int) -> str:
    """One operator with its launch, its flow and its kernel, formatted as the profiler does."""
    ts = 1_000_000 + k * 60 + rng.random()
    operator = {"External id": k, "Record function id": 0, "Concrete Inputs": ["", "", "1"],
                "Input type": ["float", "float", "Scalar"], "Input Strides": [[1], [1], []],
                "Input Dims": rng.choice(SHAPES), "Ev Idx": k}  # fmt: skip
    kernel = {"External id": k, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": k,
              "registers per thread": 32, "shared memory": 0, "blocks per SM": 0.59, "warps per SM": 2.37,
              "grid": [1, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %": 0}  # fmt: skip
    return f"""  {{
    "ph": "X", "cat": "cpu_op", "name": "aten::op_{k % 40}", "pid": 4242, "tid": 4242,
    "ts": {ts:.3f}, "dur": 40.125,
    "args": {json.dumps(operator)}
  }},
  {{
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 4242, "tid": 4242,
    "ts": {ts + 20:.3f}, "dur": 8.5,
    "args": {{"External id": {k}, "cbid": 211, "correlation": {k}}}
  }},
  {{
    "ph": "s", "id": {k}, "pid": 4242, "tid": 4242, "ts": {ts + 20:.3f},
    "cat": "ac2g", "name": "ac2g"
  }},
  {{
    "ph": "X", "cat": "kernel", "name": "{rng.choice(KERNELS)}", "pid": 0, "tid": 7,
    "ts": {ts + 31:.3f}, "dur": 12.0,
    "args": {json.dumps(kernel)}
  }}"""


def write(path: Path, megabytes: int) -> None:
    """A trace of about that size."""
    rng, size, k = random.Random(SEED), 0, 0
    with path.open("w") as file:
        file.write('{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "device"}], "traceEvents": [\n')
        while size < megabytes * 1_000_000:
            k += 1
            text = ("" if k == 1 else ",\n") + events(rng, k)
            size += file.write(text)
        file.write('\n], "baseTimeNanoseconds": 1735632360000000000}')


def measure(path: Path, how: str) -> None:
    """Read ``path`` once and print one line."""
    wall, cpu = time.perf_counter(), time.process_time()
    if how == "json":
        with path.open("rb") as file:
            count = len(json.load(file)["traceEvents"])
    else:
        from trimtab.readers import formats

        known = formats.find(path)
        assert known is not None
        count = known.read(path, False)[1].rows
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    size, peak = path.stat().st_size / 1e6, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(
        f"{how:8} {size:6.0f} MB  {count:8} events  {wall:6.2f} s, {cpu:6.2f} s of CPU"
        f"  {size / wall:6.1f} MB/s, {size / cpu:6.1f} MB/s of CPU  peak {peak:6.0f} MB"
    )


def main() -> None:
    if len(sys.argv) > 2:
        measure(Path(sys.argv[2]), sys.argv[1])
        return
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        write(path, megabytes)
        for how in ("trimtab", "trimtab", "trimtab", "json"):
            subprocess.run([sys.executable, __file__, how, str(path)], check=True)


if __name__ == "__main__":
    main()
