"""Which kernels a program launches, how long each takes and what a run holds at once: IREE's own profile of a few runs.

The runtime's Python bindings hand out no device profile, and count memory for a whole process; its command-line tools
do better. So these run the program, in processes of their own.

Launches: ``RUNS`` runs on the same kind of device with the same threads. A launch's time is the median over all of them
but the first. What a program launches before its first run (to prepare weights) is left out: the launches of all runs
are the longest end of the record that is the same sequence of kernels ``RUNS`` times.

Memory: one run on the device of one thread, because the pool's device does not count what a run allocates for itself.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.backends._iree_compiler import FUNCTION
from trimtab.backends._iree_dispatches import Launch
from trimtab.backends._options import brief
from trimtab.domain.noun import NEVER

RUNS = 4
ALONE = "--device=local-sync"
HELD = re.compile(rb"DEVICE_LOCAL: +(\d+)B peak")


class Record(msgspec.Struct, frozen=True):
    """What is read of one line of an exported profile; all other keys are skipped."""

    record_type: str
    op: str = ""
    key: str | None = None
    duration_ns: int = 0


class Profile(NamedTuple):
    """``held``: the most bytes at once; weights count where the program makes a copy of them."""

    launches: tuple[Launch, ...]
    held: int


def profile(program: bytes, inputs: Sequence[NDArray[Any]], device: Sequence[str]) -> Profile:
    """Run ``program`` on ``inputs``. ``device``: the tools' arguments that choose it.

    Raises RuntimeError with what a tool said where it failed.
    """
    with tempfile.TemporaryDirectory(prefix="trimtab-") as name:
        folder = Path(name)
        (folder / "program.vmfb").write_bytes(program)
        for i, array in enumerate(inputs):
            np.save(folder / f"{i}.npy", array, allow_pickle=False)
        what = [f"--module={folder / 'program.vmfb'}", "--module_mode=mmap", f"--function={FUNCTION}"]
        what += [f"--input=@{folder / f'{i}.npy'}" for i in range(len(inputs))]
        _ask(
            "iree-benchmark-module",
            *device,
            *what,
            f"--benchmark_min_time={RUNS}x",
            "--device_profiling_mode=host-execution,executable-metadata",
            f"--device_profiling_output={folder / 'profile'}",
        )
        exported = _ask("iree-profile", "export", "--format=ireeperf-jsonl", str(folder / "profile")).stdout
        counted = _ask("iree-run-module", ALONE, *what, "--output_max_element_count=1", "--print_statistics").stderr
    records = [msgspec.json.decode(line, type=Record) for line in exported.splitlines()]
    found = [
        Launch(record.key or "unnamed", record.duration_ns)
        for record in records
        if record.record_type == "host_execution_event" and record.op == "dispatch"
    ]
    held = HELD.search(counted)
    return Profile(one_run(found, RUNS), int(held[1]) if held else NEVER)


def one_run(found: Sequence[Launch], runs: int) -> tuple[Launch, ...]:
    """The launches of one of ``runs`` (2 or more) equal runs that end the record; RuntimeError where none do."""
    kernels = [launch.kernel for launch in found]
    for size in range(len(found) // runs, 0, -1):
        once = kernels[len(kernels) - size :]
        if kernels[len(kernels) - runs * size :] == once * runs:
            warm = [found[len(found) - run * size :][:size] for run in range(1, runs)]
            return tuple(
                Launch(kernel, round(median(launch.ns for launch in same)))
                for kernel, same in zip(once, zip(*warm, strict=True), strict=True)
            )
    if not found:
        return ()
    raise RuntimeError(f"IREE's profile does not show {runs} runs that launch the same kernels")


def _ask(tool: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    from iree._runtime.libs import library_path

    done = subprocess.run([Path(library_path) / tool, *arguments], capture_output=True, check=False)
    if done.returncode != 0:
        said = brief(RuntimeError(done.stderr.decode(errors="replace")[-400:]))
        raise RuntimeError(f"{tool} ended with exit code {done.returncode}: {said}")
    return done
