"""What added-up figures prove, and all that they do not."""

from __future__ import annotations

import pytest

from trimtab.domain.imported import ReadReport
from trimtab.domain.study import Sla
from trimtab.domain.summary import Layer, Point, Summary
from trimtab.evidence.summary.diagnose import METHOD, Reading, diagnose
from trimtab.evidence.summary.layers import types
from trimtab.evidence.summary.points import saturated

READ = ReadReport(file="f.csv", sha256="", rows=1, used=1, columns={})
P99 = Sla(metric="p99", bound_ms=10.0)


def said(summary: Summary, **more: object) -> Reading:
    return diagnose(summary, READ, **more)  # type: ignore[arg-type]


def one(p99_ms: float = 5.0, count: int | None = 1000, paced: bool | None = True, **more: object) -> Summary:
    point = Point(name="Server", count=count, latency={"p99": round(p99_ms * 1e6)})
    return Summary(tool="t", points=(point,), paced=paced, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("summary", "sla", "kind", "evidence"),
    [
        (one(), P99, "healthy", "the SLA is met"),
        (one(20.0), P99, "insufficient-evidence", "p99 is 20 ms; the SLA is 10 ms"),
        (one(), None, "insufficient-evidence", ""),
        (one(bound=("p99", 6_000_000)), None, "healthy", "the latency that the run itself was held to is met"),
        # eight samples give no p99
        (one(count=8), P99, "insufficient-evidence", "8 requests; p99 needs at least 459"),
        (one(count=None), P99, "insufficient-evidence", "does not say how many requests"),
        # a closed loop gives no tail that arrivals make
        (one(paced=False), P99, "insufficient-evidence", "no arrivals made these percentiles"),
        (one(paced=None), P99, "insufficient-evidence", "does not say whether requests arrived on their own"),
        (one(short=("it ended early",)), P99, "insufficient-evidence", "the tool itself calls the run too short"),
        (one(), Sla(metric="p50", bound_ms=10.0), "insufficient-evidence", ""),
    ],
)
def test_a_percentile_proves_a_bound_only_where_all_is_said(
    summary: Summary, sla: Sla | None, kind: str, evidence: str
) -> None:
    [first] = said(summary, sla=sla).diagnosis.classes
    assert first.id == kind
    assert evidence in "; ".join(first.evidence)


def test_without_a_bound_one_is_asked_for() -> None:
    assert said(one()).diagnosis.next_measurement == "what the tail must hold (--sla p99=...)"


def test_the_log_of_the_same_run_says_what_it_was_held_to() -> None:
    asked = Summary(tool="t", points=(Point(name="Server"),), paced=True, bound=("p99", 6_000_000))
    assert said(one(), others=(asked,)).diagnosis.classes[0].id == "healthy"
    other = Summary(tool="another", points=(Point(name="Server"),), paced=True, bound=("p99", 6_000_000))
    assert said(one(), others=(other,)).diagnosis.classes[0].id == "insufficient-evidence"


def point(clients: int, rate: float, queue_us: int, own_us: int = 10_000) -> Point:
    stages = {"queue": queue_us * 1000, "compute": own_us * 1000}
    return Point(name=f"concurrency {clients}", clients=clients, achieved=rate, stages=stages, latency={"p99": 1})


def test_more_clients_that_only_wait() -> None:
    points = (point(4, 84.2, 33_000), point(1, 69.2, 0), point(3, 84.2, 21_000), point(2, 84.0, 9_000))
    assert saturated(points) == (
        "from concurrency 2 to concurrency 3 throughput goes from 84/s to 84.2/s and the mean latency from 19 ms to "
        "31 ms: who is added only waits"
    )
    assert saturated(points[1:2]) == ""
    found = said(Summary(tool="t", points=points, paced=False))
    [first] = found.diagnosis.classes
    assert "queue is 76.7 % of the mean latency at concurrency 4 (33 ms); a mean is no tail" in first.evidence
    assert METHOD in found.notes
    table = found.found.table("summary.points")
    assert table is not None
    assert table.columns["point"][0] == "concurrency 4"


TIMED = (Layer(name="a", took=300), Layer(name="b", took=100), Layer(name="c", took=100))
TYPED = (
    Layer(name="a", dtype="int8", reads="int8", writes="float16"),
    Layer(name="b", dtype="float32", reads="float32", writes="float32"),
    Layer(name="c", kind="Reformat", reads="float32", writes="int8", moves=True),
)


def test_types_and_times_of_two_files_are_joined_by_name() -> None:
    times, kinds = Summary(tool="t", layers=TIMED), Summary(tool="u", layers=TYPED)
    found = said(times, others=(kinds,), texts={"declared": "int8"})
    assert {figure.id: figure.value for figure in found.found.figures} == {
        "summary.precision.int8": 0.75, "summary.precision.float32": 0.25,
    }  # fmt: skip
    [first] = found.diagnosis.classes
    assert first.id == "precision-fallback"
    assert "75.0 % of profiled time ran in int8" in first.evidence[0]
    assert "3 of 3 layers are told of by another file of these, too" in found.notes


def test_counts_of_layers_are_no_time() -> None:
    found = said(Summary(tool="t", layers=TYPED), texts={"declared": "int8"})
    assert found.found.figures == ()
    [first] = found.diagnosis.classes
    assert first.id == "insufficient-evidence"
    assert first.evidence == ("2 of 3 layers change the type (int8 to float16, float32 to int8)",)


def test_who_converts_computes_in_no_type() -> None:
    converting = Summary(tool="t", layers=(TIMED[0], *TIMED[2:]))
    found = said(converting, others=(Summary(tool="u", layers=TYPED),), texts={"declared": "int8"})
    [first] = found.diagnosis.classes
    assert first.id == "insufficient-evidence"
    assert first.evidence[-1] == "25.0 % of the layers' time converts types or layouts, in 1 layers"


def test_types_of_a_part_of_the_time_say_nothing_of_the_whole() -> None:
    unsaid = (Layer(name="a", took=94, dtype="int8"), Layer(name="b", took=6))
    assert types(unsaid) == {}
    assert types((*unsaid, Layer(name="c", took=900, dtype="float32"))) == {"float32": 900 / 994, "int8": 94 / 994}


def test_what_is_refused_is_said() -> None:
    found = said(Summary(tool="t", points=one().points, paced=True, refused=("avg latency: overwritten",)))
    assert "not used: avg latency: overwritten" in found.notes
    goodput = said(one(), sla=Sla(metric="goodput", bound_ms=5.0))
    assert "goodput needs requests, one by one; a summary has none" in goodput.notes
    wrong = said(one(), texts={"declared": "fp3"}).notes[-1]
    assert wrong.startswith("'fp3' is none of the precisions that layers tell: float64, float32, bfloat16")
