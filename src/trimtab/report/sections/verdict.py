"""The first screen: the decision as a sentence; how much it gains, who owns the tail, what changes, how sure it is."""

from __future__ import annotations

from trimtab.domain.verdict import MatrixCell, Verdict
from trimtab.report import words
from trimtab.report.arms import arms
from trimtab.report.book import Book
from trimtab.report.page import Answer, Opening, Status
from trimtab.report.sections import answers, owner, signing

WORDS = {"ship": "Ship", "hold": "Hold", "rollback": "Roll back"}
REASONS = {
    "no-benefit": "no change helps beyond the noise floor.",
    "inconclusive": "the evidence does not decide yet.",
    "guard-failed": "a guard got worse by more than its margin.",
}
PLAIN = ("", "as recorded", "normal")
"""Conditions that need no mention: the traffic as it came."""
METRICS = {"miss": "late requests", "max-error": "the largest error", "error-function": "the error"}
"""Metrics whose stored word is not what a reader calls them."""


def opening(book: Book) -> Opening | None:
    """The verdict, or what is known without one; None for a packet in which nothing has been found yet."""
    found = tuple(
        answer
        for answer in (answers.primary(book), _owner(book), answers.change(book), answers.certainty(book))
        if answer is not None
    )
    verdict = book.record.verdict
    if verdict is None:
        if not found:
            return None
        return Opening(
            status="open",
            word="Not decided",
            sentence="",
            text=_situation(book),
            pending=book.headline("decide") or "This packet has no verdict: its run has not come to the decide stage.",
            answers=found,
        )
    return Opening(
        status=_status(book, verdict),
        word=_word(verdict),
        sentence=_sentence(book, verdict),
        text=_running(verdict) or " ".join(part for part in (_situation(book), _open_cells(verdict)) if part),
        pending=_pending(book, verdict),
        answers=found,
    )


def _owner(book: Book) -> Answer | None:
    """Who owns the tail; of what runs the verdict says it, for what was analysed is the plan to go back to."""
    verdict = book.record.verdict
    return owner.answer(book) if verdict is None or verdict.running is None else None


def _status(book: Book, verdict: Verdict) -> Status:
    """A ship that signatures are missing for is pending: it is said in grey."""
    if verdict.decision == "hold":
        return "open"
    if verdict.decision == "rollback":
        return "fail"
    return "pass" if signing.signatures(book.record).complete else "pending"


def _word(verdict: Verdict) -> str:
    if verdict.decision == "ship" and verdict.running is not None:
        return "Keep"
    return WORDS[verdict.decision] + (":" if verdict.decision == "hold" else "")


def _running(verdict: Verdict) -> str:
    """What the verdict says beyond its word, of what runs; empty for a proposal."""
    if verdict.running is None:
        return ""
    after = ": " if verdict.decision == "rollback" else ". "
    return words.opened(verdict.sentence.partition(after)[2])


def _sentence(book: Book, verdict: Verdict) -> str:
    """The imperative move; a hold says why first."""
    proposal = book.record.proposal
    if verdict.decision == "hold":
        said = verdict.sentence.removeprefix("Hold: ").partition(". ")[0]
        return words.ended(said) if verdict.sentence.startswith("Hold: ") else REASONS.get(verdict.reason, "")
    if verdict.decision == "rollback":
        return f"to plan {proposal.baseline if proposal else book.baseline.id}."
    if verdict.running is not None:
        return f"plan {verdict.running.plan}, which runs."
    return words.ended(proposal.move.sentence if proposal else verdict.sentence)


def _situation(book: Book) -> str:
    """Slice, metric from, to and bound; then the owner of the tail."""
    sla, primary = book.record.study.sla, book.primary
    row = arms(book, sla.metric)
    parts = []
    if row.static is not None:
        part = primary.slice if primary else book.slice_of(book.series("replay.quantiles"))
        where = f"On {part} traffic" if part else "In this run"
        parts.append(f"{where} {answers.from_to(row)}, {answers.against_bound(book, row)}.")
    parts.append(owner.sentence(book))
    return " ".join(part for part in parts if part)


def _open_cells(verdict: Verdict) -> str:
    """Where it fails and where it is open, in words; a hold has named what decided it already."""
    said = verdict.deciding if verdict.decision == "hold" else ()
    rest = [cell for cell in verdict.cells if cell.id not in said]
    failing = [_named(cell) for cell in rest if cell.status == "fail"]
    undecided = [_named(cell) for cell in rest if cell.status == "inconclusive"]
    parts = []
    if failing:
        parts.append(f"The change fails for {words.listed(_few(failing))}.")
    if undecided:
        parts.append(f"Still open: {words.listed(_few(undecided))}.")
    return " ".join(parts)


def _named(cell: MatrixCell) -> str:
    condition = "" if cell.condition in PLAIN else f" ({cell.condition})"
    return f"{METRICS.get(cell.metric, cell.metric)} on {cell.slice}{condition}"


def _few(names: list[str], most: int = 3) -> list[str]:
    return names if len(names) <= most else [*names[: most - 1], f"{words.count(len(names) - most + 1)} more cells"]


def _pending(book: Book, verdict: Verdict) -> str:
    """Only a ship waits for signatures."""
    return signing.pending(book, _word(verdict)) if verdict.decision == "ship" else ""
