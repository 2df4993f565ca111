"""From judged runs to rows, the confusion matrix, macro-F1, and docs/faults.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from faults.catalogue import FAULTS, fault
from faults.recorded import Case
from trimtab.domain.noun import Noun
from trimtab.domain.score import ClassId, Diagnosis
from trimtab.evidence.analysis import Analysis


class Row(Noun, frozen=True, kw_only=True):
    """One judged run. ``rank`` of the expected class among those named, from 1; 0 = not named. ``decoys`` = other
    classes that were named."""

    fault: str
    seed: int
    injected: str
    expected: ClassId
    named: tuple[ClassId, ...]
    rank: int
    decoys: tuple[ClassId, ...]
    evidence: str
    p95_ms: float | None
    bound_ms: float
    requests: int

    @property
    def right(self) -> bool:
        return self.rank == 1


def row(case: Case, analysis: Analysis, p95_ms: float | None, requests: int) -> Row:
    """What one run was given and what it was called."""
    found: Diagnosis = analysis.diagnosis
    named = tuple(one.id for one in found.classes)
    kind = fault(case.fault)
    return Row(
        fault=case.fault,
        seed=case.seed,
        injected=case.injected,
        expected=case.expected,
        named=named,
        rank=named.index(case.expected) + 1 if case.expected in named else 0,
        decoys=tuple(name for name in named if name not in (case.expected, *kind.also)),
        evidence="; ".join(found.classes[0].evidence),
        p95_ms=p95_ms,
        bound_ms=case.sla.bound_ms,
        requests=requests,
    )


def f1_by_class(rows: Sequence[Row]) -> dict[str, float]:
    """F1 of the first named class, for each expected class: 2 TP / (2 TP + FP + FN)."""
    out = {}
    for name in dict.fromkeys(r.expected for r in rows):
        hit = sum(r.expected == name == r.named[0] for r in rows)
        miss = sum((r.expected == name) != (r.named[0] == name) for r in rows)
        out[name] = 2 * hit / (2 * hit + miss)
    return out


def macro_f1(rows: Sequence[Row]) -> float:
    """The mean over the expected classes."""
    each = f1_by_class(rows)
    return sum(each.values()) / len(each)


def confusion(rows: Sequence[Row]) -> dict[str, dict[str, int]]:
    """Expected class -> first named class -> runs."""
    out: dict[str, dict[str, int]] = {}
    for r in rows:
        counts = out.setdefault(r.expected, {})
        counts[r.named[0]] = counts.get(r.named[0], 0) + 1
    return out


def said(r: Row) -> str:
    """One line for the terminal."""
    mark = "ok  " if r.right and not r.decoys else "MISS" if not r.right else "also"
    p95 = "fails" if r.p95_ms is None else f"{r.p95_ms:.0f} ms"
    return f"{mark} {r.fault}-{r.seed}: {', '.join(r.named)} (p95 {p95} of {r.bound_ms:g}); {r.evidence}"


def summary(rows: Sequence[Row]) -> str:
    """The matrix and the figures, as text."""
    right = sum(r.right for r in rows)
    decoys = sum(bool(r.decoys) for r in rows)
    head = f"macro-F1 {macro_f1(rows):.3f} over {len(f1_by_class(rows))} classes; {right} of {len(rows)} runs named "
    return "\n".join([*_table(_confusion_cells(rows)), "", f"{head}first; a decoy beside it in {decoys}"])


def page(rows: Sequence[Row], facts: Sequence[str], command: str) -> str:
    """docs/faults.md."""
    return "\n".join(
        [
            "# Fault bench",
            "",
            "One fault at a time is injected into real runs, and the diagnosis of each run is compared with the class "
            "that must be named first. This page is written by the bench; do not edit it.",
            "",
            *(f"- {fact}" for fact in facts),
            "",
            "```",
            command,
            "```",
            "",
            f"**macro-F1 {macro_f1(rows):.3f}** over the first named class; {sum(r.right for r in rows)} of "
            f"{len(rows)} runs named first; a decoy was named beside the class in {sum(bool(r.decoys) for r in rows)}.",
            "",
            "## Confusion matrix (runs; row: expected, column: named first)",
            "",
            *_table(_confusion_cells(rows)),
            "",
            "## Faults",
            "",
            *_table(_fault_cells(rows)),
            "",
            "## Why these classes",
            "",
            *(f"- **{f.id}**: {f.what}. `{f.expected}`: {f.why}." for f in _known(rows)),
            "",
            "## What cannot be told apart, and why",
            "",
            *(f"- {text}" for text in LIMITS),
            *_missed(rows),
            "",
        ]
    )


LIMITS: tuple[str, ...] = (
    "Envelope is one class: a busy neighbour, a quota and a memory neighbour differ by their evidence (run-queue "
    "delay, throttled time, pace), not by class; their owner and the next step are the same.",
    "On a machine with two cores the load generator has one of them. A placement over two workers therefore shares the "
    "generator's core, and a memory neighbour runs there only while nobody else wants it.",
    "A memory neighbour is expected to be named only where the pace kernel feels it before the replay (the dose is in "
    "its row). It shows only through the pace kernel, which runs in gaps: a run without gaps has no pace, and then the "
    "slow batches stay without a proven cause.",
    "A late generator hides whatever else is wrong: no class beside `invalid-measurement` is offered.",
    "Beyond a relaxation time of n / 100 requests there is no interval, so nothing but arithmetic can be named: a run "
    "near saturation needs thousands of requests, and until then its answer is insufficient-evidence.",
    "With too few requests nothing is named, not even a cause that anybody could see.",
)


def _known(rows: Sequence[Row]) -> Iterator:  # type: ignore[type-arg]
    present = {r.fault for r in rows}
    return (f for f in FAULTS if f.id in present)


def _confusion_cells(rows: Sequence[Row]) -> list[list[str]]:
    counts = confusion(rows)
    columns = list(dict.fromkeys([*counts, *(name for row in counts.values() for name in row)]))
    head = ["expected", *columns, "F1"]
    scores = f1_by_class(rows)
    body = [[e, *(str(n.get(c, "")) for c in columns), f"{scores[e]:.2f}"] for e, n in counts.items()]
    return [head, *body]


def _fault_cells(rows: Sequence[Row]) -> list[list[str]]:
    head = ["fault", "expected", "named first", "decoys beside it", "p95, median (bound)", "injected", "evidence"]
    return [head, *(_fault_row([r for r in rows if r.fault == f.id]) for f in _known(rows))]


def _fault_row(mine: Sequence[Row]) -> list[str]:
    shown = next((r for r in mine if r.right), mine[0])
    p95 = sorted(r.p95_ms if r.p95_ms is not None else float("inf") for r in mine)[len(mine) // 2]
    decoys = dict.fromkeys(d for r in mine for d in r.decoys)
    return [
        mine[0].fault,
        f"`{mine[0].expected}`",
        f"{sum(r.right for r in mine)} of {len(mine)}",
        ", ".join(f"`{d}`" for d in decoys),
        f"{p95:.0f} ms ({mine[0].bound_ms:g})",
        ", ".join(dict.fromkeys(r.injected for r in mine)),
        shown.evidence.replace("|", "/"),
    ]


def _missed(rows: Sequence[Row]) -> Iterator[str]:
    for r in rows:
        if not r.right:
            yield f"- Missed: {r.fault}, seed {r.seed}: `{r.named[0]}` instead of `{r.expected}`: {r.evidence}."


def _table(cells: Sequence[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(line) + " |" for line in cells]
    return [lines[0], "|" + "---|" * len(cells[0]), *lines[1:]]
