"""What the attribute stage reports: sets, shares, gains, sentences, series, and the story of one request."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from account_cases import Formula, Scene, poisson, simulate

from trimtab.domain.account import Account
from trimtab.domain.events import ERROR_KINDS
from trimtab.domain.figure import Findings
from trimtab.domain.trace import Trace
from trimtab.errors import DataError
from trimtab.evidence.attribute._words import ms
from trimtab.evidence.attribute.account import build, findings, story
from trimtab.evidence.attribute.sets import LABELS, OWNERS, WORDS, inherited, latencies, own, tail_set, typical_rows

MS = 1_000_000
FLAT = Formula(fixed=8 * MS, slope=0)


def ns(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def stall(requests: int = 100, ms: int = 100) -> Scene:
    """One worker, 8 ms of work every 10 ms, one stall at request 40: its backlog takes 50 requests to drain."""
    off_core = np.zeros(requests, dtype=np.int64)
    off_core[40] = ms * MS
    arrivals = np.arange(requests, dtype=np.int64) * 10 * MS
    return Scene(arrivals=arrivals, dims=ns(*[1] * requests), off_core=off_core, reference=FLAT)


def accounted(scene: Scene, trace: Trace | None = None) -> tuple[Account, Trace]:
    trace = trace or simulate(scene)
    return build(trace, scene.promise, scene.reference, "reference", scene.plan, scene.by_entry), trace


def value(found: Findings, name: str) -> float | None:
    figure = found.figure(name)
    assert figure is not None, name
    return figure.value


def test_a_stall_owns_the_tail_mostly_through_the_queue() -> None:
    found = findings(*accounted(stall()))
    # the five slowest: 108 ms (the stalled one), 106, 104, 102, 100, and p95 is the last of them
    assert value(found, "tail.p95.bound") == pytest.approx(98)
    assert value(found, "tail.p95.requests") == 6
    assert value(found, "tail.p95.total") == pytest.approx(103)
    assert value(found, "tail.p95.off_core.own") == pytest.approx(100 / 6)
    assert value(found, "tail.p95.off_core.inherited") == pytest.approx((98 + 96 + 94 + 92 + 90) / 6)
    assert value(found, "tail.p95.off_core.share") == pytest.approx(95 / 103)
    assert value(found, "tail.p95.off_core.gain") == pytest.approx(90)
    assert value(found, "tail.p95.useful.share") == pytest.approx(8 / 103)
    assert value(found, "tail.p95.modelled") == pytest.approx(1)
    assert value(found, "tail.p95.unprofiled.share") == value(found, "tail.p95.unmodelled.share") == 0
    assert found.headline == (
        "Off-core time owns 92.2 % of the p95 set: of 103 ms on average (typical requests 9.83 ms), 16.7 ms own and "
        "78.3 ms inherited through the queue. Without off-core time alone, p95 would be 8 ms instead of 98 ms."
    )


def test_where_useful_work_leads_the_largest_cause_is_named_beside_it() -> None:
    scene = replace(stall(), off_core=None, premium=1.1, arrivals=np.arange(100, dtype=np.int64) * 20 * MS)
    found = findings(*accounted(scene))
    assert found.headline == (
        "The requests' own useful work owns 90.9 % of the p95 set: of 8.8 ms on average (typical requests 8.8 ms), "
        "8 ms own and 0 ms inherited through the queue; the largest cause is the entry's premium over the reference, "
        "9.1 %. Without the entry's premium over the reference alone, p95 would be 8 ms instead of 8.8 ms."
    )


def test_near_saturation_a_small_waste_is_said_to_be_multiplied() -> None:
    n = 8_000
    arrivals = poisson(np.random.default_rng(3), n, 10 * MS / 0.94)
    scene = Scene(arrivals=arrivals, dims=ns(*[1] * n), premium=1.05, reference=Formula(fixed=10 * MS, slope=0))
    found = findings(*accounted(scene))
    said = [finding.text for finding in found.findings if "multiplies" in finding.text]
    assert said
    assert said[0].startswith("The entry's premium over the reference takes 4.8 % of the workers' time but owns ")


def test_shares_sum_to_one_and_the_waterfall_to_the_mean_latency() -> None:
    rng = np.random.default_rng(1)
    n = 2_000
    scene = Scene(
        arrivals=poisson(rng, n, 12 * MS), dims=rng.integers(20, 400, n), max_size=3, hold=4 * MS, bucket=64,
        premium=0.9, cold=20 * MS, off_core=np.where(rng.random(n) < 0.01, 60 * MS, 0),
    )  # fmt: skip
    account, trace = accounted(scene)
    found = findings(account, trace)
    for name in ("p95", "p99"):
        rows = found.table(f"tail.{name}.waterfall")
        assert rows is not None
        assert sum(rows.columns["share"]) == pytest.approx(1)  # type: ignore[arg-type]
        total = sum(rows.columns["own"]) + sum(rows.columns["inherited"])  # type: ignore[arg-type]
        assert total == pytest.approx(value(found, f"tail.{name}.total"))
    whole = sum(own(account, label) + inherited(account, label) for label in LABELS)
    assert np.array_equal(whole, account.requests["latency"])
    share = found.figure("tail.p95.off_core.share")
    assert share is not None
    assert share.value is not None
    assert share.interval is not None
    assert 0 <= share.interval.lo <= share.value <= share.interval.hi <= 1


def test_groups_and_the_timeline_are_thin_and_complete() -> None:
    rng = np.random.default_rng(2)
    n = 3_000
    scene = Scene(
        arrivals=poisson(rng, n, 6 * MS), dims=rng.integers(20, 400, n), workers=2, streams=rng.integers(0, 3, n)
    )
    account, trace = accounted(scene)
    found = findings(account, trace)
    for title, most in (("stream", 3), ("band", 6), ("window", 15)):
        table = found.table(f"tail.p95.by_{title}")
        assert table is not None
        members = dict(zip(table.columns[title], table.columns["in_tail"], strict=True))
        assert len(members) <= most
        assert sum(members.values()) == value(found, "tail.p95.requests")  # type: ignore[arg-type]
    for title, names in (("stream", trace.streams), ("entry", ("entry",))):
        profile = found.table(f"queue.by_{title}")
        assert profile is not None
        assert profile.columns[title] == names
        assert sum(profile.columns["requests"]) == n  # type: ignore[arg-type]
    waiting, cores = found.table("queue.waiting"), found.table("cores.timeline")
    assert waiting is not None
    assert cores is not None
    assert len(waiting.columns["t"]) <= 400
    assert len(set(cores.columns["t"])) <= 400
    bin_ns = trace.requests["done"].max() / 200
    busy = sum(cores.columns["busy"]) * bin_ns  # type: ignore[arg-type]
    assert busy == pytest.approx((trace.batches["ended"] - trace.batches["dispatched"]).sum(), rel=0.01)
    came, went = trace.requests["enqueued"], trace.requests["dispatched"]
    assert max(waiting.columns["waiting"]) == max(int(((came <= t) & (went > t)).sum()) for t in came)  # type: ignore


def test_failed_requests_are_beside_the_set_and_never_dropped() -> None:
    scene = stall()
    trace = simulate(scene)
    trace.requests["error"][:3] = ERROR_KINDS.index("backend-error")
    account, _ = accounted(scene, trace)
    found = findings(account, trace)
    assert value(found, "tail.p95.failed_requests") == 3
    assert value(found, "tail.p95.bound") == pytest.approx(104)  # of 100: three at infinity, then 108, 106, 104
    assert value(found, "tail.p99.bound") == math.inf
    assert "falls among 3 failed requests" in found.figure("tail.p99.bound").note  # type: ignore[union-attr]
    assert value(found, "tail.p99.off_core.gain") is None
    assert any(text.text.startswith("3 requests failed") for text in found.findings)


def test_when_everything_fails_there_is_no_tail() -> None:
    scene = stall(requests=41)
    trace = simulate(scene)
    trace.requests["error"][:] = ERROR_KINDS.index("crash")
    found = findings(*accounted(scene, trace))
    assert found.status == "partial"
    assert found.headline == "No request ended well (41 failed): there is no tail to account for."


def test_too_much_without_a_profile_is_said() -> None:
    scene = stall()

    class Nothing(Formula):
        def warm(self, entry: str, executed: tuple[int, ...]) -> int:
            return 0

    trace = simulate(scene)
    account = build(trace, Nothing(), Nothing(), "reference", scene.plan, scene.by_entry)
    found = findings(account, trace)
    assert any("too much to rank the causes with confidence" in finding.text for finding in found.findings)


def test_the_set_and_the_typical_requests() -> None:
    account, _ = accounted(stall())
    observed = latencies(account) / MS
    assert sorted(observed[tail_set(account, "p99").rows]) == [106, 108]
    assert observed[typical_rows(account)].min() == 8
    assert observed[typical_rows(account)].max() == 28


def test_milliseconds_never_have_an_exponent() -> None:
    assert [ms(value) for value in (0, 740, 12_345, 1_234_500, 999_600_000, 1_140_000_000)] == [
        "0 ms", "740 ns", "0.0123 ms", "1.23 ms", "1,000 ms", "1,140 ms",
    ]  # fmt: skip


def test_every_label_has_words_and_an_owner() -> None:
    assert set(WORDS) == set(OWNERS) == set(LABELS)


def test_the_story_of_one_request() -> None:
    scene = Scene(arrivals=ns(0, 1, 2, 30), dims=ns(1, 1, 1, 1), workers=2, off_core=ns(20, 0, 0, 0),
                  reference=Formula(fixed=8, slope=0))  # fmt: skip
    account, trace = accounted(scene)
    told = story(account, trace, 2)  # waits from 2 to 9 behind the stalled batch 0 and the plain batch 1
    assert told.parts == {"busy": 7, "useful": 8}
    assert told.inherited == {"capacity": 6, "off_core": 1}
    assert [(b.batch, b.worker, b.charged, b.parts) for b in told.blockers] == [
        (0, 0, 3, {"useful": 8, "off_core": 20}),
        (1, 1, 4, {"useful": 8}),
    ]
    assert story(account, trace, 3).blockers == ()
    assert told.sentence == (
        "Of 15 ns: 8 ns the requests' own useful work, 6 ns queueing behind useful work, 1 ns off-core time. "
        "It waited 7 ns for a busy worker; 2 batches ran meanwhile."
    )
    with pytest.raises(DataError, match="there is no request 9"):
        story(account, trace, 9)
