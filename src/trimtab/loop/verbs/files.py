"""``trimtab diagnose``: files of any known format, each read and classified, and put together where they say how.

A compiler's log is joined to tables of requests and to recordings of its rank on the same clock, recordings of ranks
that ran side by side to each other, and summaries of the same layers or the same run.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from trimtab.domain.figure import Series
from trimtab.domain.imported import Imported, ReadReport
from trimtab.domain.spans import Spans
from trimtab.domain.summary import Summary
from trimtab.errors import UsageError
from trimtab.evidence.imported.diagnose import diagnose as diagnose_requests
from trimtab.evidence.summary.diagnose import diagnose as diagnose_summary
from trimtab.evidence.timeline.diagnose import diagnose as diagnose_spans
from trimtab.evidence.timeline.ranks import Part, joined
from trimtab.evidence.timeline.steps import Rank, compare
from trimtab.loop.verbs.tables import Answer, Log, Said, answer, diagnose_table
from trimtab.readers import formats
from trimtab.readers._format import Format, Held

TOGETHER = "ranks of one job, side by side"

Read = tuple[Held, ReadReport]


def diagnose_files(
    files: Sequence[Path],
    *,
    baseline: Path | None = None,
    columns: Sequence[str] = (),
    facts: Sequence[str] = (),
    sla: str | None = None,
    strict: bool = False,
) -> tuple[Answer, ...]:
    """An answer for each of ``files``, in their order: what it proves, whatever known format it has; and behind them
    one for the ranks among them that ran side by side, if there are such.

    Options as in :meth:`.Said.parse`. UsageError for options that no file here has, DataError for a file that cannot be
    used.
    """
    kinds = [formats.find(file) for file in files]
    _for_tables(files, kinds, baseline, columns)
    said = Said.parse(columns, facts, sla)
    held = [None if kind is None else kind.read(file, strict) for file, kind in zip(files, kinds, strict=True)]
    logs = [Log(read.file, spans) for spans, read in filter(None, held) if isinstance(spans, Spans) and spans.compiles]
    summaries = [one[0] for one in held if one is not None and isinstance(one[0], Summary)]
    held, ranks = _put_together(held)
    answers = tuple(
        _known(one, said, summaries)
        if one is not None
        else diagnose_table(file, baseline=baseline, columns=columns, facts=facts, sla=sla, strict=strict, logs=logs)
        for file, one in zip(files, held, strict=True)
    )
    side_by_side = [(rank, one, answers[k]) for rank, k in ranks if (one := held[k]) is not None]
    return (*answers, *([_together(side_by_side)] if side_by_side else []))


def _put_together(held: Sequence[Read | None]) -> tuple[list[Read | None], tuple[tuple[int, int], ...]]:
    """What was read, recordings with the compiles of their logs; and (rank, place) of ranks that ran side by side."""
    places = [k for k, one in enumerate(held) if one is not None and isinstance(one[0], Spans)]
    parts = [Part(one[1].file, one[0]) for one in held if one is not None and isinstance(one[0], Spans)]
    found = joined(parts)
    out = list(held)
    for k, spans, notes in zip(places, found.spans, found.notes, strict=True):
        one = out[k]
        if one is not None:
            out[k] = (spans, msgspec.structs.replace(one[1], notes=(*one[1].notes, *notes)))
    return out, tuple((rank, places[k]) for rank, k in found.ranks)


def _together(given: Sequence[tuple[int, Read, Answer]]) -> Answer:
    """The answer for ranks that ran side by side."""
    ranks = [
        Rank(number, read.file, spans, alone.diagnosis)
        for number, (spans, read), alone in given
        if isinstance(spans, Spans)
    ]
    named = f"ranks {', '.join(str(rank.number) for rank in ranks)}"
    found = compare(ranks, named)
    reports = [read for _, (_, read), _ in given]
    rows, used = (sum(getattr(read, name) for read in reports) for name in ("rows", "used"))
    read = ReadReport(file=named, sha256="", rows=rows, used=used, columns={}, format=TOGETHER, unit=reports[0].unit)
    return answer(found.diagnosis, found.found, read, None, found.notes, lambda: found.charts)


def _known(held: Read, said: Said, summaries: Sequence[Summary]) -> Answer:
    """The answer for a file that is no table; ``summaries`` are those of all files."""
    given, read = held
    if isinstance(given, Summary):
        others = [one for one in summaries if one is not given]
        added = diagnose_summary(given, read, others=others, sla=said.sla, texts=said.texts)
        return answer(added.diagnosis, added.found, read, None, added.notes, _no_charts)
    if isinstance(given, Imported):
        requests = diagnose_requests(given, read, sla=said.sla, numbers=said.numbers, texts=said.texts)
        return answer(requests.diagnosis, requests.tail, read, None, requests.notes, requests.charts)
    found = diagnose_spans(given, read, sla=said.sla, numbers=said.numbers, texts=said.texts)
    return answer(found.diagnosis, found.found, read, None, found.notes, found.charts)


def _no_charts() -> tuple[Series, ...]:
    """A summary's figures and tables are all there is to draw."""
    return ()


def _for_tables(
    files: Sequence[Path], kinds: Sequence[Format | None], baseline: Path | None, columns: Sequence[str]
) -> None:
    """UsageError for an option that only a table of requests has, where none is given."""
    if None in kinds:
        return
    for option, given in (("--baseline", baseline), ("--column", columns)):
        if given:
            what = " and ".join(
                f"{file.name} is a {kind.name}" for file, kind in zip(files, kinds, strict=True) if kind
            )
            raise UsageError(f"{option} is for tables of requests; {what}", fix=f"leave {option} out")
