"""What adapting would win: figures, windows and words, from runs that are given."""

from __future__ import annotations

import numpy as np
import pytest
from adaptation_cases import adaptation, run
from evidence_cases import SLA, Line, dynamic

from trimtab.domain.figure import Findings
from trimtab.domain.study import Sla
from trimtab.evidence.score import accuracy as score
from trimtab.evidence.score.adaptation import Adaptation, Shift, window_values
from trimtab.evidence.score.batches import Yardstick
from trimtab.evidence.score.reference import ReferenceSet

LINE = Line(fixed=1.0, slope=0.01)
STICK = Yardstick(LINE, LINE, "ref", ReferenceSet((dynamic("ref", batch=(1, 1)),), LINE, 1))


def found(given: Adaptation | str, sla: Sla = SLA) -> Findings:
    measured = run("m", source="measured")
    return score.findings(measured, STICK, sla, np.random.default_rng(1), adaptation=given)


def value(told: Findings, name: str) -> float | None:
    figure = told.figure(f"score.{name}")
    assert figure is not None
    return figure.value


def test_gain_headroom_and_capture() -> None:
    told = found(adaptation(adapted=0.5))
    # p95 of all 600: static 3.9 ms (width 290); adapted: the slower half decides
    assert value(told, "headroom") == pytest.approx(0.4, abs=0.01)
    assert value(told, "simulated_floor") == pytest.approx(0.03, abs=0.001)
    gain, capture = value(told, "gain"), value(told, "capture")
    assert gain is not None
    assert capture == pytest.approx(gain / 0.4, abs=0.01)
    assert (value(told, "compiling"), value(told, "stall"), value(told, "interpolated")) == (500.0, 11.0, 0.25)
    assert all("simulated" in f.note for f in told.figures if f.id.startswith(("score.gain", "score.headroom")))


def test_headroom_inside_the_floor_leaves_nothing_to_capture() -> None:
    told = found(adaptation(knowing=0.99))
    figure = told.figure("score.capture")
    assert figure is not None
    assert (figure.value, figure.note) == (None, "nothing to capture")


def test_one_row_a_window_with_the_accuracy_of_the_static_run() -> None:
    table = found(adaptation()).table("score.adaptation")
    assert table is not None
    rows = table.columns
    assert rows["window"] == (0, 1, 2)
    assert rows["requests"] == (200, 200, 200)
    assert rows["static_p95"] == (3.89, 3.89, 3.89)
    assert rows["gain"][0] == 0.0
    assert rows["gain"][2] == pytest.approx(0.2)
    assert rows["gain_without_stalls"][2] == pytest.approx(0.3)
    assert rows["headroom"] == pytest.approx((0.4, 0.4, 0.4))
    assert rows["mapping_accuracy"] == (1.0, 1.0, 1.0)
    assert (rows["compiled"], rows["stall"]) == ((0, 1, 1), (0.0, 5.0, 6.0))
    assert rows["compiling"] == (0.0, 200.0, 300.0)
    assert (rows["ends"], rows["best"]) == (("", "299", "150 299"), ("this window", "this window", "baseline"))


def test_a_padded_static_run_has_a_low_accuracy() -> None:
    padded = adaptation()
    padded = Adaptation(**{f: getattr(padded, f) for f in padded.__struct_fields__} | {"static": run("s", wide=300)})
    table = found(padded).table("score.adaptation")
    assert table is not None
    assert table.columns["mapping_accuracy"][0] == pytest.approx((1 + 0.01 * 199.5) / 4, abs=0.001)


def test_the_sentence_says_what_compiling_takes() -> None:
    texts = [finding.text for finding in found(adaptation()).findings]
    assert texts[-1].startswith("In simulation, refitting the buckets while serving makes p95 ")
    work = "2 compiles take 0.5 s of a core that serves nobody, and first runs 11 ms of the workers."
    assert work in texts[-1]
    assert texts[-1].endswith("with each window known beforehand, 40.0 % better.")


def test_the_sentence_says_that_no_refit_was_worth_it() -> None:
    given = adaptation()
    idle = tuple(Shift(ends=(), compiled=0, compiling=0, stall=0, best="baseline") for _ in given.shifts)
    still = Adaptation(**{f: getattr(given, f) for f in given.__struct_fields__} | {"shifts": idle})
    assert found(still).findings[-1].text == (
        "In simulation, refitting the buckets while serving changes nothing: no table was proved to be worth it. With "
        "each window known beforehand, p95 would be 40.0 % better."
    )


def test_a_gain_enters_the_one_sentence_that_reads_the_score() -> None:
    told = found(adaptation(adapted=0.5, knowing=0.4))
    assert "simulated, wins back" in told.headline or "no gain of refitting" in told.headline
    fails = found(adaptation(adapted=100.0), Sla(metric="p95", bound_ms=50, deadline_ms=100))
    assert value(fails, "gain") is None
    assert "50.0 % of the requests end after the deadline, and goodput changes by -50.0 %" in fails.headline


def test_why_there_is_no_adapted_run_is_said() -> None:
    told = found("the study allows no buckets")
    figure = told.figure("score.gain")
    assert figure is not None
    assert (figure.value, figure.note) == (None, "simulated: the study allows no buckets")
    assert told.table("score.adaptation") is None


def test_window_values_are_the_primary_metric() -> None:
    edges = np.array([0, 200, 400, 600])
    assert window_values(run("r", (1.0, 2.0)), SLA, edges) * 1e3 == pytest.approx([3.89, 7.28, 7.78], abs=0.5)
    assert window_values(run("r"), Sla(metric="goodput", bound_ms=3.0), edges).tolist() == [0.505, 0.505, 0.505]


def held_against(slow: float) -> Findings:
    """The same, beside replays that are ``slow`` times as slow as the simulation says."""
    replays = [run(f"m{i}", (slow * k, slow * k), source="measured") for i, k in enumerate((1.0, 1.01, 1.02))]
    return score.findings(
        replays[0], STICK, SLA, np.random.default_rng(1), simulated=[run("s")], replayed=replays,
        adaptation=adaptation(adapted=0.5),
    )  # fmt: skip


def test_a_simulation_that_misses_the_replays_is_doubted_everywhere() -> None:
    told = held_against(0.2)
    why = "the simulation misses the replayed p95 by +395.1 %"
    assert f"what refitting at run time would win cannot be read ({why})" in told.headline
    assert told.findings[-1].text.startswith(f"Not to be relied on, because {why}. In simulation, ")
    named = [f for f in told.figures if f.id.startswith(("score.gain", "score.headroom", "score.capture"))]
    assert len(named) > 6
    assert all(why in figure.note for figure in named)
    assert value(told, "capture") is None


def test_a_simulation_that_meets_them_is_not() -> None:
    told = held_against(1.1)
    assert "misses" not in told.headline + told.findings[-1].text
    assert value(told, "capture") is not None
