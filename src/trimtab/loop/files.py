"""``trimtab diagnose``: files of any known format, each read and classified; compiler logs joined to requests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trimtab.domain.imported import Imported, ReadReport
from trimtab.domain.spans import Spans
from trimtab.domain.summary import Summary
from trimtab.errors import UsageError
from trimtab.evidence.imported.diagnose import diagnose as diagnose_requests
from trimtab.evidence.summary.diagnose import diagnose as diagnose_summary
from trimtab.evidence.timeline.diagnose import diagnose as diagnose_spans
from trimtab.loop.tables import Answer, Log, Said, answer, diagnose_table
from trimtab.readers import formats
from trimtab.readers._format import Format, Held


def diagnose_files(
    files: Sequence[Path],
    *,
    baseline: Path | None = None,
    columns: Sequence[str] = (),
    facts: Sequence[str] = (),
    sla: str | None = None,
    strict: bool = False,
) -> tuple[Answer, ...]:
    """An answer for each of ``files``, in their order: what it proves, whatever known format it has.

    A compiler's log among them is joined to the tables of requests, where both have a clock, and summaries that tell of
    the same layers or the same run to each other. Options as in :meth:`.Said.parse`. UsageError for options that no
    file here has, DataError for a file that cannot be used.
    """
    kinds = [formats.find(file) for file in files]
    _for_tables(files, kinds, baseline, columns)
    said = Said.parse(columns, facts, sla)
    held = [None if kind is None else kind.read(file, strict) for file, kind in zip(files, kinds, strict=True)]
    logs = [Log(read.file, spans) for spans, read in filter(None, held) if isinstance(spans, Spans) and spans.compiles]
    summaries = [one[0] for one in held if one is not None and isinstance(one[0], Summary)]
    return tuple(
        _known(one, said, summaries)
        if one is not None
        else diagnose_table(file, baseline=baseline, columns=columns, facts=facts, sla=sla, strict=strict, logs=logs)
        for file, one in zip(files, held, strict=True)
    )


def _known(held: tuple[Held, ReadReport], said: Said, summaries: Sequence[Summary]) -> Answer:
    """The answer for a file that is no table; ``summaries`` are those of all files."""
    given, read = held
    if isinstance(given, Summary):
        others = [one for one in summaries if one is not given]
        added = diagnose_summary(given, read, others=others, sla=said.sla, texts=said.texts)
        return answer(added.diagnosis, added.found, read, None, added.notes)
    if isinstance(given, Imported):
        requests = diagnose_requests(given, read, sla=said.sla, numbers=said.numbers, texts=said.texts)
        return answer(requests.diagnosis, requests.tail, read, None, requests.notes)
    found = diagnose_spans(given, read, sla=said.sla, numbers=said.numbers, texts=said.texts)
    return answer(found.diagnosis, found.found, read, None, found.notes)


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
