"""What a process holds over the distinct shapes that a dynamic entry has run: the demo's recogniser, every runtime.

The study's own profile, with the new shapes of its traffic in order of arrival; the same curve stands in every packet.
A shape is held in each runtime's own way: kernels compiled for it, a plan of its buffers, or nothing at all.

Run: python bench/memory.py [study] [backend ...]    (needs examples/ocr/data, made by `make demo-data`)
"""

from __future__ import annotations

import sys
from pathlib import Path

from msgspec.structs import replace

from trimtab import backends
from trimtab.domain.profile import CompileProfile
from trimtab.evidence import memory
from trimtab.readers.payload import payloads_of
from trimtab.readers.traffic import read_workload
from trimtab.runtime.grid import grid, prelude
from trimtab.runtime.profile import profile_plan
from trimtab.store.study import load_study, resolve_model

NEW = 400
POINTS = 24
REPEATS = 3


def curve(path: Path, backend: str) -> CompileProfile:
    """The profile of the study's baseline, compiled by ``backend``."""
    study, folder = load_study(path), path.parent
    spec = replace(study.baseline.compile, backend=backend, options={})
    plan = replace(study.baseline, compile=spec)
    traffic = read_workload(study, folder)
    points = grid(traffic, plan, POINTS)
    (found,) = profile_plan(
        plan,
        resolve_model(study, folder),
        backends.factory(backend),
        payloads_of(study, folder),
        points,
        REPEATS,
        study.envelope.cores[-1],
        prelude=prelude(traffic, plan, NEW, 0),
    )
    if not isinstance(found, CompileProfile):
        sys.exit(f"{backend}: {found.kind}: {found.message}")
    return found


def main(path: str = "examples/ocr/study.toml", *names: str) -> None:
    print("| runtime | entry | peak | one run adds | held, MiB after shapes | for 100 more | late |")
    print("|---|---|---|---|---|---|---|")
    for backend in names or ("openvino", "onnxruntime"):
        found = curve(Path(path), backend)
        points = found.growth
        shown = points[:: max(1, len(points) // 6)]
        said = ", ".join(f"{p.resident_bytes / memory.MIB:.0f} after {p.shapes}" for p in (*shown, points[-1]))
        whole, late = memory.growth(points), memory.growth(memory.second_half(points))
        own = (found.memory_bytes, found.peak_bytes, found.scratch_bytes)
        took, peak, scratch = (f"{size / memory.MIB:.0f} MiB" for size in own)
        print(f"| {backend} | {took} | {peak} | {scratch} | {said} | {whole or 0:.1f} | {late or 0:.1f} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
