"""``trimtab workload FILE``: what traffic is like, from a table of arrivals or of rates, and without a study."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from trimtab.domain.figure import Findings
from trimtab.domain.imported import ReadReport
from trimtab.evidence import rates, traffic
from trimtab.evidence.bursts import bursts
from trimtab.evidence.windows import windows
from trimtab.loop.verbs.tables import Said
from trimtab.readers import rates as table_of_rates
from trimtab.readers.arrivals import headers_of, read_arrivals

UNSLICED = "workload.slices"


class Traffic(msgspec.Struct, frozen=True):
    """What one file's traffic is like, and how it was read."""

    found: Findings
    read: ReadReport


def describe_file(path: Path, *, columns: Sequence[str] = (), strict: bool = False) -> Traffic:
    """The traffic of ``path``; ``columns`` are ``role=header``. DataError for a file that cannot be used."""
    headers = headers_of(path)
    if table_of_rates.holds(headers) and not columns:
        held, read = table_of_rates.read_rates(path, headers, strict=strict)
        return Traffic(rates.describe(held, path.name), read)
    workload, read = read_arrivals(path, Said.parse(columns).columns, strict=strict)
    told = traffic.describe(workload)
    table, figures, said = windows(workload, path.name)
    counted, more, also = bursts(workload, path.name)
    whole = Findings(
        stage="workload",
        headline=told.headline,
        findings=(*told.findings, *said, *also),
        figures=tuple(msgspec.structs.replace(one, artifact=path.name) for one in (*told.figures, *figures, *more)),
        series=tuple(
            msgspec.structs.replace(one, artifact=path.name)
            for one in (*told.series, table, *counted)
            if one.id != UNSLICED  # slices belong to a study
        ),
    )
    return Traffic(whole, read)
