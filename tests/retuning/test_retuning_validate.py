"""The matrix: what passes, what fails, and every reason for which a cell stays open."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matrix_cases import P95, N, arm, arms, guard, judged, the
from msgspec.structs import replace
from retuning_cases import noisy

from trimtab.domain.study import Guard, Sla
from trimtab.errors import StudyError
from trimtab.retuning import _metric, findings
from trimtab.retuning.arms import CONDITIONS, Arms
from trimtab.retuning.validate import replays_wanted, validate

# --- the primary cell ----------------------------------------------------------------------------------------


def test_a_gain_beyond_the_floor_passes() -> None:
    cell = judged(arms(0.7)).primary
    assert cell is not None
    assert (cell.status, cell.metric, cell.samples, cell.note) == ("pass", "p95", N, "")
    assert cell.change == pytest.approx(-0.3, abs=0.02)
    assert cell.interval is not None
    assert cell.interval.hi < -0.25
    assert cell.candidate == pytest.approx(0.7 * (cell.baseline or 0), rel=0.03)


@pytest.mark.parametrize("scale", [1.03, 1.2])
def test_no_gain_fails_as_no_benefit(scale: float) -> None:
    cell = judged(arms(scale)).primary
    assert cell is not None
    assert (cell.status, cell.note) == ("fail", "no benefit above the floor")


def test_an_interval_that_touches_the_floor_is_open_and_says_what_would_decide() -> None:
    """10 % of the requests differ by noise of their own, so a gain of 3 % cannot be told from the floor."""
    rng = np.random.default_rng(1)
    before = tuple(rng.gamma(2.0, 0.01, N) for _ in range(3))
    after = tuple(x * 0.97 for x in (rng.gamma(2.0, 0.01, N) for _ in range(3)))
    cell = judged(Arms("normal", before, after)).primary
    assert cell is not None
    assert cell.status == "inconclusive"
    assert cell.note.startswith("the interval touches the floor; about ")
    assert cell.note.endswith(f"requests a replay would decide (now {N})")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (arms(0.5, refusal="the runs differ in envelope"), "the runs differ in envelope"),
        (arms(0.5, replays=2), "provisional: 2 replays an arm"),
        (arms(0.5, replays=1), "one replay an arm"),
        (arms(0.5, n=15), "would do"),
        (Arms("normal", (), ()), "an arm has no replay"),
        (Arms("normal", (noisy(1, 900, 1),), (noisy(1, 901, 1),)), "not the same arrivals"),
    ],
    ids=["refused", "two-replays", "one-replay", "too-short", "nothing", "other-arrivals"],
)
def test_nothing_passes_without_grounds(given: Arms, says: str) -> None:
    cell = judged(given).primary
    assert cell is not None
    assert cell.status == "inconclusive"
    assert says in cell.note


def test_a_provisional_floor_may_still_show_a_failure() -> None:
    matrix = judged(arms(1.5, replays=2), guard("p99", 0.1))
    assert [cell.status for cell in matrix.cells[:2]] == ["fail", "fail"]


def test_a_percentile_on_too_few_effective_samples_does_not_pass() -> None:
    """Latencies that stay for 60 requests: 1,500 of them are worth few."""
    level = np.repeat(np.random.default_rng(5).gamma(2.0, 0.01, N // 60), 60)
    before = tuple(level * np.random.default_rng(r).normal(1, 0.001, N) for r in range(3))
    after = tuple(x * 0.5 for x in before)
    weighed = judged(Arms("normal", before, after), sla=replace(P95, metric="p99")).primary
    assert weighed is not None
    assert weighed.status == "inconclusive"
    assert "effective samples, 459 needed" in weighed.note or "would do" in weighed.note


def test_arms_that_lost_different_numbers_are_judged_on_goodput() -> None:
    lost = tuple(np.where(np.arange(N) % 20 == 0, np.inf, x) for x in arm(0, 1.0))
    cell = judged(Arms("normal", lost, arm(50, 1.0))).primary
    assert cell is not None
    assert (cell.id, cell.metric, cell.status) == ("primary/normal/held-out/p95", "goodput", "pass")
    assert cell.note == "75 against 0 failed requests a replay: judged on goodput"


def test_goodput_as_the_primary_metric_is_better_when_it_rises() -> None:
    sla = Sla(metric="goodput", bound_ms=30.0)
    up, down = judged(arms(0.7), sla=sla).primary, judged(arms(1.4), sla=sla).primary
    assert up is not None
    assert down is not None
    assert (up.status, down.status) == ("pass", "fail")
    assert (up.change or 0) > 0 > (down.change or 0)


def test_later_than_the_deadline_is_failed() -> None:
    sla = Sla(metric="p95", bound_ms=60.0, deadline_ms=50.0)
    cell = judged(arms(0.5), sla=sla).primary
    assert cell is not None
    assert cell.metric == "goodput"
    assert "judged on goodput" in cell.note


# --- informative cells ---------------------------------------------------------------------------------------


def test_every_slice_metric_and_condition_has_a_cell() -> None:
    slices = {"held-out": np.arange(N), "stream a": np.arange(0, N, 2)}
    matrix = judged(arms(0.7), guard("p99", 0.1), slices=slices)
    told = [(c.slice, c.metric, c.condition, c.status) for c in matrix.cells if c.role == "informative"]
    assert told == [
        ("held-out", "p50", "normal", "pass"),
        ("held-out", "goodput", "normal", "pass"),
        ("held-out", "miss", "normal", "pass"),
        ("stream a", "p95", "normal", "pass"),
        ("held-out", "memory", "normal", "inconclusive"),
        *[("held-out", "p95", condition, "not-run") for condition in CONDITIONS[1:]],
    ]


def test_a_slice_that_gets_worse_is_told() -> None:
    """Even requests twice as fast, odd ones 20 % slower."""
    factor = np.where(np.arange(N) % 2 == 0, 0.5, 1.2)
    given = Arms("normal", arm(0, 1.0), tuple(x * factor for x in arm(50, 1.0)))
    slices = {"held-out": np.arange(N), "odd": np.arange(1, N, 2)}
    cell = the(judged(given, slices=slices), "informative/normal/odd/p95")
    assert (cell.status, cell.note) == ("fail", "worse than the floor")


def test_a_further_condition_is_informative() -> None:
    slices = {"held-out": np.arange(N)}
    matrix = validate(P95, [], [arms(0.7), arms(1.5, condition="one core less")], slices, seed=4, resamples=300)
    cell = the(matrix, "informative/one-core-less/held-out/p95")
    assert (cell.status, cell.condition) == ("fail", "one core less")
    assert sum(c.status == "not-run" for c in matrix.cells) == len(CONDITIONS) - 2


def sticky(repeats: int, replays: int = 3) -> tuple[Any, ...]:
    """Latencies that stay for ``repeats`` requests, and differ by a thousandth between replays."""
    level = np.repeat(np.random.default_rng(5).gamma(2.0, 0.01, N // repeats), repeats)
    return tuple(level * np.random.default_rng(r).normal(1, 0.001, N) for r in range(replays))


@pytest.mark.parametrize(
    ("pair", "guards", "wanted"),
    [
        (arms(0.7), (), {}),
        (arms(0.7, replays=2), (), {"normal": 3}),
        (arms(0.7, refusal="the runs differ in envelope"), (), {}),
        (Arms("normal", sticky(30), sticky(30)), (guard("p99", 0.1),), {"normal": 5}),
        (arms(1.5, condition="cold start", replays=2), (), {}),
        (arms(1.5, condition="cold start", replays=2), (Guard(metric="p95", margin=0.1, condition="cold start"),),
         {"cold start": 3}),
    ],
    ids=["enough", "provisional", "refused", "thin", "informs-only", "guarded"],
)  # fmt: skip
def test_more_replays_go_where_must_pass_cells_cannot_be_decided(
    pair: Arms, guards: tuple[Guard, ...], wanted: dict[str, int]
) -> None:
    pairs = [pair] if pair.condition == "normal" else [arms(0.7), pair]
    assert replays_wanted(P95, guards, pairs, {"held-out": np.arange(N)}) == wanted


@pytest.mark.parametrize("scale", [0.3, 1.0, 1.1, 3.0])
def test_how_many_replays_are_wanted_does_not_depend_on_how_the_arms_differ(scale: float) -> None:
    given = Arms("normal", sticky(30), tuple(scale * one for one in sticky(30)))
    assert replays_wanted(P95, [guard("p99", 0.1)], [given], {"held-out": np.arange(N)}) == {"normal": 5}


def test_an_open_cell_says_how_long_more_would_take() -> None:
    rng = np.random.default_rng(1)
    before, after = (tuple(factor * rng.gamma(2.0, 0.01, N) for _ in range(3)) for factor in (1.0, 0.97))
    cell = judged(Arms("normal", before, after, seconds=600.0)).primary
    assert cell is not None
    wanted = int(cell.note.split("about ")[1].split()[0])
    assert cell.note.endswith(f"(now {N}), {10 * (wanted / N - 1):.2g} min of replays more")


@pytest.mark.parametrize(
    ("before", "after", "status", "note"),
    [
        ((100, 101, 102), (100, 101, 102), "pass", ""),
        ((100, 101, 102), (150, 151, 152), "fail", ""),
        ((100, 101), (150, 151), "inconclusive", "fewer than 3 replays an arm"),
        ((), (), "inconclusive", "peak memory was not readable in every arm"),
    ],
)
def test_memory(before: tuple[int, ...], after: tuple[int, ...], status: str, note: str) -> None:
    given = replace_bytes(arms(1.0), before, after)
    cell = the(judged(given), "informative/normal/held-out/memory")
    assert (cell.status, cell.note) == (status, note)
    assert cell.baseline == (max(before) if before else None)


def replace_bytes(given: Arms, before: tuple[int, ...], after: tuple[int, ...]) -> Arms:
    return Arms(
        given.condition, given.baseline, given.candidate, tuple(x << 20 for x in before), tuple(x << 20 for x in after)
    )


def test_without_a_candidate_nothing_is_compared() -> None:
    matrix = validate(P95, [guard("p99", 0.1)], [], {"held-out": np.arange(N)}, seed=4)
    assert [(c.role, c.status, c.note) for c in matrix.cells[:2]] == [
        ("primary", "inconclusive", "no candidate was replayed"),
        ("guard", "inconclusive", "no candidate was replayed"),
    ]
    assert [c.condition for c in matrix.cells[2:]] == list(CONDITIONS)
    assert {c.note for c in matrix.cells[2:]} == {"no candidate was replayed"}


def test_an_unknown_metric_is_an_error() -> None:
    with pytest.raises(StudyError, match="no metric 'p42'"):
        _metric.value(np.ones(3), "p42", P95)


# --- findings ------------------------------------------------------------------------------------------------


def test_findings_hold_the_matrix_and_the_figures_of_what_decides() -> None:
    matrix = judged(arms(0.7), guard("p99", 0.1))
    found = findings.validate(matrix, "validate.json")
    not_run = len(CONDITIONS) - 1
    said = f"The primary cell passes, 1 of 1 guards pass; 1 cells are inconclusive, {not_run} were not run."
    assert found.headline == said
    assert [f.id for f in found.figures] == [
        "validate.primary/normal/held-out/p95", "validate.guard/normal/held-out/p99",
    ]  # fmt: skip
    table = found.table("validate.matrix")
    assert table is not None
    assert len(table.columns["id"]) == len(matrix.cells)
    assert found.findings[0].text.startswith("Primary p95 on held-out: pass, −30 % (")
