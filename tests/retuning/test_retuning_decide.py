"""The decision as a table: every line of the rule, the sentence it gives, and what a verdict must name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace as but
from retuning_cases import study

from trimtab.domain.figure import Interval
from trimtab.domain.study import SignOff, Sla
from trimtab.domain.verdict import CellRole, CellStatus, MatrixCell, Move, Proposal, Running, Watched
from trimtab.retuning import findings
from trimtab.retuning._change import SIZE
from trimtab.retuning.case import Case
from trimtab.retuning.decide import OWN_QUEUE, decide
from trimtab.retuning.wording import signoff_text

BASE = study().baseline
WARM = Move(
    kind="warm",
    sentence="Run the 8 shapes with the costliest first runs once at start.",
    owner="runtime",
    plan=but(BASE, id="warm-8"),
    size=108,
    risk="Shapes that are not on the list stay cold.",
)
OTHER = but(WARM, kind="refit")
NONE = Move(kind="no-change", sentence="Keep plan today as it is.", owner="runtime", plan=BASE, size=0)


def cell(role: CellRole, status: CellStatus, metric: str = "p95", part: str = "held-out", **values: Any) -> MatrixCell:
    samples = 0 if status == "not-run" else 1500
    facts = {"condition": "normal", "baseline": 412.0, "candidate": 58.0, "change": -0.86, "samples": samples, **values}
    return MatrixCell(id=f"{role}/{part}/{metric}", slice=part, metric=metric, role=role, status=status, **facts)


PRIMARY = cell("primary", "pass", interval=Interval(lo=-0.88, hi=-0.83))
GUARD = cell("guard", "pass", "p99")
QUALITY = cell("guard", "pass", "argmax-agreement")
FAILED = cell("guard", "fail", "p99")
OPEN = cell("guard", "inconclusive", "p99")
WORSE = cell("primary", "fail", change=0.4, interval=Interval(lo=0.2, hi=0.6), floor=0.1)
FIRED = Watched(cell="primary/held-out/p95", slice="held-out", metric="p95", runs=3, fired=2, after=200)
CALM = Watched(cell="guard/held-out/p99", slice="held-out", metric="p99", runs=3, fired=0)
BY_HAND = Watched(cell="c", slice="s", metric="p95", runs=0, fired=0, note="it has no automatic boundary")
RUNS = Running(packet="ab12", shipped="2030-01-01T00:00:00+00:00", plan="warm-8", back_to="today")


def case(*cells: MatrixCell, move: Move = WARM, **facts: Any) -> Case:
    return Case(
        move=move,
        baseline="today",
        cells=cells,
        sla=Sla(metric="p95", bound_ms=60.0),
        signoff=SignOff(),
        **{"signed": ("compiler", "runtime", "observability"), **facts},
    )


TABLE: dict[str, tuple[Case, str, str, tuple[str, ...]]] = {
    "all pass": (case(PRIMARY, GUARD), "ship", "", ("primary/held-out/p95", "guard/held-out/p99")),
    "no guards declared": (case(PRIMARY), "ship", "", ("primary/held-out/p95",)),
    "guard fails on what is running": (
        case(PRIMARY, FAILED, running=RUNS), "rollback", "guard-failed", ("guard/held-out/p99",),
    ),
    "quality fails on what is running": (
        case(PRIMARY, quality=(but(QUALITY, status="fail"),), running=RUNS),
        "rollback", "guard-failed", ("guard/held-out/argmax-agreement",),
    ),
    "running and well": (
        case(PRIMARY, GUARD, running=RUNS), "ship", "", ("primary/held-out/p95", "guard/held-out/p99"),
    ),
    "what runs is worse than the floor": (
        case(WORSE, GUARD, running=RUNS), "rollback", "guard-failed", ("primary/held-out/p95",),
    ),
    "what runs fails in both": (
        case(WORSE, FAILED, running=RUNS), "rollback", "guard-failed", ("primary/held-out/p95", "guard/held-out/p99"),
    ),
    "what runs loses goodput": (
        case(
            cell("primary", "fail", "goodput", change=-0.3, interval=Interval(lo=-0.4, hi=-0.2), floor=0.05),
            running=RUNS,
        ),
        "rollback", "guard-failed", ("primary/held-out/goodput",),
    ),
    "what runs gains nothing": (
        case(but(WORSE, interval=Interval(lo=0.0, hi=0.6)), GUARD, running=RUNS),
        "hold", "no-benefit", ("primary/held-out/p95",),
    ),
    "what runs is worse, by an unknown floor": (
        case(but(WORSE, floor=None), running=RUNS), "hold", "no-benefit", ("primary/held-out/p95",),
    ),
    "a proposal that is worse is no rollback": (case(WORSE), "hold", "no-benefit", ("primary/held-out/p95",)),
    "a trigger alone never decides": (
        case(PRIMARY, GUARD, running=but(RUNS, triggers=(FIRED,))),
        "ship", "", ("primary/held-out/p95", "guard/held-out/p99"),
    ),
    "what runs computes no network, a guard fails": (
        case(PRIMARY, FAILED, running=RUNS, plumbing="nothing computed"),
        "rollback", "guard-failed", ("guard/held-out/p99",),
    ),
    "what runs and nothing judged its outputs": (
        case(PRIMARY, GUARD, move=OTHER, running=RUNS), "hold", "inconclusive", (),
    ),
    "running, guard open": (case(PRIMARY, OPEN, running=RUNS), "hold", "inconclusive", ("guard/held-out/p99",)),
    "nothing to change": (case(move=NONE), "hold", "no-benefit", ()),
    "guard fails": (case(PRIMARY, FAILED), "hold", "guard-failed", ("guard/held-out/p99",)),
    "guard fails and no benefit": (
        case(but(PRIMARY, status="fail"), FAILED), "hold", "guard-failed", ("guard/held-out/p99",),
    ),
    "no benefit": (case(but(PRIMARY, status="fail"), GUARD), "hold", "no-benefit", ("primary/held-out/p95",)),
    "no benefit, guard open": (
        case(but(PRIMARY, status="fail"), OPEN), "hold", "no-benefit", ("primary/held-out/p95",),
    ),
    "primary open": (
        case(but(PRIMARY, status="inconclusive"), GUARD), "hold", "inconclusive", ("primary/held-out/p95",),
    ),
    "primary not run": (case(but(PRIMARY, status="not-run")), "hold", "inconclusive", ("primary/held-out/p95",)),
    "no primary": (case(GUARD), "hold", "inconclusive", ()),
    "no cells at all": (case(), "hold", "inconclusive", ()),
    "guard open": (case(PRIMARY, OPEN), "hold", "inconclusive", ("guard/held-out/p99",)),
    "guard not run": (case(PRIMARY, but(OPEN, status="not-run")), "hold", "inconclusive", ("guard/held-out/p99",)),
    "quality fails": (
        case(PRIMARY, quality=(but(QUALITY, status="fail"),)),
        "hold", "guard-failed", ("guard/held-out/argmax-agreement",),
    ),
    "quality open": (
        case(PRIMARY, quality=(but(QUALITY, status="inconclusive"),)),
        "hold", "inconclusive", ("guard/held-out/argmax-agreement",),
    ),
    "the replays left it open": (case(move=NONE, undecided="too few requests"), "hold", "inconclusive", ()),
    "outputs may change and nothing judged them": (case(PRIMARY, GUARD, move=OTHER), "hold", "inconclusive", ()),
    "outputs may change, quality open": (
        case(PRIMARY, move=OTHER, quality=(but(QUALITY, status="inconclusive"),)),
        "hold", "inconclusive", ("guard/held-out/argmax-agreement",),
    ),
    "outputs may change and hold their floor": (
        case(PRIMARY, move=OTHER, quality=(QUALITY,)),
        "ship", "", ("primary/held-out/p95", "guard/held-out/argmax-agreement"),
    ),
    "no network was computed": (case(PRIMARY, GUARD, plumbing="nothing computed"), "hold", "inconclusive", ()),
    "no network was computed, a guard fails": (
        case(PRIMARY, FAILED, plumbing="nothing computed"), "hold", "guard-failed", ("guard/held-out/p99",),
    ),
    "precision changes, executed precision unknown": (
        case(PRIMARY, changes_precision=True, quality=(QUALITY,)), "hold", "inconclusive", (),
    ),
    "precision changes with both": (
        case(PRIMARY, changes_precision=True, quality=(QUALITY,), executed={"bf16": 0.9, "f32": 0.1}),
        "ship", "", ("primary/held-out/p95", "guard/held-out/argmax-agreement"),
    ),
    "informative cells never decide": (
        case(PRIMARY, cell("informative", "fail", "p50"), cell("informative", "inconclusive", "goodput")),
        "ship", "", ("primary/held-out/p95",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_the_rule(name: str) -> None:
    given_, decision, reason, deciding = TABLE[name]
    verdict = decide(given_)
    assert (verdict.decision, verdict.reason, verdict.deciding) == (decision, reason, deciding)


SENTENCES: dict[str, tuple[Case, str]] = {
    "ship": (
        case(PRIMARY, GUARD, tail=("cold shapes", 0.71)),
        "Ship: run the 8 shapes with the costliest first runs once at start. On held-out, p95 went from 412 ms to "
        "58 ms (−86 %, −88 % to −83 %); that meets the bound of 60 ms. The tail of plan today belongs to cold shapes "
        "(71 %).",
    ),
    "ship, unsigned": (
        case(PRIMARY, signed=("compiler", "runtime")),
        "Ship, once the observability engineer signs: run the 8 shapes with the costliest first runs once at start. On "
        "held-out, p95 went from 412 ms to 58 ms (−86 %, −88 % to −83 %); that meets the bound of 60 ms.",
    ),
    "hold": (
        case(cell("primary", "fail", candidate=410.0, change=-0.005)),
        "Hold: no benefit above the floor. The move was: run the 8 shapes with the costliest first runs once at start. "
        "On held-out, p95 went from 412 ms to 410 ms (−0.5 %); that misses the bound of 60 ms.",
    ),
    "hold, undecided": (
        case(cell("primary", "inconclusive"), OPEN),
        "Hold: p95 on held-out and p99 on held-out are undecided. The move was: run the 8 shapes with the costliest "
        "first runs once at start. On held-out, p95 went from 412 ms to 58 ms (−86 %); that meets the bound of 60 ms.",
    ),
    "hold, no move": (case(move=NONE), "Hold: no move gained anything."),
    "hold, open": (
        case(move=NONE, undecided="the replays do not decide whether refit-8 gains: too few"),
        "Hold: the replays do not decide whether refit-8 gains: too few.",
    ),
    "hold, outputs unseen": (
        case(cell("primary", "pass", baseline=None, candidate=None, change=None), move=OTHER),
        "Hold: it may change outputs and nothing has judged them; a study with real or rendered payloads "
        "(workload.payload) would. The move was: run the 8 shapes with the costliest first runs once at start.",
    ),
    "no network was computed": (
        case(move=NONE, plumbing="the null backend computes no network"),
        "Hold: no move gained anything. This proves plumbing only: the null backend computes no network.",
    ),
    "hold, nothing measured": (
        case(cell("primary", "inconclusive", baseline=None, candidate=None, change=None)),
        "Hold: p95 on held-out is undecided. The move was: run the 8 shapes with the costliest first runs once at "
        "start.",
    ),
    "hold, a condition fails": (
        case(cell("primary", "pass", baseline=None), but(FAILED, condition="cold start")),
        "Hold: p99 on held-out (cold start) got worse than allowed. The move was: run the 8 shapes with the costliest "
        "first runs once at start.",
    ),
    "rollback": (
        case(cell("primary", "pass", candidate=float("inf"), change=float("inf")), FAILED, running=RUNS),
        "Roll back to plan today: p99 on held-out failed on what is running. On held-out, p95 went from 412 ms to "
        "beyond the deadline (into failure); that misses the bound of 60 ms.",
    ),
    "rollback, with the trigger that fired": (
        case(
            cell("primary", "inconclusive", baseline=None),
            FAILED,
            tail=("padding", 0.5),
            running=but(RUNS, triggers=(FIRED, CALM, BY_HAND)),
        ),
        "Roll back to plan today: p99 on held-out failed on what is running. The trigger on p95 of held-out fired in "
        "2 of 3 replays, after 200 requests at the soonest. The tail of plan warm-8 belongs to padding (50 %).",
    ),
    "keep": (
        case(PRIMARY, GUARD, running=but(RUNS, triggers=(CALM,))),
        "Ship: keep plan warm-8, which runs. No trigger fired. On held-out, p95 went from 412 ms to 58 ms (−86 %, "
        "−88 % to −83 %); that meets the bound of 60 ms.",
    ),
    "keep, unsigned": (
        case(cell("primary", "pass", baseline=None), running=but(RUNS, triggers=(BY_HAND,)), signed=()),
        "Ship, once the compiler lead, the runtime lead and the observability engineer sign: keep plan warm-8, which "
        "runs.",
    ),
    "one question that two cells ask": (
        case(cell("primary", "inconclusive", baseline=None), cell("guard", "inconclusive"), running=RUNS),
        "Hold: p95 on held-out is undecided. Plan warm-8 keeps running.",
    ),
    "hold what runs": (
        case(cell("primary", "inconclusive", baseline=None), running=RUNS),
        "Hold: p95 on held-out is undecided. Plan warm-8 keeps running.",
    ),
    "open cells are named": (
        case(
            PRIMARY,
            cell("informative", "fail", part="stream c1"),
            cell("informative", "inconclusive", part="width 16-99"),
        ),
        "Ship: run the 8 shapes with the costliest first runs once at start. On held-out, p95 went from 412 ms to "
        "58 ms (−86 %, −88 % to −83 %); that meets the bound of 60 ms. Worse: p95 on stream c1. Open: p95 on width "
        "16-99.",
    ),
    "judged on goodput": (
        case(cell("primary", "pass", "goodput", baseline=0.90, candidate=0.99, change=0.1)),
        "Ship: run the 8 shapes with the costliest first runs once at start. On held-out, goodput went from 90 % to "
        "99 % (+10 %); the bound is p95 60 ms.",
    ),
}


@pytest.mark.parametrize("name", SENTENCES)
def test_the_sentence(name: str) -> None:
    given_, sentence = SENTENCES[name]
    assert decide(given_).sentence == sentence


@pytest.mark.parametrize(
    ("require", "signed", "text"),
    [
        (("compiler", "runtime", "observability"), ("compiler", "runtime", "observability"), ""),
        (("compiler", "runtime", "observability"), ("compiler", "runtime"), "once the observability engineer signs"),
        (
            ("compiler", "runtime", "observability"), (),
            "once the compiler lead, the runtime lead and the observability engineer sign",
        ),
        (("runtime",), (), "once the runtime lead signs (reduced sign-off: runtime lead)"),
        (("runtime",), ("runtime",), "(reduced sign-off: runtime lead)"),
        ((), (), "(reduced sign-off: nobody)"),
    ],
)  # fmt: skip
def test_what_sign_off_still_asks_for(require: Any, signed: Any, text: str) -> None:
    assert signoff_text(SignOff(require=require), signed) == text


def test_a_verdict_names_scope_gaps_and_risks() -> None:
    verdict = decide(
        replace(
            case(
                but(PRIMARY, candidate=80.0),
                GUARD,
                cell("informative", "fail", part="stream c1", change=0.2),
                cell("informative", "inconclusive", "p50"),
                cell("informative", "not-run", condition="cold start", note="not asked for"),
                cell("informative", "not-run", condition="one core less", note="there is one worker"),
            ),
            signoff=SignOff(require=("runtime",)),
            scope=("openvino 2026.3.0",),
            not_covered=("widths above 1200",),
            risks=("Memory grows by 118 MiB.",),
            executed={"f32": 0.25, "bf16": 0.75},
        )
    )
    assert verdict.scope == (
        "openvino 2026.3.0",
        "slices: held-out, stream c1",
        "conditions: normal",
        "executed precision: bf16 75 %, f32 25 %",
        "trimtab's own queue and workers: no remote server was driven",
    )
    assert verdict.not_covered == ("cold start", "one core less (there is one worker)", "widths above 1200")
    assert verdict.risks == (
        "Shapes that are not on the list stay cold.",
        "The bound of 60 ms is still missed.",
        "p95 on stream c1 (normal) is worse: +20 %.",
        "1 informative cell is undecided.",
        "Sign-off is reduced: not every role answers for this change.",
        "Memory grows by 118 MiB.",
    )


def test_a_trigger_that_fires_on_what_is_kept_is_a_risk() -> None:
    fired = but(RUNS, triggers=(FIRED,))
    told = "A trigger fired, but it is not shown that going back to plan today would help."
    assert told in decide(case(PRIMARY, GUARD, running=fired)).risks
    assert told in decide(case(PRIMARY, OPEN, running=fired)).risks
    assert told not in decide(case(PRIMARY, FAILED, running=fired)).risks
    assert decide(case(PRIMARY, running=fired)).running == fired


def test_what_no_request_was_served_under_is_not_covered() -> None:
    """No change was chosen: nothing was replayed, and only answers were judged."""
    nothing = cell("primary", "inconclusive", samples=0)
    answers = cell("guard", "pass", "argmax-agreement", part="all shapes", samples=24)
    verdict = decide(case(nothing, cell("informative", "not-run"), move=NONE, quality=(answers,)))
    assert verdict.scope == ("slices: all shapes", OWN_QUEUE)
    assert verdict.not_covered == ("normal",)


def test_a_verdict_on_the_null_backend_says_what_it_proves() -> None:
    verdict = decide(case(PRIMARY, plumbing="the null backend computes no network"))
    assert "This proves plumbing only" in verdict.sentence
    assert "plumbing only: the null backend computes no network" in verdict.scope


STATUS = st.sampled_from(["pass", "fail", "inconclusive", "not-run"])


@settings(deadline=None, max_examples=150)
@given(
    st.none() | STATUS, st.lists(STATUS, max_size=3), st.lists(STATUS, max_size=2), st.sampled_from(sorted(SIZE)),
    st.booleans(), st.booleans(),
)  # fmt: skip
def test_laws(primary: Any, guards: Any, quality: Any, kind: str, null: bool, running: bool) -> None:
    """Ship only if everything that decides passed; roll back only from a failed guard of what is running."""
    cells = [cell("guard", status, f"g{i}") for i, status in enumerate(guards)]
    head = [cell("primary", primary)] if primary else []
    given_ = replace(
        case(*head, *cells, move=but(WARM, kind=kind)),
        quality=tuple(cell("guard", status, f"q{i}") for i, status in enumerate(quality)),
        changes_precision=kind == "precision",
        executed={"bf16": 1.0},
        plumbing="no network" if null else "",
        running=RUNS if running else None,
    )
    verdict = decide(given_)
    seen = bool(quality) or kind in ("warm", "order", "placement", "admit", "workers")
    all_pass = primary == "pass" and all(s == "pass" for s in (*guards, *quality))
    assert (verdict.decision == "ship") == (all_pass and seen and not null and kind != "no-change")
    assert (verdict.decision == "rollback") == (running and "fail" in (*guards, *quality))
    assert (verdict.reason == "") == (verdict.decision == "ship")
    assert set(verdict.deciding) <= {c.id for c in verdict.cells}
    covered = next((s.removeprefix("conditions: ") for s in verdict.scope if s.startswith("conditions: ")), "")
    assert not set(covered.split(", ")) & set(verdict.not_covered)


def test_findings_lead_with_the_sentence_and_name_the_way_back() -> None:
    verdict = decide(case(PRIMARY, GUARD))
    figure = findings.cell_figure(PRIMARY, "validate.json")
    proposal = Proposal(
        move=WARM, baseline="today", expected=figure, measured=figure, rollback="Go back to plan today.", rejected=()
    )
    found = findings.decide(verdict, proposal)
    assert found.headline == verdict.sentence
    assert found.findings[0].figures == ("validate.primary/held-out/p95", "validate.guard/held-out/p99")
    assert (found.findings[1].text, found.findings[1].owner) == ("Go back to plan today.", "runtime")
