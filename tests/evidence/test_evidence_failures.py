"""Failures: how many, of which kinds and where; they come before any class, and own the tail where they fill it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from account_cases import Scene, simulate
from evidence_cases import Ran, trace

from trimtab.domain.events import ERROR_KINDS
from trimtab.domain.score import Diagnosis
from trimtab.domain.study import Sla
from trimtab.evidence.attribute import tail
from trimtab.evidence.attribute.account import account
from trimtab.evidence.classify import failures
from trimtab.evidence.classify.classes import WHY_FAILED, Case, Effect, Suspect, classify
from trimtab.evidence.classify.diagnose import diagnose, told
from trimtab.evidence.classify.gates import Gate
from trimtab.evidence.classify.known import Facts

PASSED = Gate("load-generator", True, "on time", ())
SAID = "3 of 40 requests failed"
DEFECT = Suspect("precision-fallback", None, ("3 % ran in f32",))
COLD = Suspect("cold-shape", Effect(0.7, 0.5, 0.8), ("first runs",))
MEMORY = Suspect("memory-limit", None, ("30 batches ended out of memory",), certain=True)


def test_they_are_told_by_kind_and_place() -> None:
    runs = [Ran((100,), wall=1, arrived=1000.0 * i) for i in range(37)]
    lost = [
        Ran((640,), wall=1, arrived=40_000, error="crash", entry="to-640"),
        Ran((600,), wall=1, arrived=41_500, error="crash", entry="to-640"),
        Ran((900,), wall=1, arrived=42_000, error="hang"),
    ]
    assert failures.sentence(trace([*runs, *lost])) == (
        "3 of 40 requests failed (7.5 %): 2 crash (entry to-640, W 600 to 640, at 40 to 41.5 s), "
        "1 hang (entry dyn, W 900, at 42 s)"
    )
    assert failures.sentence(trace(runs)) == ""


def test_a_request_that_never_ran_names_no_entry() -> None:
    run = trace([Ran((100,), wall=1), Ran((2000,), wall=1, arrived=5, error="rejected")])
    run.requests["batch"][1] = -1
    assert failures.sentence(run) == "1 of 2 requests failed (50.0 %): 1 rejected (W 2000, at 0.005 s)"


def test_a_request_that_neither_ended_nor_failed_is_unfinished() -> None:
    run = trace([Ran((100,), wall=1), Ran((100,), wall=1, arrived=5)])
    run.requests["done"][1] = -1
    assert failures.kinds(run) == {"unfinished": 1}


@pytest.mark.parametrize(("lost", "owned"), [(4, False), (5, False), (6, True), (100, True)])
def test_they_own_a_percentile_where_they_outnumber_what_lies_above_it(lost: int, owned: bool) -> None:
    runs = [Ran((100,), wall=1, arrived=i, error="crash" if i < lost else "none") for i in range(100)]
    assert failures.own(trace(runs), 0.95) is owned


@pytest.mark.parametrize(
    ("case", "classes"),
    [
        ({"suspects": (COLD,)}, ["cold-shape"]),
        ({"suspects": (COLD,), "defects": (DEFECT,)}, ["cold-shape", "precision-fallback"]),
        ({"defects": (DEFECT,), "lost": True}, ["insufficient-evidence", "precision-fallback"]),
        ({"defects": (DEFECT,)}, ["insufficient-evidence", "precision-fallback"]),
        ({"suspects": (MEMORY,), "defects": (DEFECT,), "lost": True}, ["memory-limit", "precision-fallback"]),
        ({"lost": True}, ["insufficient-evidence"]),
        ({"met": True, "fits": True}, ["healthy"]),
        ({"met": True, "fits": True, "defects": (DEFECT,)}, ["precision-fallback"]),
        ({"met": None, "defects": (DEFECT,)}, ["insufficient-evidence", "precision-fallback"]),
    ],
)
def test_no_defect_stands_in_for_a_tail_that_failures_broke(case: dict[str, object], classes: list[str]) -> None:
    base = {"gates": (PASSED,), "met": False, "fits": False, "suspects": (), "failures": SAID}
    found = classify(Case(**(base | case)))  # type: ignore[arg-type]
    assert [one.id for one in found.classes] == classes
    assert found.failures == SAID
    if classes[0] == "insufficient-evidence":
        assert found.next_measurement == WHY_FAILED


def test_their_sentence_comes_first() -> None:
    found = classify(Case(gates=(PASSED,), met=False, fits=False, suspects=(COLD,), failures=SAID))
    said, _ = told(found, "accounts/r.parquet")
    assert [one.text.partition(" (")[0] for one in said] == [f"{SAID}.", "Class: cold-shape"]
    assert said[0].owner == "runtime"


# --- from a run -----------------------------------------------------------------------------------------------


def crashed(every: int, n: int = 400) -> tuple[Scene, Diagnosis]:
    """Quiet traffic in which every so many requests crash, and a precision that was not executed."""
    rng = np.random.default_rng(1)
    arrivals = np.cumsum(rng.exponential(40e6, n)).astype(np.int64)
    scene = Scene(arrivals - arrivals[0], rng.integers(20, 400, n))
    run = simulate(scene)
    run.requests["error"][::every] = ERROR_KINDS.index("crash")
    facts = Facts(effects={}, declared="f32", executed=0.03)
    return scene, diagnose(run, Sla(metric="p95", bound_ms=60), facts, {})


def test_a_run_in_which_a_tenth_crashed_is_not_explained_by_the_rest() -> None:
    _, found = crashed(every=10)
    assert [one.id for one in found.classes] == ["insufficient-evidence", "precision-fallback"]
    assert found.failures.startswith("40 of 400 requests failed (10.0 %): 40 crash (entry entry, w ")
    assert "falls among failed requests" in found.classes[0].evidence[0]


def test_the_headline_and_the_owner_of_the_tail_are_the_failures() -> None:
    scene, _ = crashed(every=10)
    run = simulate(scene)
    run.requests["error"][::10] = ERROR_KINDS.index("crash")
    run.requests["error"][5:8] = ERROR_KINDS.index("hang")
    found = tail.findings(account(run, scene.promise, scene.reference, "reference", scene.plan), run)
    assert found.headline.startswith(
        "Failed requests own the p95 set: 43 of 400 failed (40 crash, 3 hang), more than the 5.0 % that lie above p95. "
        "Of the slowest that ended well ("
    )
    assert tail.owner(found, "p95") == ("failed requests", 1.0)


def test_few_failures_leave_the_tail_to_its_cause() -> None:
    scene, _ = crashed(every=10)
    run = simulate(scene)
    run.requests["error"][:12] = ERROR_KINDS.index("crash")
    found = tail.findings(account(run, scene.promise, scene.reference, "reference", scene.plan), run)
    owner, share = tail.owner(found, "p95") or ("", 0.0)
    assert (owner, share > 0.5) == ("useful", True)
    assert any(one.text.startswith("12 requests failed and count as +infinity") for one in found.findings)
    assert tail.owner(found, "p99") == ("failed requests", 1.0)


def test_where_all_failed_they_own_it() -> None:
    scene, _ = crashed(every=10)
    run = simulate(scene)
    run.requests["error"][:] = ERROR_KINDS.index("crash")
    found = tail.findings(account(run, scene.promise, scene.reference, "reference", scene.plan), run)
    assert tail.owner(found, "p95") == tail.owner(found, "p99") == ("failed requests", 1.0)
    bound = found.figure("tail.p95.bound")
    assert bound is not None
    assert bound.value == math.inf
