"""Ranks put together: compiles fall into recordings of their rank, unlike clocks are refused, the slowest is named."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from timeline_kit import MS, READ, Row, spans

from trimtab.domain.noun import NEVER
from trimtab.domain.spans import KIND, SPAN_COLUMNS, Compilation, Spans
from trimtab.domain.trace import empty
from trimtab.evidence.timeline.diagnose import diagnose
from trimtab.evidence.timeline.ranks import Part, joined
from trimtab.evidence.timeline.steps import Rank, compare

ORIGIN = 1_700_000_000_000_000_000


def recording(rows: list[Row], rank: int | None = 0, origin: int | None = ORIGIN, **facts: str) -> Spans:
    """A recording of one rank; times of ``rows`` in us."""
    known = facts if rank is None else {"rank": str(rank), **facts}
    return msgspec.structs.replace(spans(rows), origin=origin, facts=known)


def log(*compiles: tuple[int, int, int], origin: int | None = ORIGIN) -> Spans:
    """(rank, start, took) of each compile, ms from ``origin``."""
    made = tuple(
        Compilation(id="0/1", code="fn", rank=rank, start=start * MS if start != NEVER else NEVER, took=took * MS)
        for rank, start, took in compiles
    )
    return Spans(tool="t", table=empty(SPAN_COLUMNS), compiles=made, origin=origin)


STEPS: list[Row] = [("run", 10_000 * k, 10_000 * k + 9_000, NEVER, f"ProfilerStep#{k}") for k in range(5)]


def notes(*parts: Spans) -> list[tuple[str, ...]]:
    return list(joined([Part(f"{'abcd'[k]}.json", one) for k, one in enumerate(parts)]).notes)


def test_compiles_of_the_rank_become_spans_of_its_recording() -> None:
    both = log((0, 11, 5), (1, 12, 5), (0, 31, 2), (0, 99, 1), origin=ORIGIN)
    found = joined([Part("a.json", recording(STEPS, rank=0)), Part("b.log", both)])
    held = found.spans[0]
    compiling = held.table["kind"] == KIND["compile"]
    assert (held.table["start"][compiling] // MS).tolist() == [11, 31]
    assert (held.table["end"][compiling] // MS).tolist() == [16, 33]
    assert {held.lanes[k] for k in held.table["lane"][compiling]} == {"torch.compile, from its log"}
    assert {held.names[k] for k in held.table["name"][compiling]} == {"fn"}
    assert np.all(np.diff(held.table["start"]) >= 0)
    assert found.notes == (("2 of 3 compiles of rank 0 of b.log fall into this recording",), ())
    evidence = diagnose(held, READ).diagnosis.classes[0].evidence
    assert "2 of 5 runs compiled something, for 7 ms of the 45 ms that all runs took" in evidence


def test_launches_still_find_their_kernels_behind_an_added_compile() -> None:
    rows: list[Row] = [("launch", 0, 2), ("launch", 20_000, 20_002), ("kernel", 20_005, 20_009, 1)]
    held = joined([Part("a.json", recording(rows)), Part("b.log", log((0, 3, 1)))]).spans[0]
    [kernel] = np.flatnonzero(held.table["kind"] == KIND["kernel"])
    assert held.table["start"][held.table["launch"][kernel]] == 20_000_000


@pytest.mark.parametrize(
    ("recorded", "compiles", "why"),
    [
        (recording(STEPS, rank=0), log((3, 1, 1)), "it tells of rank 3, this recording is of rank 0"),
        (recording(STEPS, rank=None), log((3, 1, 1)), "it tells of rank 3, this recording names none"),
        (recording(STEPS, rank=0), log((NEVER, 1, 1)), "it names no rank, this recording is of rank 0"),
        (recording(STEPS, origin=None), log((0, 1, 1)), "this recording cannot be compared in time"),
        (
            recording(STEPS),
            log((0, 1, 1), origin=None),
            "b.json cannot be compared in time, its clock has no known zero",
        ),
        (
            recording(STEPS),
            log((0, 1, 1), origin=ORIGIN - 10**10),
            "its last compile begins 10 s before this recording",
        ),
        (recording(STEPS), log((0, 100, 1)), "its first compile begins 51 ms after this recording ends"),
        (recording(STEPS), log((0, NEVER, 1)), "it does not say when compiles began"),
        (recording([("compile", 0, 5), *STEPS[1:]]), log((0, 1, 1)), "this recording holds its compiles itself"),
    ],
)
def test_a_log_that_does_not_fit_is_refused_with_its_reason(recorded: Spans, compiles: Spans, why: str) -> None:
    found = joined([Part("a.json", recorded), Part("b.json", compiles)])
    assert found.spans[0] is recorded
    assert found.notes[0][0].startswith("not joined to b.json: ")
    assert why in found.notes[0][0]


def test_a_log_that_names_no_rank_bears_it_in_its_name() -> None:
    bare = log((NEVER, 1, 1))
    for name, inside in (
        ("dedicated_log_torch_trace_rank_0_a1.log", True),
        ("dedicated_log_torch_trace_rank_10.log", False),
    ):
        found = joined([Part("a.json", recording(STEPS, rank=0)), Part(name, bare)])
        assert found.notes[0][0].startswith(
            "1 of 1 compiles of rank 0" if inside else f"not joined to {name}: it tells of"
        )


def test_one_process_without_a_rank_fits_a_log_that_names_none() -> None:
    found = joined([Part("a.json", recording(STEPS, rank=None)), Part("b.log", log((NEVER, 1, 1)))])
    assert found.notes[0] == ("1 of 1 compiles of b.log fall into this recording",)


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ([recording(STEPS, 0), recording(STEPS, 0)], "a.json and b.json are both of rank 0"),
        ([recording(STEPS, 0), recording(STEPS, 1, None)], "b.json cannot be compared in time, its clock has no known"),
        ([recording(STEPS, 0), recording(STEPS, 1, ORIGIN + 10**12)], "a.json ends 1000 s before b.json begins"),
        ([recording(STEPS, 0), recording(STEPS, 1, ORIGIN + 10**17)], "a.json ends 1,157 days before b.json begins"),
    ],
)
def test_ranks_that_did_not_run_side_by_side_are_refused(parts: list[Spans], why: str) -> None:
    found = joined([Part(f"{'ab'[k]}.json", one) for k, one in enumerate(parts)])
    assert found.ranks == ()
    assert all(f"ranks are not put together: {why}" in said[0] for said in found.notes)


def test_ranks_are_put_together_by_number_whatever_their_order() -> None:
    found = joined([Part("b.json", recording(STEPS, 3)), Part("x.json", recording(STEPS, None)),
                    Part("a.json", recording(STEPS, 1, ORIGIN + 5))])  # fmt: skip
    assert (found.ranks, found.notes) == (((1, 2), (3, 0)), ((), (), ()))
    assert joined([Part("a.json", recording(STEPS, 1))]).ranks == ()
    assert joined([]).ranks == ()


def lockstep(work_us: list[int], count: int = 30, **facts: str) -> list[Rank]:
    """Ranks whose steps last alike, 10 ms; each works ``work_us`` of them and waits in NCCL for the rest."""
    out = []
    for rank, work in enumerate(work_us):
        rows: list[Row] = []
        for k in range(count):
            begin, jitter = 10_000 * k, 7 * (k % 5)
            rows.append(("run", begin, begin + 10_000, NEVER, f"ProfilerStep#{k}"))
            if work + jitter < 10_000:
                rows.append(("kernel", begin + work + jitter, begin + 10_000, NEVER, "ncclDevKernel_AllReduce"))
        held = recording(rows, rank, **facts)
        out.append(Rank(rank, f"{rank}.json", held, diagnose(held, READ).diagnosis))
    return out


def test_the_rank_that_works_longest_is_named_with_its_proof() -> None:
    found = compare(lockstep([4_000, 8_000, 4_000]), "ranks 0, 1, 2")
    [one] = found.diagnosis.classes
    # 4 of 10 ms lost at two of three ranks; they wait 6 + 2 + 6 ms a step
    assert one.id == "core-imbalance"
    assert one.share == pytest.approx(8 / 14, abs=0.01)
    assert one.interval is not None
    assert 0 < one.interval[0] <= one.share <= one.interval[1]
    assert one.evidence[0] == "own work of the ranks differs by 26.7 % of the time of their steps"
    assert one.evidence[1].startswith("rank 1 works longest in 30 of 30 steps: 8.0")
    known = {figure.id: figure.value for figure in found.found.figures}
    assert known["timeline.ranks.communication"] == pytest.approx(14 / 30, abs=0.01)
    [table] = found.found.series
    assert table.columns["rank"] == (0, 1, 2)
    assert table.columns["own work p50, ms"] == pytest.approx((4.014, 8.014, 4.014))
    [chart] = found.charts
    assert len(chart.columns["step"]) == 90


@pytest.mark.parametrize(
    ("ranks", "lacks"),
    [
        (lockstep([4_000, 8_000], count=19), "at least 20 steps that all ranks recorded, after warm-up; 19 are there"),
        (lockstep([10_000, 10_000]), "communication of the ranks in their steps"),
    ],
)
def test_without_its_proof_nothing_is_named(ranks: list[Rank], lacks: str) -> None:
    found = compare(ranks, "ranks").diagnosis
    assert [one.id for one in found.classes] == ["insufficient-evidence"]
    assert any(what.startswith(lacks) for what in found.missing)


@pytest.mark.parametrize(("slower", "unequal"), [(8_000, 0.0), (8_600, 0.03)])
def test_ranks_that_are_nearly_equal_are_no_imbalance(slower: int, unequal: float) -> None:
    found = compare(lockstep([8_000, slower]), "ranks")
    assert [one.id for one in found.diagnosis.classes] == ["insufficient-evidence"]
    figure = found.found.figure("timeline.ranks.unequal")
    assert figure is not None
    assert figure.value == pytest.approx(unequal)


def test_what_a_rank_alone_proves_is_told_with_its_number() -> None:
    ranks = lockstep([8_000, 8_000], **{"world size": "8"})
    proven = msgspec.structs.replace(ranks[1].alone.classes[0], id="cold-shape", evidence=("it compiled",))
    alone = msgspec.structs.replace(ranks[1].alone, classes=(proven,))
    found = compare([ranks[0], msgspec.structs.replace(ranks[1], alone=alone)], "ranks")
    assert [(one.id, one.evidence) for one in found.diagnosis.classes] == [("cold-shape", ("rank 1: it compiled",))]
    assert found.notes[-1] == "2 of 8 ranks were given; one that was not may be the slowest"
