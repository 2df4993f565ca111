"""A driver to be killed: it prints its worker's process id once the worker has been given its n-th batch.

Run as a program: runtime_victim.py SERVICE_US N
"""

from __future__ import annotations

import sys

from runtime_kit import load, plan_of, request_of

from trimtab.runtime import replay as room
from trimtab.runtime import wire
from trimtab.runtime.link import ProcessCrew


class Telling(ProcessCrew):
    """The worker is alone, so when it is given batch n, the n - 1 before it are done."""

    left = int(sys.argv[2])

    def send(self, worker: int, order: wire.Order) -> None:
        super().send(worker, order)
        if isinstance(order, wire.Run):
            self.left -= 1
            if self.left == 0:
                print(self.pids[worker], flush=True)


if __name__ == "__main__":
    room.ProcessCrew = Telling  # type: ignore[misc]
    trace = room.replay(request_of(load([20 * i for i in range(3000)]), plan_of(base_us=sys.argv[1]), hang_s=60))
    errors = trace.requests["error"].tolist()
    print(trace.run.complete, errors.count(0) >= 2, set(errors) == {0, 8}, trace.run.note, flush=True)
