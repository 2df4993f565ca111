"""The owners' drafts quote the packet and nothing else; a figure that changes is noticed, line by line."""

from __future__ import annotations

import re

import pytest
import sample_record as sample
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from trimtab.domain import quote
from trimtab.domain.figure import Figure, Findings, Interval, Series
from trimtab.domain.packet import Record
from trimtab.domain.quote import Quotes, check, escaped, fill, said
from trimtab.report.documents import drafts

EFFECT = Figure(
    id="validate.p95",
    value=-0.766,
    unit="share",
    samples=900,
    scope="held-out",
    artifact="traces",
    interval=Interval(lo=-0.848, hi=-0.673),
)
WAIT = Figure(id="replay.p99 <odd>--name", value=118.4, unit="ms", samples=900, scope="tune", artifact="traces")
RECORD = replace(
    sample.minimal(),
    findings={"validate": Findings(stage="validate", headline="It passes by 12 %.", figures=(EFFECT, WAIT))},
)
QUOTED = "−76.6 % [−84.8, −67.3]<!-- validate.p95 -->"


def lines(document: str, record: Record = RECORD) -> list[tuple[int, str]]:
    return [(fault.line, fault.text) for fault in check(document, Quotes(record))]


def test_a_figure_is_quoted_with_its_interval_and_its_name() -> None:
    assert fill("p95 changes by {{validate.p95}}.", Quotes(RECORD)) == f"p95 changes by {QUOTED}."
    assert fill("{{validate.headline}}", Quotes(RECORD)) == "It passes by 12 %.<!-- validate.headline -->"
    assert fill("{{nothing.here}}", Quotes(RECORD)) == "{{nothing.here}}"


def test_a_name_cannot_end_the_comment_it_stands_in() -> None:
    text = Quotes(RECORD).quote(WAIT.id)
    assert text == "118 ms<!-- replay.p99%20%3Codd%3E-%2Dname -->"
    assert lines(text) == []


@pytest.mark.parametrize(
    ("document", "line", "reason"),
    [
        (f"\n\nmore, −77 % {QUOTED}", 3, "−77 % is not quoted from the packet"),
        ("−75 % [−84.8, −67.3]<!-- validate.p95 -->", 1, "validate.p95 is −76.6 % [−84.8, −67.3] in the packet"),
        (f"1{QUOTED}", 1, "the document says something else"),
        (f"−{QUOTED}", 1, "the document says something else"),
        ("<!-- validate.p95 -->", 1, "the document says something else"),
        ("x<!-- validate.p59 -->", 1, "the packet holds nothing called validate.p59"),
        ("{{validate.p95}}", 1, "is not filled in"),
        ("it took 12 ms", 1, "12 ms is not quoted"),
        ("it took 1,234.5 ms,", 1, "1,234.5 ms is not quoted"),
        ("+5 % <!-- own -->", 1, "+5 % is not quoted"),
    ],
)
def test_what_the_packet_does_not_bear_out_is_named_with_its_line(document: str, line: int, reason: str) -> None:
    found = lines(document)
    assert [at for at, _ in found][:1] == [line]
    assert any(reason in text for _, text in found)


@pytest.mark.parametrize(
    "document",
    [
        "",
        QUOTED,
        f"**{QUOTED}** of {QUOTED}",
        f"({QUOTED})",
        "eight entries, 3 replays, p99.9, width 18-116, refit-8, 2026-11-30, v1.2.3",
        "a margin of 5 %<!-- own --> is forgiven",
        "<!-- a note to myself -->",
        "```\nsleep 5 s\n```\n",
        "It passes by 12 %.<!-- validate.headline -->",
    ],
)
def test_what_is_borne_out_is_left_alone(document: str) -> None:
    assert lines(document) == []


def test_a_cell_of_a_series_is_quoted_with_the_interval_beside_it() -> None:
    table = Series(
        id="validate.matrix",
        columns={
            "change": (-0.5, 0.1),
            "lo": (-0.6, None),
            "hi": (-0.4, None),
            "slice": ("a|b", "c"),
            "met": (True, False),
        },
        units={"change": "share"},
    )
    record = replace(RECORD, findings={"validate": Findings(stage="validate", headline="", series=(table,))})
    quotes = Quotes(record)
    assert quotes.text("validate.matrix[0].change") == "−50 % [−60, −40]"
    assert quotes.text("validate.matrix[1].change") == "10 %"
    assert quotes.text("validate.matrix[0].slice") == "a\\|b"
    assert quotes.text("validate.matrix[1].met") == "no"
    for missing in ("validate.matrix[2].change", "validate.matrix[0].none", "validate.other[0].change"):
        assert quotes.text(missing) is None


def test_a_figure_that_changed_is_noticed() -> None:
    changed = replace(EFFECT, value=-0.70)
    record = replace(RECORD, findings={"validate": Findings(stage="validate", headline="x", figures=(changed,))})
    assert lines(f"a\nb {QUOTED}", record)[0] == (
        2,
        "validate.p95 is −70 % [−84.8, −67.3] in the packet; the document says something else",
    )


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "ms", "unknown"),
        (float("nan"), "ms", "unknown"),
        (float("inf"), "ms", "beyond the deadline"),
        (-0.0004, "share", "−0.04 %"),
        (0.0, "share", "0 %"),
        (1.0, "share", "100 %"),
        (17.696, "ms", "17.7 ms"),
        (9.0, "ms", "9 ms"),
        (1345.2, "requests", "1345 requests"),
        (3.5, "", "3.5"),
        (1e-9, "s", "1e−09 s"),
    ],
)
def test_how_a_value_is_said(value: float | None, unit: str, text: str) -> None:
    assert said(value, unit) == text


@pytest.mark.parametrize(
    "record", [sample.ship(), sample.hold(), sample.rollback(), sample.hostile(), sample.failing()]
)
def test_a_fresh_draft_says_exactly_what_its_packet_says(record: Record) -> None:
    for role, text in drafts(record).items():
        assert lines(text, record) == [], role
        assert "{{" not in text
        assert text.startswith("# ")


def test_each_draft_holds_what_its_owner_closes_with() -> None:
    made = drafts(sample.ship())
    for role, headings in {
        "compiler": ("What changes", "Why: the mechanism", "Trade-offs", "Precision and quality"),
        "runtime": ("The tail", "Bottleneck map", "Profiles", "Traces", "The way back"),
        "observability": (
            "What was tested",
            "Where the decision holds",
            "Where it does not",
            "Residual risks",
            "Closure",
        ),
    }.items():
        for heading in headings:
            assert f"## {heading}\n" in made[role]  # type: ignore[index]
    assert (
        "Add padded entries 160, 288, 512 and 960, and warm each at start.<!-- proposal.sentence -->"
        in made["compiler"]
    )
    assert "Serve plan today again when p95 exceeds 66 ms in two windows.<!-- proposal.rollback -->" in made["runtime"]
    assert "a cold start<!-- verdict.not_covered[0] -->" in made["observability"]


def test_drafts_of_a_hostile_packet_hold_no_markup_from_it() -> None:
    for text in drafts(sample.hostile()).values():
        outside = re.sub(r"<!-- \S+ -->", "", text)
        assert "<" not in outside
        assert "://" not in outside


@settings(deadline=None)
@given(st.text(min_size=1, max_size=60).filter(lambda name: name != quote.OWN))
def test_any_name_can_be_quoted_and_read_back(name: str) -> None:
    figure = replace(EFFECT, id=name)
    record = replace(RECORD, findings={"validate": Findings(stage="validate", headline="", figures=(figure,))})
    text = Quotes(record).quote(name)
    assert text.count("-->") == 1
    if len(text) < 300:
        assert lines(text, record) == []


@settings(deadline=None)
@given(st.text(max_size=80))
def test_escaped_text_is_one_plain_line(text: str) -> None:
    out = escaped(text)
    assert "\n" not in out
    assert not re.search(r"[<>@]|://", out)


@settings(deadline=None)
@given(st.text(alphabet="<!-->{}[] validate.p95%ms−12,", max_size=120))
def test_checking_survives_any_text(document: str) -> None:
    quotes = Quotes(RECORD)
    for fault in check(fill(document, quotes), quotes):
        assert 1 <= fault.line <= document.count("\n") + 1
    assert quote.OWN == "own"
