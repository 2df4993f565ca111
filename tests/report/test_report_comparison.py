"""The gate and the repetition as Markdown: short, and nothing in it is markup from a packet."""

from __future__ import annotations

from trimtab.domain.comparison import Gate, GateRow, Repeated, Reproduction
from trimtab.domain.figure import Interval
from trimtab.report.comparison import gate, reproduction

ROW = GateRow(
    metric="p95", slice="held-out", role="primary", old=59.6, new=70.1, change=0.176,
    interval=Interval(lo=0.12, hi=0.24), floor=0.06, margin=0.1, status="fail", note="worse by more than is forgiven",
)  # fmt: skip


def test_a_gate_fits_into_a_comment() -> None:
    found = Gate(
        old="ocr (monday)", new="ocr (tuesday)", outcome="fail", sentence="Worse than is forgiven: p95.",
        how="Paired on the same 900 arrivals.", rows=(ROW,), differs=("openvino: 1 then, 2 now",),
    )  # fmt: skip
    assert gate(found) == (
        "### trimtab gate: fail\n\n"
        "Worse than is forgiven: p95.\n\n"
        "| Metric | Old | New | Change | Forgiven | |\n"
        "|---|---|---|---|---|---|\n"
        "| p95 (primary) | 59.6 ms | 70.1 ms | 17.6 % [12, 24] | 10 % (floor 6 %) "
        "| **fail**: worse by more than is forgiven |\n\n"
        "Not the same:\n- openvino: 1 then, 2 now\n\n"
        "Paired on the same 900 arrivals.\n\n"
        "ocr (monday) → ocr (tuesday)\n"
    )


def test_names_are_escaped_and_lists_are_cut() -> None:
    evil = "<script>alert(1)</script> @team [x](https://evil.example) | **bold**"
    found = Gate(
        old=evil, new=evil, outcome="inconclusive", sentence=evil, forbids=tuple(f"{evil} {k}" for k in range(9))
    )
    text = gate(found)
    assert "<script" not in text
    assert "@team" not in text
    assert "https://" not in text
    assert "](" not in text.replace("\\](", "")
    assert "- and 3 more" in text


def test_a_repetition_names_each_figure() -> None:
    row = Repeated(
        figure="p95 of plan today", unit="ms", then=75.9, now=77.0, ratio=1.014, interval=Interval(lo=0.97, hi=1.06),
        floor=0.21, apart=0.28, outcome="agree",
    )  # fmt: skip
    text = reproduction(Reproduction(outcome="agree", sentence="All agree.", rows=(row,), folder="out/again"))
    assert "| p95 of plan today | 75.9 ms | 77 ms | 1.01 [0.97, 1.06] | 21 % | 28 % | **agree** |" in text
    assert "New runs: out/again" in text


def test_a_repetition_that_was_not_made_says_why() -> None:
    text = reproduction(
        Reproduction(
            outcome="not comparable", sentence="Nothing was run.", forbids=("threads of plan today: 2 then, 1 now",)
        )
    )
    assert text == (
        "### trimtab reproduce: not comparable\n\nNothing was run.\n\n"
        "Not comparable:\n- threads of plan today: 2 then, 1 now\n"
    )
