"""Compiles and requests on one clock: which request was hit, and when the two cannot be joined."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from trimtab.domain.imported import STAGE_COLUMNS, Imported, ReadReport, imported_trace
from trimtab.domain.noun import NEVER
from trimtab.domain.spans import SPAN_COLUMNS, Compilation, Spans
from trimtab.domain.trace import Table, empty
from trimtab.evidence.timeline.join import with_compiles

ORIGIN = 1_700_000_000_000_000_000


def table(scheduled: list[int], done: list[int], compute: list[int] | None = None) -> Imported:
    """Requests, ns from ORIGIN; done -1 = failed."""
    requests = {"id": np.arange(len(done)), "scheduled": np.array(scheduled), "done": np.array(done)}
    stages = empty(STAGE_COLUMNS, len(done)).columns
    if compute:
        stages["compute"] = np.array(compute)
    read = ReadReport(file="t", sha256="", rows=1, used=1, columns={})
    return Imported(trace=imported_trace(read, requests, {}), stages=Table(stages), origin=ORIGIN)


def log(*compiles: tuple[int, int], origin: int | None = ORIGIN) -> Spans:
    """(start, took) of each compile, ns from ``origin``."""
    made = tuple(Compilation(id="0/1", code="fn", start=start, took=took) for start, took in compiles)
    return Spans(tool="t", table=empty(SPAN_COLUMNS), compiles=made, origin=origin)


@pytest.mark.parametrize(
    ("given", "compiles", "expected", "inside"),
    [
        (table([0, 100], [50, 150]), [(10, 5)], [5, 0], 1),
        (table([0, 100], [50, 150]), [(110, 5), (10, 5), (20, 4)], [9, 5], 3),
        (table([0, 100], [50, 150]), [(40, 60)], [10, 0], 1),  # cut at the end of the request
        (table([0, 1, 2], [50, 90, 95]), [(10, 5), (60, 5)], [5, 5, 0], 2),  # the others wait
        (table([0, 1], [50, 90], [50, 40]), [(55, 5)], [0, 5], 1),  # queued behind, then run
        (table([0, 100], [-1, 150]), [(10, 5), (120, 5)], [0, 5], 1),  # a failed request has no end
    ],
)
def test_the_request_that_ran_is_hit(
    given: Imported, compiles: list[tuple[int, int]], expected: list[int], inside: int
) -> None:
    joined = with_compiles(given, log(*compiles))
    assert joined is not None
    assert joined.table.stages["compile"].tolist() == expected
    assert (joined.inside, joined.compiles) == (inside, len(compiles))


def test_another_zero_of_the_log() -> None:
    joined = with_compiles(table([0, 100], [50, 150]), log((10, 5), origin=ORIGIN + 100))
    assert joined is not None
    assert joined.table.stages["compile"].tolist() == [0, 5]


def test_what_cannot_be_joined() -> None:
    given = table([0], [50])
    recorded = empty(STAGE_COLUMNS, 1).columns | {"compile": np.array([3])}
    assert with_compiles(given, log((60, 5))) is None  # beside every request
    assert with_compiles(given, log((10, NEVER))) is None
    assert with_compiles(given, log((10, 5), origin=None)) is None
    assert with_compiles(msgspec.structs.replace(given, origin=None), log((10, 5))) is None
    assert with_compiles(msgspec.structs.replace(given, stages=Table(recorded)), log((10, 5))) is None
    assert with_compiles(given, log()) is None
