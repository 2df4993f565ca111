"""A driver to be killed: replays slow requests and prints its worker's process id first. Run as a program."""

from __future__ import annotations

import sys

from runtime_kit import load, plan_of, request_of

from trimtab.runtime import replay as room
from trimtab.runtime.link import ProcessCrew


class Telling(ProcessCrew):
    def start(self, worker: int) -> None:
        super().start(worker)
        print(self.pids[worker], flush=True)


if __name__ == "__main__":
    room.ProcessCrew = Telling  # type: ignore[misc]
    service_us = sys.argv[1]
    trace = room.replay(request_of(load([20 * i for i in range(3000)]), plan_of(base_us=service_us)))
    errors = trace.requests["error"].tolist()
    print(trace.run.complete, errors.count(0) > 0, set(errors) == {0, 8}, trace.run.note, flush=True)
