"""Off-core time from literal batches: the delay of a thread counts only while its process was off the core."""

from __future__ import annotations

import numpy as np
import pytest

from trimtab.domain.trace import BATCH_COLUMNS, Table, empty
from trimtab.evidence.attribute.offcore import off_core


@pytest.mark.parametrize(
    ("runqueue", "on_cpu", "core", "expected"),
    [
        (4, 6, 1, 4),  # waited for 4 of 10, was on the core for the rest
        (4, 10, 1, 0),  # a thread of ours waited while another of ours computed
        (4, 8, 1, 2),  # half of each
        (0, 3, 1, 0),  # asleep, not waiting
        (4, 10, -1, 4),  # several cores: on-core time says nothing
        (4, -1, 1, 4),  # on-core time was not readable
        (-1, 5, 1, 0),
        (15, 2, -1, 10),  # never more than the wall time
    ],
)
def test_off_core_time_of_a_batch_of_10(runqueue: int, on_cpu: int, core: int, expected: int) -> None:
    batches = empty(BATCH_COLUMNS, 1).columns | {
        "runqueue": np.array([runqueue]),
        "on_cpu": np.array([on_cpu]),
        "core": np.array([core]),
    }
    assert off_core(Table(batches), np.array([10])).tolist() == [expected]
