"""The matrix: what passes, what fails, and every reason for which a cell stays open."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from retuning_cases import MS, from_times, noisy, trace

from trimtab.domain.study import Guard, Metric, Sla
from trimtab.domain.verdict import MatrixCell
from trimtab.domain.workload import Provenance, Slice, Workload
from trimtab.errors import StudyError
from trimtab.retuning import _metric, findings
from trimtab.retuning.arms import CONDITIONS, Arms, arms_of, slice_rows
from trimtab.retuning.validate import Matrix, replays_wanted, validate

P95 = Sla(metric="p95", bound_ms=60.0)
N = 1500


def arm(seed: int, scale: float, replays: int = 3, n: int = N) -> tuple[Any, ...]:
    return tuple(noisy(seed + r, n, scale) for r in range(replays))


def arms(scale: float, *, replays: int = 3, n: int = N, refusal: str = "", condition: str = "normal") -> Arms:
    return Arms(condition, arm(0, 1.0, replays, n), arm(50, scale, replays, n), refusal=refusal)


def judged(given: Arms, *guards: Guard, slices: dict[str, Any] | None = None, sla: Sla = P95) -> Matrix:
    n = len(given.baseline[0]) if given.baseline else 0
    return validate(sla, guards, [given], slices or {"held-out": np.arange(n)}, seed=4, resamples=300)


def guard(metric: Metric, margin: float, slice: str = "held-out") -> Guard:  # noqa: A002
    return Guard(metric=metric, margin=margin, slice=slice)


def the(matrix: Matrix, id_: str) -> MatrixCell:
    return next(cell for cell in matrix.cells if cell.id == id_)


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


# --- guards --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scale", "margin", "status"),
    [(1.0, 0.1, "pass"), (0.8, 0.1, "pass"), (1.3, 0.1, "fail"), (1.1, 0.1, "inconclusive")],
)
def test_a_guard_is_non_inferiority_within_its_margin(scale: float, margin: float, status: str) -> None:
    cell = the(judged(arms(scale), guard("p50", margin)), "guard/normal/held-out/p50")
    assert (cell.status, cell.margin) == (status, margin)


def test_a_margin_below_the_floor_is_refused() -> None:
    rng = np.random.default_rng(1)
    before, after = (tuple(rng.gamma(2.0, 0.01, N) for _ in range(3)) for _ in range(2))
    cell = the(judged(Arms("normal", before, after), guard("p99", 0.001)), "guard/normal/held-out/p99")
    assert cell.status == "inconclusive"
    assert cell.note.startswith("the margin of 0.1 % lies below the floor of ")


def test_what_is_clearly_worse_fails_whatever_the_margin() -> None:
    cell = the(judged(arms(1.5), guard("p50", 1e-6)), "guard/normal/held-out/p50")
    assert cell.status == "fail"


def test_what_is_clearly_better_passes_whatever_the_margin() -> None:
    cell = the(judged(arms(0.5), guard("p95", 1e-6)), "guard/normal/held-out/p95")
    assert cell.status == "pass"


def losing(every: int) -> Arms:
    """The candidate answers alike, but loses one request in ``every``."""
    lost = tuple(np.where(np.arange(N) % every == 0, np.inf, x) for x in arm(50, 1.0))
    return Arms("normal", arm(0, 1.0), lost)


DEFAULT = "the default margin, a goodput guard in the study sets another"


@pytest.mark.parametrize(
    ("guards", "status", "margin", "whose"),
    [
        ([], "fail", 0.01, DEFAULT),
        ([guard("goodput", 0.05)], "pass", 0.05, "the study's margin"),
        ([guard("goodput", 0.05, "wide")], "fail", 0.01, DEFAULT),
    ],
)
def test_a_guard_judged_on_goodput_forgives_a_margin_of_goodput(
    guards: list[Guard], status: str, margin: float, whose: str
) -> None:
    """One request in fifty is lost: a p99 guard of 10 % would have forgiven that five times over."""
    slices = {"held-out": np.arange(N), "wide": np.arange(0, N, 2)}
    cell = the(judged(losing(50), guard("p99", 0.1), *guards, slices=slices), "guard/normal/held-out/p99")
    assert (cell.metric, cell.status, cell.margin) == ("goodput", status, margin)
    assert f"judged on goodput, within {margin * 100:g} % ({whose})" in cell.note


def test_the_held_out_margin_of_goodput_stands_for_slices_without_one() -> None:
    slices = {"held-out": np.arange(N), "wide": np.arange(0, N, 2)}
    given = judged(losing(50), guard("p99", 0.1, "wide"), guard("goodput", 0.05), slices=slices)
    assert the(given, "guard/normal/wide/p99").margin == 0.05


def thin(scale: float, repeats: int = 80, n: int = 6000) -> Arms:
    """Latencies that stay for ``repeats`` requests, as in a queue near saturation; replays of a plan differ by 4 %."""
    level = np.repeat(np.random.default_rng(5).gamma(2.0, 0.01, n // repeats), repeats)
    return Arms("normal", *(tuple(level * factor * (1 + 0.02 * r) for r in range(3)) for factor in (1.0, scale)))


@pytest.mark.parametrize(
    ("given", "status"),
    [
        (thin(1.07), "inconclusive"),
        (thin(1.03), "pass"),
        (thin(1.12), "inconclusive"),
        (thin(1.20), "fail"),
        (thin(1.07, repeats=1), "pass"),
        (thin(1.12, repeats=1), "fail"),
    ],
    ids=["inside", "surely-inside", "outside", "surely-outside", "inside-seen-well", "outside-seen-well"],
)
def test_a_thin_tail_is_decided_by_an_interval_widened_by_the_floor(given: Arms, status: str) -> None:
    """Every ratio is exact here, so the interval is a point; only the floor of 4 % keeps it from the margin of 10 %."""
    cell = the(judged(given, guard("p95", 0.10)), "guard/normal/held-out/p95")
    assert cell.status == status
    assert cell.floor == pytest.approx(0.04)
    widened = "the interval (widened by the floor: few effective samples) touches the margin"
    assert cell.note.startswith(widened) == (status == "inconclusive")


def growing(seed: int, last_s: float, replays: int = 3) -> tuple[Any, ...]:
    """A queue that cannot keep up: latencies that only grow, to ``last_s`` or 5 % more or less."""
    lucks = (1.0, 1.05, 0.95)[:replays]
    return tuple(noisy(seed + k, N, 1.0) + np.linspace(0, last_s * luck, N) for k, luck in enumerate(lucks))


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        (arm(0, 1.0), growing(50, 20.0), "fail"),
        (arm(0, 1.0), growing(50, 20.0, replays=2), "inconclusive"),
        (growing(0, 20.0), growing(50, 22.0), "inconclusive"),
        (growing(0, 20.0), growing(50, 30.0), "fail"),
        (growing(0, 20.0), arm(50, 1.0), "inconclusive"),
    ],
    ids=["only-the-candidate", "two-replays", "within-their-differences", "both", "never-a-pass"],
)
def test_a_queue_that_only_grows_fails_where_every_replay_is_worse(before: Any, after: Any, status: str) -> None:
    (cell,) = judged(Arms("normal", before, after), guard("p99", 0.1)).guards
    assert cell.status == status
    assert cell.interval is None
    assert cell.note.startswith("worse by more than 10 % in every replay; 1500 samples hold") == (status == "fail")


def test_goodput_that_is_lost_in_every_replay_fails_however_long_the_queue() -> None:
    """Nearly all are later than 60 ms, and later than the deadline: judged on goodput, whose relative floor is vast."""
    sla = Sla(metric="p95", bound_ms=60.0, deadline_ms=500.0)
    (cell,) = judged(Arms("normal", arm(0, 1.0), growing(50, 20.0)), guard("p99", 0.1), sla=sla).guards
    assert (cell.status, cell.metric, cell.interval) == ("fail", "goodput", None)


def test_guards_share_alpha() -> None:
    """One guard passes; forty at once would need more resamples than there are to be as sure of each."""
    alone = judged(arms(1.0, n=600), guard("p50", 0.1)).guards[0]
    crowd = judged(arms(1.0, n=600), *[guard("p50", 0.1)] * 40).guards[0]
    assert alone.status == "pass"
    note = "not surely within the margin, with alpha shared by 40 guards"
    assert (crowd.status, crowd.note) == ("inconclusive", note)


def test_a_guard_on_a_slice_that_is_not_there_or_empty_is_open() -> None:
    slices = {"held-out": np.arange(N), "nobody": np.arange(0)}
    matrix = judged(arms(1.0), guard("p50", 0.1, "elsewhere"), guard("p50", 0.1, "nobody"), slices=slices)
    assert [(cell.status, cell.note) for cell in matrix.guards] == [
        ("inconclusive", "there is no slice elsewhere"),
        ("inconclusive", "slice nobody holds no requests"),
    ]


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


COLD = Guard(metric="p95", margin=0.1, condition="cold start")


def under(scale: float, *guards: Guard, n: int = N, refused: dict[str, str] | None = None) -> Matrix:
    """A gain as recorded, and a cold start of ``n`` requests in which the candidate is ``scale`` times as slow."""
    pairs = [arms(0.7)] + ([arms(scale, n=n, condition="cold start")] if scale else [])
    return validate(P95, guards, pairs, {"held-out": np.arange(N)}, seed=4, resamples=300, refused=refused)


@pytest.mark.parametrize(("scale", "status"), [(1.0, "pass"), (1.3, "fail"), (1.1, "inconclusive")])
def test_a_guard_is_decided_under_the_condition_that_it_names(scale: float, status: str) -> None:
    matrix = under(scale, COLD)
    cell = the(matrix, "guard/cold-start/held-out/p95")
    assert (cell.status, cell.condition, cell.samples) == (status, "cold start", N)
    assert matrix.primary is not None
    assert matrix.primary.status == "pass"
    assert "informative/cold-start/held-out/p95" not in [each.id for each in matrix.cells]


def test_a_condition_is_judged_on_all_of_its_own_requests() -> None:
    assert the(under(1.0, COLD, n=1000), "guard/cold-start/held-out/p95").samples == 1000


@pytest.mark.parametrize(
    ("refused", "why"), [({}, "not asked for"), ({"cold start": "it cannot be cold here"}, "it cannot be cold here")]
)
def test_a_guard_whose_condition_was_not_replayed_is_not_run(refused: dict[str, str], why: str) -> None:
    matrix = under(0.0, COLD, refused=refused)
    cells = [the(matrix, f"{role}/cold-start/held-out/p95") for role in ("guard", "informative")]
    assert [(cell.status, cell.note) for cell in cells] == [("not-run", why)] * 2
    assert cells[0].margin == 0.1
    assert the(matrix, "informative/higher-load/held-out/p95").note == "not asked for"


def test_a_goodput_margin_of_the_same_condition_comes_first() -> None:
    lost = Arms("cold start", arm(0, 1.0), losing(50).candidate)
    normal, cold = guard("goodput", 0.001), replace(guard("goodput", 0.05), condition="cold start")
    slices = {"held-out": np.arange(N)}
    for guards, margin in (((COLD, normal), 0.001), ((COLD, normal, cold), 0.05)):
        matrix = validate(P95, guards, [arms(0.7), lost], slices, seed=4, resamples=300)
        assert the(matrix, "guard/cold-start/held-out/p95").margin == margin


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


# --- arms and slices -----------------------------------------------------------------------------------------


def test_runs_that_differ_in_what_must_be_equal_are_refused() -> None:
    a, b = trace([10, 20]), trace([10, 20])
    other = replace(b, run=replace(b.run, envelope_sha256="x", start_state="dirty"))
    assert arms_of("normal", [a], [other]).refusal == "the runs differ in envelope, start state"
    cut = replace(b, run=replace(b.run, complete=False))
    assert arms_of("normal", [a], [cut]).refusal == "incomplete runs: r"


def test_two_backends_may_each_name_their_own_version() -> None:
    a, b = trace([10]), trace([10])
    one = replace(a, run=replace(a.run, versions={"numpy": "2", "openvino": "1"}))
    two = replace(b, run=replace(b.run, versions={"numpy": "2", "onnxruntime": "3"}))
    old = replace(b, run=replace(b.run, versions={"numpy": "1"}))
    assert arms_of("normal", [one], [two]).refusal == ""
    assert arms_of("normal", [one], [old]).refusal == "the runs differ in versions"


def test_arms_carry_latency_and_peak_memory() -> None:
    times = np.array([0, 10 * MS])
    run = from_times(times, times, times + 5 * MS)
    run.batches["peak_bytes"][:] = [7, 9]
    found = arms_of("normal", [run], [run])
    assert found.baseline[0].tolist() == [0.005, 0.005]
    assert (found.baseline_bytes, found.candidate_bytes) == ((9,), (9,))


def workload() -> Workload:
    """Ten requests: two of tune, eight held out; two streams; widths 10 to 80 in the held-out part."""
    n = 10
    return Workload(
        id="w", dim_names=("width",), scheduled=np.arange(n) * MS,
        dims=np.array([5, 5, 10, 20, 30, 40, 50, 60, 70, 80]).reshape(-1, 1),
        stream=np.array([0, 1] * 5, dtype=np.int32), streams=("a", "b"),
        payload=np.zeros(n, dtype=np.int32), payload_kind="random", deadline=np.full(n, -1),
        provenance=Provenance(files=(), time_scale=1.0),
        slices=(
            Slice(name="tune", start=0, stop=2),
            Slice(name="held-out", start=2, stop=10),
            Slice(name="wide", start=0, stop=10, band={"width": (60, 99)}),
        ),
    )  # fmt: skip


def test_slices_are_positions_within_the_held_out_part() -> None:
    found = slice_rows(workload(), workload().slices[1], bands=2)
    assert {name: rows.tolist() for name, rows in found.items()} == {
        "held-out": [0, 1, 2, 3, 4, 5, 6, 7],
        "wide": [5, 6, 7],
        "stream a": [0, 2, 4, 6],
        "stream b": [1, 3, 5, 7],
        "width 10-40": [0, 1, 2, 3],
        "width 50-80": [4, 5, 6, 7],
    }


def test_one_stream_and_one_width_make_no_slices_of_their_own() -> None:
    flat = replace(workload(), streams=("a",), stream=np.zeros(10, dtype=np.int32), dims=np.full((10, 1), 9))
    assert list(slice_rows(flat, flat.slices[1])) == ["held-out", "wide", "width 9-9"]


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
