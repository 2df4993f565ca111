"""The worked examples of docs/metrics.md, computed."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from evidence_cases import Line, Ran, Silent, dynamic, trace

from trimtab.domain.figure import Interval, Series
from trimtab.domain.profile import MemoryPoint
from trimtab.domain.score import LOSS_CAUSES
from trimtab.domain.study import QualitySpec, Sla
from trimtab.evidence import gate, latency, memory
from trimtab.evidence.classify.symptoms import Facts, suspects
from trimtab.evidence.figures import Desk
from trimtab.evidence.score import gain
from trimtab.evidence.score.batches import Yardstick, coverage, measure, share_of
from trimtab.evidence.score.ledger import ledger
from trimtab.evidence.score.reference import ReferenceSet
from trimtab.evidence.stats import quantiles as stats
from trimtab.evidence.stats.floor import aa_floor

PAGE = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()


def says(text: str) -> None:
    """The page holds this sentence or row, whatever its line breaks."""
    assert " ".join(text.split()) in " ".join(PAGE.split())


def test_percentiles() -> None:
    seconds, failed = np.arange(1, 21) / 1e3, [0.010] * 17 + [math.inf] * 3
    says(f"| 1, 2, ..., 20 | {stats.tail_text(seconds, 0.5)} | {stats.tail_text(seconds, 0.95)} |")
    says(f"| {stats.tail_text(failed, 0.5, 500)} | {stats.tail_text(failed, 0.95, 500)} |")
    missed = float(latency.misses(seconds, Sla(metric="p95", bound_ms=15)).mean())
    says(f"misses 5 of 20: miss rate {missed:g}, goodput {1 - missed:g}")


def test_slip() -> None:
    run = trace([Ran((100,), wall=2, arrived=0, started=30, slip=25)])
    slip, took = latency.slips(run)[0] / 1e6, run.latency[0] * 1e3
    says(f"has a slip of {slip:g} ms and a latency of {took:g} ms")


def test_effective_samples_needed() -> None:
    needed = [stats.needed_effective(q) for q in (0.5, 0.95, 0.99)]
    says(f"| effective samples needed | {needed[0]} | {needed[1]} | {needed[2]} |")


def test_intervals() -> None:
    beta = stats.beta_interval(range(1, 13), 0.5)
    assert beta is not None
    says(f"Repeats 1, 2, ..., 12 ms: [{beta.lo:g} ms, {beta.hi:g} ms]")
    middle, between = latency.over_replays([52, 50, 55, 51, 53])
    assert between is not None
    says(f"{middle:g} ms [{between.lo:g}, {between.hi:g}], at {between.level * 100:g} %")


def test_sizes_floor_and_fairness() -> None:
    needed = stats.requests_needed(1000, 0.05)
    says(f"s = 5 % at 1,000 requests, e = 10 %: {needed:,} requests an arm")
    floor = aa_floor([[100, 104, 102], [200, 210, 220]])
    assert floor.value is not None
    says(f"200, 210, 220 ms: {floor.value * 100:.0f} %")
    says("p = 0.01, 0.04, 0.03 become " + ", ".join(f"{p:g}" for p in stats.holm([0.01, 0.04, 0.03])))
    says(f"Work of 3 and 1: {stats.jain([3, 1]):g} and {stats.worst_to_best([3, 1]):g}")


LINE = Line(fixed=1.0, slope=0.01)


def yardstick(promise: Line | Silent = LINE) -> Yardstick:
    return Yardstick(promise, LINE, "ref", ReferenceSet((dynamic("ref"),), LINE, 1))


@pytest.mark.parametrize(
    ("row", "batch", "promise"),
    [
        ("width 100, as promised", Ran((100,), wall=2, promised=2), LINE),
        ("width 100, first run", Ran((100,), wall=10, promised=2, first=True), LINE),
        ("width 100, the same when warm", Ran((100,), wall=10, promised=2), LINE),
        ("width 100, padded to 300", Ran((100,), wall=4, promised=4, executed=300), LINE),
        ("width 100, on an entry 3 times as slow", Ran((100,), wall=6, promised=6), Line(dyn=3.0)),
        ("width 100, no profile of the entry", Ran((100,), wall=5), Silent()),
    ],
)
def test_mapping_accuracy_and_its_loss(row: str, batch: Ran, promise: Line | Silent) -> None:
    found = measure(trace([batch]), yardstick(promise))
    lost = [f"{cause} {found.lost(cause):.3g}" for cause in LOSS_CAUSES if abs(found.lost(cause)) > 1e-9]
    promised = f"{found.promised[0] / 1e6:g}" if found.promised[0] else "none"
    cells = [row, f"{found.measured[0] / 1e6:g}", promised, f"{found.best[0] / 1e6:g}", f"{found.mapping():.3g}"]
    says(" | ".join(["", *cells, ", ".join(lost), ""]).strip())


def test_promises_coverage_and_fit() -> None:
    walls = [(12.0, True), (3.0, False), (1.0, False)]
    runs = [Ran((100,), wall=w, promised=2, first=f, arrived=50.0 * i) for i, (w, f) in enumerate(walls)]
    found = measure(trace(runs), yardstick())
    warm = ~found.first
    says(
        f"each promised 2 ms: {found.promise():g} over all (bias {found.bias():g}), {found.promise(warm):g} without "
        f"the first run (bias {found.bias(warm):g})"
    )
    kinds = ["exact", "padded", "dynamic", "fallback"]
    mixed = trace([Ran((100,), wall=2, route=kind, arrived=i) for i, kind in enumerate(kinds)])
    says(f"One of four on the fallback: {coverage(mixed):g}")
    padded = measure(trace([Ran((100,), wall=4, promised=4, executed=300)]), yardstick())
    says(f"width 100 padded to 300: 2 / 4 = {share_of(padded.useful, padded.executed):g}")


def test_prediction_ledger() -> None:
    run = trace([Ran((100,), wall=12, promised=2, first=True), Ran((100,), wall=3, promised=2, arrived=50)])
    run.requests["predicted_at_dispatch"][0] = 11_000_000
    columns = ledger(run, measure(run, yardstick()), Desk("score", "this run", "")).columns
    cells = {name: column[0] for name, column in columns.items()}
    says(
        f"bias {cells['compile_bias']:.3g} at compile and {cells['dispatch_bias']:.3g} at dispatch, p95 of the error "
        f"{cells['compile_p95']:g} ms and {cells['dispatch_p95']:g} ms"
    )


def test_gain_and_capture() -> None:
    says(f"| p95 | 100 ms | 80 ms | {gain.gain('p95', 100, 80):g} |")
    says(f"| p99 | 100 ms | 120 ms | {gain.gain('p99', 100, 120):g} |")
    says(f"| goodput | 0.8 | 0.9 | {gain.gain('goodput', 0.8, 0.9):.3g} |")
    first, second = gain.clairvoyant(np.array([[5.0, 3.0], [2.0, 4.0]]), "p95") + 1
    says(f"it takes plan {first}, then plan {second}")
    floor = aa_floor([[1.0, 1.01, 1.03]])
    above, reaching = (gain.capture(0.15, 0.3, Interval(lo=lo, hi=0.4), floor) for lo in (0.2, 0.02))
    says(f"headroom 0.3 [0.2, 0.4], floor 3 %: {above.value:g}. With [0.02, 0.4]: {reaching.reason}.")


def test_overload_needs_no_interval() -> None:
    says("useful work of 1.2 times the workers' time cannot be served")
    assert next(s for s in suspects(Facts(effects={}, load=1.2)) if s.id == "capacity-queueing").named


def test_quality_by_entry() -> None:
    spec = QualitySpec(floor=0.97)
    given = {"to-160": (1.0, 1.0, 1.0, 1.0), "to-960": (0.98, 0.94), "any": (0.99, None)}
    rows = [(name, value) for name, values in given.items() for value in values]
    columns = {"entry": tuple(n for n, _ in rows), "value": tuple(v for _, v in rows)}
    same = dict.fromkeys(("band", "route", "unpadded", "batched"), (None,) * len(rows)) | {
        "requests": (1.0,) * len(rows)
    }
    found = gate.parts(Series(id="quality.p", columns=columns | same))
    for part in found[1:]:
        shown = ", ".join("no reference answer" if v is None else f"{v:g}" for v in given[part.name])
        figure = gate.value(part, spec)
        said = "" if figure is None else f"{figure:g} "
        says(f"| {part.name} | {shown} | {said}| {gate.status(part, spec)} |")
    says(f"Over all of them: {gate.status(found[0], spec)};")
    rest = found[0]._replace(values=found[0].values[:-1], weights=found[0].weights[:-1])
    says(f"without the last request it would be {gate.value(rest, spec):.3g} and {gate.status(rest, spec)},")


def test_memory_growth() -> None:
    curve = [MemoryPoint(shapes=n, resident_bytes=mib * 2**20) for n, mib in ((20, 300), (120, 350), (220, 360))]
    whole, late = memory.growth(curve), memory.growth(memory.second_half(curve))
    says(f"300 MiB after 20 shapes, 350 after 120, 360 after 220: {whole:g} MiB, late {late:g} MiB.")
