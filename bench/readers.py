"""Speed and memory of the readers: a Chrome trace of 200 MB, as the PyTorch profiler writes it, and tables.

Promises: a trace at 100 MB/s and more, under 300 MB of memory; 10 million rows of a table of requests read under 15 s
and diagnosed under 35 s. Each reading runs in a fresh process; its peak memory is that of the whole process, Python and
numpy included. A plain JSON reader stands beside the traces. On a busy machine the CPU time counts.

    python bench/readers.py [MB of trace] [million rows]
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


def write_table(path: Path, rows: int) -> None:
    """A table of requests with two sizes, a stream and two stages, as CSV or Parquet by its name."""
    import duckdb

    duckdb.sql("SELECT setseed(0.5)")
    duckdb.sql(f"""
        COPY (
            SELECT round(i / 1000.0, 6) AS start_s, round(3 + 9 * random() ** 4, 4) AS latency_ms,
                   1 + i % 997 AS "shape.width", 1 + i % 31 AS "shape.height", 'client-' || (i % 16) AS stream,
                   round(2 * random(), 4) AS queue_ms, round(2 + random(), 4) AS compute_ms
            FROM range({rows}) r(i)
        ) TO '{path}' (FORMAT {path.suffix[1:]})
    """)


def measure(how: str, path: Path) -> None:
    """Read ``path`` once and print one line."""
    wall, cpu = time.perf_counter(), time.process_time()
    count = HOW[how](path)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    size, peak = path.stat().st_size / 1e6, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(
        f"{how:9} {path.name:16} {size:6.0f} MB  {count:9} pieces  {wall:6.2f} s, {cpu:6.2f} s of CPU"
        f"  {size / wall:6.1f} MB/s, {size / cpu:6.1f} MB/s of CPU  peak {peak:6.0f} MB"
    )


def by_json(path: Path) -> int:
    with path.open("rb") as file:
        return len(json.load(file)["traceEvents"])


def by_trimtab(path: Path) -> int:
    from trimtab.readers import formats

    known = formats.find(path)
    assert known is not None
    return known.read(path, False)[1].rows


def by_table(path: Path) -> int:
    from trimtab.readers.table import read_requests

    return read_requests(path, {})[1].used


def by_diagnosis(path: Path) -> int:
    from trimtab.loop.verbs.tables import diagnose_table

    return diagnose_table(path, sla="p99=12ms").read.used


HOW = {"trimtab": by_trimtab, "json": by_json, "table": by_table, "diagnosis": by_diagnosis}


def main() -> None:
    if len(sys.argv) > 2 and sys.argv[1] in HOW:
        measure(sys.argv[1], Path(sys.argv[2]))
        return
    megabytes, millions = (float(text) for text in (sys.argv[1:] + ["200", "10"][len(sys.argv) - 1 :])[:2])
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        write(trace, int(megabytes))
        for how in ("trimtab", "trimtab", "trimtab", "json"):
            subprocess.run([sys.executable, __file__, how, str(trace)], check=True)
        for name in ("requests.csv", "requests.parquet"):
            path = Path(folder) / name
            write_table(path, int(millions * 1e6))
            for how in ("table", "diagnosis"):
                subprocess.run([sys.executable, __file__, how, str(path)], check=True)
            path.unlink()


if __name__ == "__main__":
    main()
