"""The sweep over the number of entries: what is stored, and what is said."""

from __future__ import annotations

import numpy as np
import pytest

from trimtab.mapping import buckets
from trimtab.mapping.priced import EntryPrice, priced
from trimtab.retuning import sweep

WIDTHS = np.array([10] * 40 + [20] * 30 + [30] * 20 + [40] * 10, dtype=np.int64)
FITS = buckets.sweep(WIDTHS, float, 4)


def price(start_ms: float, limit_mib: float | None = None) -> EntryPrice:
    return EntryPrice(start_ms=start_ms, requests=100, memory_mib=10, limit_mib=limit_mib)


def test_every_number_of_entries_is_stored_with_its_parts() -> None:
    cost = price(300, 35)
    table = sweep.series(priced(FITS, cost), cost)
    assert (table.id, table.scope) == ("retune.sweep", "tune")
    assert table.columns == {
        "count": (1, 2, 3, 4),
        "run_ms": (40.0, 26.0, 22.0, 20.0),
        "start_ms": (3.0, 6.0, 9.0, 12.0),
        "total_ms": (43.0, 32.0, 31.0, 32.0),
        "memory_mib": (10.0, 20.0, 30.0, 40.0),
        "fits": (True, True, True, False),
        "best": (False, False, True, False),
    }
    assert table.note == "300 ms to start an entry, 100 requests a start; limit 35 MiB"


@pytest.mark.parametrize(
    ("cost", "text"),
    [
        (
            price(300),
            "3 entries cost least with 300 ms to compile and warm each, at 100 requests a start: "
            "31 ms a request by profile (43 with 1, 32 with 4).",
        ),
        (
            price(0),
            "4 entries cost least with 0 ms to compile and warm each, at 100 requests a start: "
            "20 ms a request by profile (40 with 1); more were not tried, and may cost less.",
        ),
        (
            price(0, 15),
            "1 entry costs least with 0 ms to compile and warm each, at 100 requests a start: "
            "40 ms a request by profile (20 with 4); more do not fit into 15 MiB.",
        ),
        (price(0, 5), "Not even one entry fits into the memory limit of 5 MiB."),
    ],
)
def test_the_answer_in_one_sentence(cost: EntryPrice, text: str) -> None:
    assert sweep.told(priced(FITS, cost), cost).text == text
