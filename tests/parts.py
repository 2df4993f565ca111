"""Parts that tests of every room build from: a machine, a run, its traffic. A test names what it depends on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trimtab.domain.envelope import Envelope
from trimtab.domain.noun import NEVER
from trimtab.domain.trace import RunInfo
from trimtab.domain.workload import Provenance, Workload


def run_info(**named: Any) -> RunInfo:
    """A simulated run of one worker; as many cores as workers, from 0, and the driver on the next one."""
    workers = named.get("workers", 1)
    base = {
        "id": "run", "plan": "p", "slice": "all", "source": "simulated", "workload_sha256": "w", "envelope_sha256": "e",
        "start_state": "warm", "seed": 1, "workers": workers, "cores": tuple(range(workers)), "driver_core": workers,
    }  # fmt: skip
    return RunInfo(**(base | named))


def workload_of(scheduled: Sequence[int] | ArrayLike, widths: ArrayLike = 9, **named: Any) -> Workload:
    """Requests of one stream at ``scheduled``, ns, of one dim: ``widths`` holds one size for all, or one for each. A
    request's payload is its number; no request has a deadline."""
    times = np.asarray(scheduled, dtype=np.int64)
    n = times.size
    base = {
        "id": "w",
        "dim_names": ("width",),
        "scheduled": times,
        "dims": np.broadcast_to(np.asarray(widths, dtype=np.int64), n).reshape(n, 1).copy(),
        "stream": np.zeros(n, dtype=np.int32),
        "streams": ("all",),
        "payload": np.arange(n, dtype=np.int32),
        "payload_kind": "random",
        "deadline": np.full(n, NEVER, dtype=np.int64),
        "provenance": Provenance(files=(), time_scale=1.0),
    }
    return Workload(**(base | named))


def envelope(**named: Any) -> Envelope:
    """A machine of two cores that says nothing else of itself."""
    base = dict.fromkeys(
        ("host", "kernel", "cpu_model", "microcode", "firmware", "governor", "power_profile", "virtualisation",
         "cgroup", "huge_pages", "clock_source", "compiler", "python"), ""
    ) | {"cpu_flags": (), "cores_online": 2, "cores_allowed": (0, 1), "quota_cores": None, "memory_bytes": 1,
         "memory_limit_bytes": None, "versions": {}}  # fmt: skip
    return Envelope(**(base | named))
