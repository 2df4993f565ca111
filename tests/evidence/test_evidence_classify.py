"""The order of decision, the evidence that each class requires, and faults that must be named first."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from account_cases import Scene, simulate
from evidence_cases import SLA, Ran, dynamic, trace

from trimtab.domain.figure import Figure, Interval
from trimtab.domain.score import CLASS_OWNERS, Diagnosis
from trimtab.domain.study import Sla
from trimtab.evidence.attribute import tail
from trimtab.evidence.attribute.account import account
from trimtab.evidence.classify import facts as observed
from trimtab.evidence.classify.classes import Case, Effect, Shift, Suspect, classify, whole_shift
from trimtab.evidence.classify.diagnose import diagnose, fits, sla_met, told
from trimtab.evidence.classify.gates import Gate
from trimtab.evidence.classify.symptoms import Facts, defects, suspects
from trimtab.evidence.latency import latencies, metric_value
from trimtab.evidence.score.batches import Yardstick, measure
from trimtab.evidence.score.reference import ReferenceSet

PASSED = Gate("load-generator", True, "on time", ())
LATE = Gate("load-generator", False, "issue rate 77 % of the offered one", (), "give the driver a core")
FEW = Gate("samples", False, "40 requests", (), "replay at least 90 requests")
WEAK = Gate("effective-samples", False, "24 effective samples", (), "replay about 15000 requests", decides=False)


def suspect(kind: str, share: float, lo: float, hi: float, **more: tuple[str, ...]) -> Suspect:
    return Suspect(kind, Effect(share, lo, hi), **({"evidence": ("seen",)} | more))  # type: ignore[arg-type]


def case(*found: Suspect, **more: object) -> Case:
    base = {"gates": (PASSED,), "met": False, "fits": False, "suspects": found}
    return Case(**(base | more))  # type: ignore[arg-type]


def names(diagnosis: Diagnosis) -> list[str]:
    return [one.id for one in diagnosis.classes]


COLD = suspect("cold-shape", 0.7, 0.5, 0.8)
PADDING = suspect("padding-waste", 0.2, 0.1, 0.3)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (case(COLD, PADDING), ["cold-shape"]),
        (case(COLD, PADDING, gates=(LATE,)), ["invalid-measurement"]),
        (case(COLD, PADDING, gates=(FEW,)), ["insufficient-evidence"]),
        (case(COLD, PADDING, gates=(FEW, LATE)), ["invalid-measurement"]),
        (case(COLD, PADDING, gates=(WEAK,)), ["cold-shape"]),
        (case(COLD, met=True, fits=True), ["healthy"]),
        (case(COLD, met=True, fits=False), ["cold-shape"]),
        (case(COLD, met=True, fits=None), ["cold-shape"]),
        (case(met=True, fits=None), ["healthy"]),
        (case(met=True, fits=False), ["insufficient-evidence"]),
        (case(), ["insufficient-evidence"]),
        # a rival that reaches into the leader's interval is named too, and one that does not is not
        (case(COLD, suspect("padding-waste", 0.45, 0.3, 0.6)), ["cold-shape", "padding-waste"]),
        (case(PADDING, COLD), ["cold-shape"]),
        # an interval that reaches 0, missing evidence, or a contradiction: not named
        (case(suspect("cold-shape", 0.7, -0.1, 0.9)), ["insufficient-evidence"]),
        (case(suspect("cold-shape", 0.7, 0.5, 0.9, evidence=())), ["insufficient-evidence"]),
        (case(suspect("cold-shape", 0.7, 0.5, 0.9, missing=("flags",))), ["insufficient-evidence"]),
        (case(suspect("cold-shape", 0.7, 0.5, 0.9, against=("fast ones too",)), PADDING), ["padding-waste"]),
        (case(COLD, shift=Shift(2.9, 3.0, 0.05)), ["whole-shift"]),
        (case(COLD, shift=Shift(1.0, 3.0, 0.05)), ["cold-shape"]),
    ],
)
def test_the_order_of_decision(given: Case, expected: list[str]) -> None:
    assert names(classify(given)) == expected


def test_a_defect_is_named_behind_the_tails_own_class_and_instead_of_healthy() -> None:
    silent = Suspect("precision-fallback", None, ("3 % ran in f32",))
    assert names(classify(case(COLD, defects=(silent,)))) == ["cold-shape", "precision-fallback"]
    assert names(classify(case(met=True, fits=True, defects=(silent,)))) == ["precision-fallback"]
    assert names(classify(case(COLD, met=True, fits=True, defects=(silent,)))) == ["precision-fallback"]
    held = Suspect("precision-fallback", None, ("3 % ran in f32",), against=("quality holds",))
    assert names(classify(case(met=True, fits=True, defects=(held,)))) == ["healthy"]


def test_what_is_missing_comes_with_the_next_measurement() -> None:
    blind = suspect("envelope", 0.6, 0.4, 0.8, evidence=(), missing=("throttled time, pace",))
    found = classify(case(blind, gates=(PASSED, WEAK)))
    assert found.missing == ("throttled time, pace", "replay about 15000 requests")
    assert found.next_measurement == "throttled time, pace"
    assert found.classes[0].evidence == ("envelope (60.0 %): lacks throttled time, pace",)
    wide = Suspect("capacity-queueing", Effect(0.8), ("workers were busy",))
    assert classify(case(wide)).next_measurement == "an interval for capacity-queueing: replay more requests"
    assert classify(case(gates=(LATE,))).next_measurement == "give the driver a core"


def test_the_json_has_the_agreed_shape() -> None:
    ruled = suspect("oversubscription", 0.1, 0.0, 0.2, against=("1 threads on 1 cores are not too many",))
    assert msgspec.to_builtins(classify(case(COLD, ruled))) == {
        "classes": (
            {
                "class": "cold-shape",
                "share": 0.7,
                "interval": (0.5, 0.8),
                "owner": "compiler",
                "evidence": ("seen",),
                "ruled_out": ("oversubscription: 1 threads on 1 cores are not too many",),
            },
        ),
        "missing": (),
        "next_measurement": "",
        "failures": "",
    }


@pytest.mark.parametrize(
    ("shift", "expected"),
    [
        (Shift(2.9, 2.96, 0.05), True),  # an upgrade: p50 x2.9, p99 x3.0
        (Shift(1.02, 1.03, 0.05), False),  # inside the floor
        (Shift(1.2, 2.0, 0.05), False),  # the tail moved more
        (Shift(0.5, 0.52, 0.05), True),  # faster as a whole
        (Shift(0.8, 1.25, 0.05), False),
    ],
)
def test_a_whole_shift_moves_p50_and_p99_alike(shift: Shift, expected: bool) -> None:
    assert whole_shift(shift) is expected


# --- the evidence that each class requires --------------------------------------------------------------------

SURE = Effect(0.6, 0.4, 0.8)


def state(kind: str, **known: object) -> str:
    causes = ("capacity", "hold", "imbalance", "off_core", "cold", "premium", "padding", "interference", "failed")
    found = next(s for s in suspects(Facts(effects=dict.fromkeys(causes, SURE), **known)) if s.id == kind)  # type: ignore[arg-type]
    return "named" if found.named else "missing" if found.missing else "against"


@pytest.mark.parametrize(
    ("kind", "known", "expected"),
    [
        ("capacity-queueing", {"idle_while_waiting": 0.0, "alone": 1.4}, "named"),
        ("capacity-queueing", {"idle_while_waiting": 0.0, "alone": 0.8}, "against"),
        ("capacity-queueing", {"idle_while_waiting": 0.9, "alone": 1.4}, "against"),
        ("capacity-queueing", {"idle_while_waiting": 0.0}, "missing"),
        ("capacity-queueing", {"load": 1.2}, "named"),
        ("capacity-queueing", {"load": 0.9}, "missing"),
        ("batch-policy", {"mean_size": 1.0, "max_size": 8, "idle_while_waiting": 0.9}, "named"),
        ("batch-policy", {"mean_size": 1.0, "max_size": 8, "idle_while_waiting": 0.0}, "against"),
        ("batch-policy", {"max_size": 8}, "missing"),
        ("core-imbalance", {"idle_elsewhere": 0.5}, "named"),
        ("core-imbalance", {"idle_elsewhere": 0.0}, "against"),
        ("core-imbalance", {}, "missing"),
        ("oversubscription", {"runqueue": 0.3, "threads": 8, "cores": 2}, "named"),
        ("oversubscription", {"runqueue": 0.3, "threads": 8, "cores": 2, "throttled": 0.4}, "against"),
        ("oversubscription", {"runqueue": 0.3, "threads": 1, "cores": 1}, "against"),
        ("oversubscription", {"runqueue": 0.001, "threads": 8, "cores": 2}, "against"),
        ("oversubscription", {"threads": 8, "cores": 2}, "missing"),
        ("cold-shape", {"first_slow": 0.9, "first_fast": 0.02}, "named"),
        ("cold-shape", {"first_slow": 0.1, "first_fast": 0.1}, "against"),
        ("cold-shape", {"first_slow": 0.0, "first_fast": 0.0}, "against"),
        ("cold-shape", {"first_slow": 0.9}, "missing"),
        ("mapping-fallback", {"fallback": 0.2}, "named"),
        ("mapping-fallback", {"premium": 0.3, "fallback": 0.0}, "named"),
        ("mapping-fallback", {"premium": -0.1, "fallback": 0.0}, "against"),
        ("mapping-fallback", {}, "missing"),
        ("padding-waste", {"padding": 1.8}, "named"),
        ("padding-waste", {"padding": 1.02}, "against"),
        ("padding-waste", {}, "missing"),
        ("memory-burst", {"stream_pace": 1.4, "large_excess": 0.5, "small_excess": 0.02}, "named"),
        ("memory-burst", {"stream_pace": 1.4, "large_excess": 0.5, "small_excess": 0.5}, "against"),
        ("memory-burst", {"stream_pace": 1.0, "large_excess": 0.5, "small_excess": 0.0}, "against"),
        ("memory-burst", {"large_excess": 0.5, "small_excess": 0.0}, "missing"),
        ("memory-limit", {"peak": 0.99}, "named"),
        ("memory-limit", {"out_of_memory": 3}, "named"),
        ("memory-limit", {"peak": 0.4, "out_of_memory": 0}, "against"),
        ("memory-limit", {}, "missing"),
        ("envelope", {"throttled": 0.5}, "named"),
        ("envelope", {"stolen": 0.05}, "named"),
        ("envelope", {"pace": 1.3}, "named"),
        ("envelope", {"stream_pace": 1.3}, "named"),  # slow memory beside idle workers is not the plan's doing
        (
            "envelope",
            {"stream_pace": 1.05, "throttled": 0, "stolen": 0, "pace": 1, "runqueue": 0, "differs": ()},
            "against",
        ),
        ("envelope", {"differs": ("governor is powersave, assumed performance",)}, "named"),
        ("envelope", {"runqueue": 0.3, "threads": 1, "cores": 1}, "named"),  # a neighbour on our core
        ("envelope", {"runqueue": 0.3}, "missing"),
        ("envelope", {"throttled": 0, "stolen": 0, "pace": 1.0, "runqueue": 0.0, "differs": ()}, "against"),
    ],
)
def test_what_each_class_requires(kind: str, known: dict[str, object], expected: str) -> None:
    assert state(kind, **known) == expected


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({"declared": "f32", "executed": 0.03}, ["named"]),
        ({"declared": "f32", "executed": 0.03, "quality": True}, ["named"]),
        ({"declared": "f32", "executed": 0.99}, []),
        ({"declared": "f32", "executed": 0.99, "quality": False}, ["named"]),
        ({}, []),
    ],
)
def test_precision_is_judged_by_what_was_executed_and_by_quality(known: dict[str, object], expected: list[str]) -> None:
    found = defects(Facts(effects={}, **known))  # type: ignore[arg-type]
    assert ["against" if one.against else "named" for one in found] == expected


@pytest.mark.parametrize(
    ("of_unprofiled", "share"),
    [(0.9, 0.6), (0.5, 0.6), (0.3, 0.05), (None, 0.05)],
    ids=["most", "half", "some", "none"],
)
def test_a_fallback_without_a_promise_owns_the_time_that_it_took(of_unprofiled: float | None, share: float) -> None:
    """No profile covers it, so its time is no premium; where most of the unprofiled time is its own, it owns it."""
    effects = {"premium": Effect(0.05, -0.1, 0.2), "unprofiled": SURE}
    known = Facts(effects=effects, fallback=0.2, fallback_time=of_unprofiled)
    found = next(one for one in suspects(known) if one.id == "mapping-fallback")
    assert found.effect is not None
    assert (found.effect.share, found.named) == (share, share == SURE.share)


def test_slow_memory_beside_idle_workers_is_told() -> None:
    found = next(
        one for one in suspects(Facts(effects={"interference": SURE}, stream_pace=1.3)) if one.id == "envelope"
    )
    assert found.evidence == ("beside idle workers memory was 1.30 times slower than its reference",)


def test_every_class_has_an_owner() -> None:
    assert all(one.id in CLASS_OWNERS for one in suspects(Facts(effects={})))


# --- from a run -----------------------------------------------------------------------------------------------


def traffic(seed: int, n: int, gap_ms: float) -> tuple[np.ndarray, np.ndarray]:
    g = np.random.default_rng(seed)
    arrivals = np.cumsum(g.exponential(gap_ms * 1e6, n)).astype(np.int64)
    return arrivals - arrivals[0], g.integers(20, 400, n)


def seen(scene: Scene, bound_ms: float, **more: object) -> Diagnosis:
    run = simulate(scene)
    sla = Sla(metric="p95", bound_ms=bound_ms)
    best = ReferenceSet((dynamic("entry"),), scene.reference, scene.max_size)
    batches = measure(run, Yardstick(scene.promise, scene.reference, "entry", best))
    split = account(run, scene.promise, scene.reference, "entry", scene.plan)
    effects = observed.effects(split, tail.findings(split, run), "p95", np.random.default_rng(1))
    known = observed.gather(
        run, batches, split, effects, scene.plan, alone=observed.left_alone(split, "p95", bound_ms), **more
    )  # type: ignore[arg-type]
    return diagnose(run, sla, known, {})


N = 3000
JITTER = np.random.default_rng(9).integers(0, 300_000, N)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    ("fault", "gap", "bound", "expected"),
    [
        ({}, 40, 60, "healthy"),
        ({}, 8.0, 25, "capacity-queueing"),
        ({}, 5.0, 60, "capacity-queueing"),  # more work than time: a queue that only grows
        ({"cold": 60_000_000}, 40, 30, "cold-shape"),
        ({"bucket": 400}, 14, 30, "padding-waste"),
        ({"premium": 1.6}, 16, 30, "mapping-fallback"),
        ({"max_size": 4, "hold": 80_000_000}, 40, 60, "batch-policy"),
    ],
)
def test_one_fault_at_a_time_is_named_first(
    fault: dict[str, object], gap: float, bound: float, expected: str, seed: int
) -> None:
    arrivals, dims = traffic(seed, N, gap)
    scene = Scene(arrivals, dims, interference=JITTER, **fault)  # type: ignore[arg-type]
    assert seen(scene, bound).classes[0].id == expected


def test_a_neighbour_on_our_core_is_the_envelope() -> None:
    arrivals, dims = traffic(3, N, 20)
    busy = np.where(np.arange(N) % 40 < 8, 25_000_000, 0)
    found = seen(Scene(arrivals, dims, off_core=busy), 40)
    assert found.classes[0].id == "envelope"
    assert "others held our core" in found.classes[0].evidence[0]


def test_met_and_fits() -> None:
    run = trace([Ran((100,), wall=w, arrived=100.0 * i) for i, w in enumerate(range(1, 101))])
    assert metric_value(run, SLA) == 0.095
    assert sla_met(run, Sla(metric="p95", bound_ms=95)) is True
    assert sla_met(run, Sla(metric="p95", bound_ms=94)) is False
    assert sla_met(run, Sla(metric="goodput", bound_ms=90, goodput=0.9)) is True
    assert sla_met(run, Sla(metric="goodput", bound_ms=90, goodput=0.91)) is False
    assert latencies(run, SLA).size == 100
    assert sla_met(trace([]), SLA) is None

    def accuracy(value: float | None) -> Figure:
        between = None if value is None else Interval(lo=value, hi=value)
        return Figure(id="f", value=value, unit="share", samples=1, scope="", artifact="", interval=between)

    both = ("score.mapping_accuracy", "score.promise_accuracy_warm")
    assert fits(dict(zip(both, (accuracy(0.95), accuracy(0.96)), strict=True))) is True
    assert fits(dict(zip(both, (accuracy(0.5), accuracy(None)), strict=True))) is False
    assert fits(dict(zip(both, (accuracy(0.95), accuracy(None)), strict=True))) is None


def test_a_diagnosis_in_words() -> None:
    said, rows = told(classify(case(COLD, gates=(PASSED, WEAK))), "accounts/r.parquet")
    assert [one.text for one in said] == [
        "Class: cold-shape (70.0 % of what removing every cause would change). seen.",
        "Next measurement: replay about 15000 requests.",
    ]
    assert (said[0].owner, rows.columns["class"], rows.columns["lo"]) == ("compiler", ("cold-shape",), (0.5,))
