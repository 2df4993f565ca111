"""Run the plan bench: python bench/plans/run.py [--networks ocr,minilm] [--backends a,b] [--page docs/plans.md]

Every visit is kept in ``--out`` and found there again, so that a run that was ended goes on where it stopped.
``--page`` writes the table from all visits; ``--again`` measures nothing. Needs core 1 for the worker; nothing else
should run meanwhile.
"""

from __future__ import annotations

import argparse
import datetime
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from plans import catalogue, page  # noqa: E402
from plans.visits import WORKER, Bench, Visit  # noqa: E402
from trimtab import backends  # noqa: E402
from trimtab.domain.ports import BackendInfo  # noqa: E402
from trimtab.runtime import probe  # noqa: E402
from trimtab.store.codec import read_json, write_json  # noqa: E402

SEED = 1


def main(argv: Sequence[str]) -> int:
    asked = _asked(argv)
    networks = [one for one in catalogue.NETWORKS if not asked.networks or one.name in asked.networks.split(",")]
    names = [name for name in backends.names() if name not in catalogue.NOT_MEASURED]
    infos = [backends.info(name) for name in names if not asked.backends or name in asked.backends.split(",")]
    if not asked.again:
        _measure([Bench(network, asked.repeats) for network in networks], infos, asked)
    visits = [read_json(path, Visit) for network in networks for path in _kept(asked.out, network.name)]
    if not visits:
        raise SystemExit(f"there are no visits in {asked.out}")
    planned = len(networks) * len(_chosen(infos)) * asked.rounds
    refused = [row for info in infos for row in catalogue.refused(info)]
    text = page.page(visits, refused, _facts(visits, planned, argv))
    if asked.page:
        asked.page.write_text(text)
    else:
        print(text)
    return 0


def _asked(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="run.py", description=__doc__)
    parser.add_argument("--networks", default="", help="names, separated by commas; all by default")
    parser.add_argument("--backends", default="", help="names, separated by commas; all that are installed by default")
    parser.add_argument("--repeats", type=int, default=12, help="warm runs of each shape in a visit")
    parser.add_argument("--rounds", type=int, default=2, help="visits of each plan")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no visit after this; run again to go on")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "plans")
    parser.add_argument("--page", type=Path, help="write the table here, as Markdown")
    parser.add_argument("--again", action="store_true", help="make the table from the visits in --out")
    return parser.parse_args(argv)


def _measure(benches: Sequence[Bench], infos: Sequence[BackendInfo], asked: argparse.Namespace) -> None:
    """Every plan of every network once a round, in a new order each: the visits of one plan lie far apart."""
    until = time.monotonic() + asked.seconds
    plans = [(bench, choice) for bench in benches for choice in _chosen(infos)]
    rng = np.random.default_rng(SEED)
    for number in range(1, asked.rounds + 1):
        for index in rng.permutation(len(plans)).tolist():
            bench, choice = plans[index]
            path = asked.out / bench.network.name / f"{choice.id}-{number}.json"
            if path.exists() and read_json(path, Visit).inputs == bench.inputs(choice):
                continue
            if time.monotonic() > until:
                print("the time is over; the same command goes on from here")
                return
            print(
                f"{bench.network.name} {choice.id}, visit {number}: {_visited(bench, choice, number, path)}", flush=True
            )


def _chosen(infos: Sequence[BackendInfo]) -> list[catalogue.Choice]:
    return [choice for info in infos if info.available for choice in catalogue.choices(info)]


def _visited(bench: Bench, choice: catalogue.Choice, number: int, path: Path) -> str:
    began = time.monotonic()
    visit = bench.visit(choice, number)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, visit)
    said = "; ".join(f"{one.kind}: {one.message}" for one in visit.failures) or "measured"
    return f"{said} [{time.monotonic() - began:.0f} s]"


def _kept(out: Path, network: str) -> list[Path]:
    return sorted((out / network).glob("*.json"))


def _facts(visits: Sequence[Visit], planned: int, argv: Sequence[str]) -> list[str]:
    machine = probe.probe((0, WORKER))
    versions = {
        name: version for visit in visits for one in visit.profiles for name, version in sorted(one.versions.items())
    }
    repeats = min(len(t.wall_ns) for visit in visits for one in visit.profiles for t in one.timings)
    return [
        f"Machine: {machine.cpu_model}, {machine.cores_online} cores, {machine.virtualisation}, Linux {machine.kernel}",
        f"Versions: {', '.join(f'{name} {version}' for name, version in sorted(versions.items()))}",
        f"Date: {datetime.datetime.now(tz=datetime.UTC).date()}; one pinned core, one thread, batches of one request",
        f"{len(visits)} visits of {planned} planned, each a fresh process, {repeats} warm runs a shape at least: "
        f"`python bench/plans/run.py {' '.join(argv)}`",
        f"Reference: {catalogue.REFERENCE.id}, timed again after every visit",
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
