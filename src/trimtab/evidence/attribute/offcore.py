"""How long a batch waited for a core: the run-queue delay, as far as its process was really off the core.

Theory. The recorded delay is that of the thread that waited longest. A runtime computes in a thread of its own, and the
thread that gave the order is often still runnable for a slice of the scheduler (3 to 5 ms) behind it. That delay costs
nobody anything: the process holds the core all the time, and the network computes. On one pinned core

    wall = on the core + waiting for it + asleep

so what was lost is at most wall - on-core time. A process on several cores can use more CPU time than wall time, and
a core that is not known to be one says nothing: there the recorded delay stands.
"""

from __future__ import annotations

import numpy as np

from trimtab.domain.trace import Table
from trimtab.evidence.attribute.split import Int


def off_core(batches: Table, wall: Int) -> Int:
    """ns of each batch, at most ``wall``; 0 where no delay was readable."""
    delay: Int = np.clip(batches["runqueue"], 0, wall)
    alone = (batches["core"] >= 0) & (batches["on_cpu"] >= 0)
    bounded: Int = np.where(alone, np.minimum(delay, np.maximum(wall - batches["on_cpu"], 0)), delay)
    return bounded
