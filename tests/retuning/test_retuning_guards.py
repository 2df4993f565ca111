"""Guards: what may not get worse, by how much, under which condition, and when that cannot be said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matrix_cases import P95, N, arm, arms, guard, judged, the
from msgspec.structs import replace
from retuning_cases import noisy

from trimtab.domain.study import Guard, Sla
from trimtab.retuning.arms import Arms
from trimtab.retuning.validate import Matrix, validate


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


# --- under a condition --------------------------------------------------------------------------------------

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
