"""A small study and a recorded-looking predictor that the tests of this room share."""

from __future__ import annotations

from typing import Any

import msgspec

from trimtab.domain.noun import EntryId, Executed, Ns
from trimtab.domain.study import Study

MS = 1_000_000

STUDY: dict[str, Any] = {
    "name": "lines",
    "model": {
        "path": "lines.onnx",
        "revision": "1",
        "inputs": [{"name": "x", "shape": ["batch", 3, 48, "width"]}],
        "outputs": [{"name": "y"}],
    },
    "dims": {"width": {"lo": 16, "hi": 1640}},
    "workload": {"arrivals": {"file": "a.csv", "time": "t"}, "shapes": {"dims": {"width": "w"}}},
    "sla": {"metric": "p95", "bound_ms": 60.0},
    "envelope": {},
    "baseline": {
        "id": "today",
        "compile": {
            "backend": "openvino",
            "entries": [{"id": "any", "kind": "dynamic", "lo": [16], "hi": [1640], "batch": [1, 8]}],
            "fallback": "any",
            "options": {"hint": "latency"},
        },
    },
}


def study(**changes: Any) -> Study:
    return msgspec.convert({**STUDY, **changes}, Study)


class Recorded:
    """Warm time = width / 100 ms, and 15 ms more the first time; nothing is known of entry ``new``."""

    def warm(self, entry: EntryId, executed: Executed) -> Ns:
        return 0 if entry == "new" else executed[0] * executed[1] * MS // 100

    def expected(self, entry: EntryId, executed: Executed, first_seen: bool) -> Ns:
        warm = self.warm(entry, executed)
        return warm + 15 * MS if warm and first_seen else warm
