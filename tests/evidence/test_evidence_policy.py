"""Hold paid against service saved, literal in -> literal out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from evidence_cases import Line, Ran, Silent, bucket, dynamic, ns, trace

from trimtab.domain.account import Account
from trimtab.domain.figure import Findings
from trimtab.domain.plan import BatchPolicy, CompileSpec, Entry, Plan, ServePolicy
from trimtab.domain.trace import Table, Trace
from trimtab.evidence.policy import policy

LINE = Line(fixed=1.0, slope=0.01)  # n rows of width w take 1 + 0.01 n w ms
HOLDS = BatchPolicy(kind="size-hold", max_size=4, hold_ms=2.0)


def plan(*entries: Entry, batch: BatchPolicy = HOLDS) -> Plan:
    return Plan(id="p", compile=CompileSpec(backend="null", entries=entries), serve=ServePolicy(batch=batch))


def account(run: Trace, hold: list[float]) -> Account:
    requests = Table({"hold": np.array([ns(ms) for ms in hold], dtype=np.int64)})
    return Account(
        run=run.run.id, plan="p", reference_entry="dyn", eligible=(((0,),),), requests=requests, batches=Table({})
    )


def told(run: Trace, hold: list[float], served: Plan, promise: Line | Silent = LINE) -> Findings:
    desk, said, tables = policy(account(run, hold), run, served, promise, np.random.default_rng(1))
    return Findings(
        stage="attribute", headline="", findings=tuple(said), figures=tuple(desk.figures), series=tuple(tables)
    )


def value(found: Findings, name: str) -> float | None:
    figure = found.figure(f"policy.{name}")
    assert figure is not None
    return figure.value


def test_two_alike_share_a_batch() -> None:
    # alone 2 ms each, together 1 + 0.01 x 2 x 100 = 3 ms: 1 ms saved, 1.5 ms held
    found = told(trace([Ran((100, 100), wall=3)]), [1.5, 0.0], plan(dynamic()))
    assert (value(found, "service_saved"), value(found, "hold_paid"), value(found, "net")) == (0.5, 0.75, -0.25)
    assert (value(found, "mean_size"), value(found, "empty_rows")) == (2.0, 0.0)


def test_a_wide_mate_can_cost_more_than_it_saves() -> None:
    # alone 2 and 6 ms, together 1 + 0.01 x 2 x 500 = 11 ms
    assert value(told(trace([Ran((100, 500), wall=11)]), [0, 0], plan(dynamic())), "service_saved") == -1.5


def test_the_page_of_metrics_holds_these_figures() -> None:
    page = " ".join((Path(__file__).parents[2] / "docs" / "metrics.md").read_text().split())
    one = told(trace([Ran((100, 100), wall=3)]), [1.5, 0.0], plan(dynamic()))
    wide = value(told(trace([Ran((100, 500), wall=11)]), [0, 0], plan(dynamic())), "service_saved")
    paid, saved, net = (value(one, name) for name in ("hold_paid", "service_saved", "net"))
    assert f"{paid:g} ms paid, {saved:g} ms saved, net {net:g} ms. Of widths 100 and 500: {wide:g} ms saved." in page


def test_alone_on_a_padded_entry_means_at_its_own_dims() -> None:
    run = trace([Ran((100, 150), wall=7, executed=300, entry="b300", route="padded")])
    assert value(told(run, [0, 0], plan(bucket(300))), "service_saved") == 0.5  # 4 + 4 - 7, for two


def test_alone_on_an_entry_of_four_rows_costs_four_rows() -> None:
    run = trace([Ran((100, 100), wall=5, entry="dyn")])
    run.batches["executed_size"][:] = 4
    found = told(run, [0, 0], plan(dynamic(batch=(4, 4))))
    assert value(found, "service_saved") == 2.5  # 5 + 5 - 5, for two
    assert value(found, "empty_rows") == 0.5


def test_by_entry_and_by_size() -> None:
    run = trace(
        [
            Ran((100, 100), wall=3),
            Ran((100,), wall=2, arrived=10),
            Ran((200, 100), wall=7, executed=300, entry="b300", arrived=20),
            Ran((50,), wall=9, error="crash", arrived=30),
        ]
    )
    found = told(run, [1.0, 0.0, 2.0, 0.5, 0.5, 0.0], plan(bucket(300), dynamic()))
    entries, sizes = found.table("policy.by_entry"), found.table("policy.sizes")
    assert entries is not None
    assert sizes is not None
    first = {name: column[0] for name, column in entries.columns.items()}
    assert first == {
        "entry": "dyn", "batches": 3, "requests": 4, "mean_size": 1.33333, "empty_rows": 0.0, "held": 0.666667,
        "paid": 1.0, "saved": 0.333333, "net": -0.666667, "unknown": 1,
    }  # fmt: skip
    assert entries.columns["net"][1] == 0.0  # 1 ms of hold, 4 + 4 - 7 ms saved
    assert list(zip(*(sizes.columns[name] for name in ("entry", "size", "batches", "requests")), strict=True)) == [
        ("dyn", 1, 2, 2),
        ("dyn", 2, 1, 2),
        ("b300", 2, 1, 2),
    ]


def test_the_sentence_needs_an_interval() -> None:
    one = told(trace([Ran((100, 100), wall=3)]), [1.5, 0.0], plan(dynamic()))
    assert one.findings[0].text == (
        "Batching holds a request back for 0.75 ms and saves 0.5 ms of service a request: whether it pays is not shown."
    )
    many = trace([Ran((100, 100), wall=3, arrived=20.0 * i) for i in range(200)])
    assert told(many, [0.2] * 400, plan(dynamic())).findings[0].text.endswith("it saves more than it holds.")
    assert told(many, [3.0] * 400, plan(dynamic())).findings[0].text.endswith("it holds longer than it saves.")


def test_what_no_profile_knows_is_counted() -> None:
    found = told(trace([Ran((100, 100), wall=3)]), [1.0, 0.0], plan(dynamic()), Silent())
    assert (value(found, "service_saved"), found.findings) == (None, ())
    figure = found.figure("policy.hold_paid")
    assert figure is not None
    assert "2 in batches that no profile knows" in figure.note


@pytest.mark.parametrize("served", [plan(dynamic(), batch=BatchPolicy())])
def test_where_nothing_batches_nothing_is_said(served: Plan) -> None:
    found = told(trace([Ran((100,), wall=2)]), [0.0], served)
    assert (found.findings, found.figures, found.series) == ((), (), ())


def test_an_empty_run_says_nothing() -> None:
    assert told(trace([]), [], plan(dynamic())).figures == ()
