"""A packet that judges what runs: kept, held or rolled back, and what its triggers said."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from sample_record import ship, verdict
from test_report_watch import FOUND, trigger

from trimtab.domain.verdict import Running, Watched
from trimtab.report.documents import drafts
from trimtab.report.view import view
from trimtab.report.watch import grid

FIRED = Watched(cell="primary/normal/held-out/p95", slice="held-out", metric="p95", runs=3, fired=2, after=200)
RUNS = Running(packet="ab" * 32, shipped="2026-11-01T10:00:00Z", plan="refit-4", back_to="today", triggers=(FIRED,))
SENTENCES = {
    "ship": ("Ship: keep plan refit-4, which runs.", "Keep", "plan refit-4, which runs."),
    "hold": ("Hold: p95 on held-out is open. Plan refit-4 keeps running.", "Hold:", "p95 on held-out is open."),
    "rollback": ("Roll back to plan today: p99 failed on what is running.", "Roll back", "to plan today."),
}  # fmt: skip
REST = "The trigger on p95 of held-out fired in 2 of 3 replays, after 200 requests at the soonest."


@pytest.mark.parametrize("decision", SENTENCES)
def test_the_first_screen_says_what_becomes_of_what_runs(decision: str) -> None:
    said, word, sentence = SENTENCES[decision]
    made = replace(verdict(decision), sentence=f"{said} {REST}", running=RUNS)
    opening = view(replace(ship(), verdict=made)).opening
    assert opening is not None
    assert (opening.word, opening.sentence) == (word, sentence)
    reason = "P99 failed on what is running. " if decision == "rollback" else ""
    assert opening.text.replace("Plan refit-4 keeps running. ", "") == f"{reason}{REST}"
    assert not any(answer.label.startswith("Owner of the tail") for answer in opening.answers)


@pytest.mark.parametrize(
    ("found", "said", "sub"),
    [
        (FIRED, "fired", "2 of 3 replays, after 200 requests"),
        (replace(FIRED, fired=0, after=None), "silent", "in three replays"),
        (replace(FIRED, runs=0, fired=0, after=None, note="there is no such slice"), "–", "there is no such slice"),
        (replace(FIRED, cell="another"), "–", ""),
    ],
    ids=["fired", "silent", "not-held", "unknown"],
)
def test_a_trigger_says_what_it_said_to_the_new_replays(found: Watched, said: str, sub: str) -> None:
    made = grid((trigger(0.06, FOUND),), replace(RUNS, triggers=(found,)))
    assert made.columns[3].label == "On new replays"
    cell = made.rows[0].cells[3]
    assert (cell.text, cell.sub.replace("\u00a0", " ")) == (said, sub)
    assert len(made.rows[0].cells) == len(made.columns)


def test_the_documents_call_the_plans_by_what_they_are() -> None:
    drafted = drafts(replace(ship(), verdict=replace(verdict("hold"), running=RUNS)))["compiler"]
    assert "- To go back to: plan today" in drafted
    assert "- Running: plan refit-4" in drafted
    assert "- Proposed: plan refit-4" in drafts(ship())["compiler"]
