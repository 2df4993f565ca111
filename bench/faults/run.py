"""Run the fault bench: python bench/faults/run.py [--faults a,b] [--seeds 5] [--seconds 15] [--out DIR] [--record DIR]

Every run is kept in ``--out``. ``--again`` judges the runs that are there and replays nothing; ``--page`` writes the
result to a Markdown file; ``--record`` keeps, of each fault, the first run that was named as expected, shortened, in
place of earlier recordings.
Needs two cores: 0 for the load generator, 1 for the worker. Nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import datetime
import math
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from faults import catalogue, matrix, recorded  # noqa: E402
from faults.live import Bench  # noqa: E402
from faults.material import DRIVER, WORKER, Material  # noqa: E402
from trimtab.domain.envelope import Envelope, EnvelopeCheck  # noqa: E402
from trimtab.evidence.latency import metric_value  # noqa: E402
from trimtab.loop.machine import backend_versions  # noqa: E402
from trimtab.runtime import probe  # noqa: E402
from trimtab.store.codec import read_json  # noqa: E402

STUDY = ROOT / "examples" / "ocr" / "study.toml"
BACKENDS = ("openvino", "onnxruntime")


def main(argv: Sequence[str]) -> int:
    """0 = every run was named as expected."""
    asked = _asked(argv)
    chosen = [catalogue.fault(name) for name in asked.faults.split(",")] if asked.faults else list(catalogue.FAULTS)
    if not asked.again:
        _live(chosen, asked)
    ids = {each.id for each in chosen}
    runs = [recorded.read(asked.out, name) for name in recorded.names(asked.out)]
    mine = [run for run in runs if run.case.fault in ids]
    rows = [_row(run) for run in sorted(mine, key=lambda run: (_place(run), run.case.seed))]
    for row in rows if asked.again else ():
        print(matrix.said(row))
    print(matrix.summary(rows))
    if asked.page:
        asked.page.write_text(matrix.page(rows, _facts(mine), f"python bench/faults/run.py {' '.join(argv)}"))
    if asked.record:
        _record(mine, asked.record)
    return 0 if all(row.right for row in rows) else 1


def _asked(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="run.py", description=__doc__)
    parser.add_argument("--faults", default="", help="ids, separated by commas; all by default")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=15.0, help="length of one replay")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "faults")
    parser.add_argument("--again", action="store_true", help="judge the runs in --out, replay nothing")
    parser.add_argument("--reuse-profiles", action="store_true", help="take the profiles and the probe in --out")
    parser.add_argument("--record", type=Path, help="keep shortened runs here")
    parser.add_argument("--page", type=Path, help="write the result here, as Markdown")
    return parser.parse_args(argv)


def _live(chosen: Sequence[catalogue.Fault], asked: argparse.Namespace) -> None:
    asked.out.mkdir(parents=True, exist_ok=True)
    material = Material(STUDY, lambda text: print(text, file=sys.stderr))
    if asked.reuse_profiles:
        _reuse(material, asked.out)
    else:
        for path in asked.out.glob(f"{recorded.PROFILES}/*.json"):
            path.unlink()
    bench = Bench(material, *_machine(material, asked), asked.seeds)
    for each in chosen:
        for plan in (material.reference, material.fitted, each.scene(material).plan):
            material.profiles(plan)
    for name in recorded.names(asked.out):
        if name.rpartition("-")[0] in {each.id for each in chosen}:
            shutil.rmtree(asked.out / recorded.RUNS / name)
    print(f"p95 must stay below {material.sla.bound_ms:g} ms", file=sys.stderr)
    for seed in range(1, asked.seeds + 1):
        for each in chosen:
            began = time.monotonic()
            run = bench.run(each, seed, asked.seconds)
            recorded.write(asked.out, run)
            print(f"{matrix.said(_row(run))} [{time.monotonic() - began:.0f} s]", flush=True)


def _machine(material: Material, asked: argparse.Namespace) -> tuple[Envelope, tuple[EnvelopeCheck, ...]]:
    path = asked.out / recorded.ENVELOPE
    if asked.reuse_profiles and path.exists():
        envelope = read_json(path, Envelope)
    else:
        envelope = probe.probe((DRIVER, WORKER), versions=backend_versions(BACKENDS))
    return envelope, probe.check(material.study.envelope, envelope)


def _reuse(material: Material, out: Path) -> None:
    for name in recorded.names(out):
        run = recorded.read(out, name)
        for plan in recorded.plans_of(run.case):
            material.keep(plan, run.profiles[recorded.profile_key(plan)])


def _row(run: recorded.Recording) -> matrix.Row:
    value = metric_value(run.trace, run.case.sla) * 1e3
    p95 = value if math.isfinite(value) else None
    return matrix.row(run.case, recorded.judge(run), p95, len(run.trace.requests))


def _place(run: recorded.Recording) -> int:
    return [each.id for each in catalogue.FAULTS].index(run.case.fault)


def _record(runs: Sequence[recorded.Recording], folder: Path) -> None:
    """Of each fault the first run whose shortened form is still named as expected, and nothing beside it. Earlier
    recordings go: runs share profiles, which must be those that they were served under."""
    for part in (recorded.RUNS, recorded.PROFILES):
        shutil.rmtree(folder / part, ignore_errors=True)
    for name in dict.fromkeys(run.case.fault for run in runs):
        for run in (run for run in runs if run.case.fault == name):
            short = recorded.trimmed(run)
            row = _row(short)
            if row.right and not row.decoys:
                print(f"recorded {recorded.write(folder, short).name}")
                break
        else:
            print(f"no run of {name} can be recorded: none is named as expected when shortened")


def _facts(runs: Sequence[recorded.Recording]) -> list[str]:
    machine, info = runs[0].envelope, runs[0].trace.run
    versions = ", ".join(f"{name} {version}" for name, version in sorted(machine.versions.items()))
    seeds = sorted({run.case.seed for run in runs})
    today = datetime.datetime.now(tz=datetime.UTC).date()
    return [
        f"Machine: {machine.cpu_model}, {machine.cores_online} cores, {machine.virtualisation}, "
        f"Linux {machine.kernel}; {versions}",
        f"Date: {today}; load generator on core {info.driver_core}, worker on core {WORKER}",
        f"SLA of all runs: p95 within {runs[0].case.sla.bound_ms:g} ms; {len(seeds)} seeds "
        "(each another start in the recorded traffic), "
        f"{min(len(run.trace.requests) for run in runs)} to {max(len(run.trace.requests) for run in runs)} "
        "requests a run",
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
