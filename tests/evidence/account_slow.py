"""The tail account once more, slowly: plain integers, one request at a time, straight from the definitions."""

from __future__ import annotations

from fractions import Fraction
from math import floor
from typing import Any

from trimtab.domain.account import CAUSES, INHERITED
from trimtab.domain.trace import Trace

Parts = dict[str, int]


def rows(table: Any) -> list[dict[str, int]]:
    names = list(table.columns)
    return [dict(zip(names, map(int_, values), strict=True)) for values in zip(*table.columns.values(), strict=True)]


def int_(value: Any) -> Any:
    return int(value) if value == value and float(value).is_integer() else value


def share(total: int, weights: list[int]) -> list[int]:
    """Cumulative floors with exact fractions."""
    whole = sum(weights)
    if whole == 0:
        return [0] * len(weights)
    reached = [floor(Fraction(total * sum(weights[: k + 1]), whole)) for k in range(len(weights))]
    return [b - a for a, b in zip([0, *reached], reached, strict=False)]


def descend(top: int, levels: list[tuple[str, int, bool]]) -> Parts:
    """Steps from ``top`` over the levels (name of the step above it, ns or 0 = unknown, signed)."""
    out: Parts = {"unprofiled": 0}
    last, gap = top, False
    for name, level, signed in levels:
        out[name] = 0
        if name != "useful" and level == 0:
            gap = True
            continue
        low = level if signed and not gap else min(level, last)
        out["unprofiled" if gap else name] += last - low
        last, gap = low, False
    return out


class Slow:
    """Everything that the account says of a run of one entry and one dim, with FIFO queues and no marks."""

    def __init__(self, trace: Trace, promise: Any, reference: Any, sets: tuple[tuple[int, ...], ...]) -> None:
        self.requests, self.batches = rows(trace.requests), rows(trace.batches)
        self.promise, self.reference = promise, reference
        self.workers = trace.run.workers
        self.sets = sets
        self.members = {b["id"]: [r for r in self.requests if r["batch"] == b["id"]] for b in self.batches}
        self.waits = [self._wait(r) for r in self.requests]
        self.own = [self._own(r, w) for r, w in zip(self.requests, self.waits, strict=True)]
        self.behind = {b["id"]: self._behind(b) for b in self.batches}
        self.inherited = self._inherit()

    def _batch(self, request: dict[str, int]) -> dict[str, int]:
        return next(b for b in self.batches if b["id"] == request["batch"])

    def _free(self, worker: int, t: int) -> bool:
        """Whether ``worker`` is free in the segment that begins at ``t``."""
        return not any(b["worker"] == worker and b["dispatched"] <= t < b["ended"] for b in self.batches)

    def _wait(self, request: dict[str, int]) -> Parts:
        a, z = request["enqueued"], request["dispatched"]
        mine = self.sets[request["stream"]]
        edges = {a, z, min(max(request["batched"], a), z)}
        edges |= {t for b in self.batches for t in (b["dispatched"], b["ended"]) if a < t < z}
        out = {"hold": 0, "dispatch": 0, "busy": 0, "idle_elsewhere": 0, "lag": 0}
        for start, end in zip(sorted(edges), sorted(edges)[1:], strict=False):
            if any(self._free(w, start) for w in mine):
                label = "hold" if start < request["batched"] else "dispatch"
                out["lag"] = out["lag"] + end - start if label == "dispatch" else 0
            else:
                label, out["lag"] = "busy", 0
                out["idle_elsewhere"] += (end - start) * any(self._free(w, start) for w in range(self.workers))
            out[label] += end - start
        return out

    def _levels(self, batch: dict[str, int]) -> list[tuple[str, int, bool]]:
        executed = (batch["executed_size"], batch["exec.w"])
        largest = max(r["dim.w"] for r in self.members[batch["id"]])
        return [
            ("excess", self.promise.warm("entry", executed), True),
            ("premium", self.reference.warm("reference", executed), True),
            ("padding", self.reference.warm("reference", (batch["size"], largest)), False),
        ]

    def _own(self, request: dict[str, int], wait: Parts) -> Parts:
        batch = self._batch(request)
        alone = self.reference.warm("reference", (1, request["dim.w"]))
        wall = batch["ended"] - batch["started"]
        levels = [*self._levels(batch), ("co_batching", alone, False), ("useful", 0, False)]
        parts = descend(wall - batch["runqueue"], levels)
        excess = parts.pop("excess")
        parts["cold"] = max(excess, 0) if batch["first_seen"] else 0
        parts["interference"] = excess - parts["cold"]
        parts["off_core"] = batch["runqueue"]
        parts["slip"] = request["enqueued"] - request["scheduled"]
        parts["hold"], parts["busy"] = wait["hold"], wait["busy"]
        parts["dispatch"] = wait["dispatch"] + batch["started"] - batch["dispatched"]
        parts["completion"] = request["done"] - batch["ended"]
        return parts

    def _behind(self, batch: dict[str, int]) -> Parts:
        members = self.members[batch["id"]]
        each = [self.reference.warm("reference", (batch["size"], r["dim.w"])) for r in members]
        mean = sum(each) // len(each) if all(each) else 0
        wall = batch["ended"] - batch["started"]
        parts = descend(wall - batch["runqueue"], [*self._levels(batch), ("ragged", mean, False), ("useful", 0, False)])
        excess = parts.pop("excess")
        parts["cold"] = max(excess, 0) if batch["first_seen"] else 0
        parts["interference"] = excess - parts["cold"]
        parts["padding"] += parts.pop("ragged")
        owed = 0
        for name in ("interference", "premium"):
            owed -= min(parts[name], 0)
            parts[name] = max(parts[name], 0)
        for name in ("useful", "padding", "premium", "interference", "unprofiled", "cold"):
            paid = min(parts[name], owed)
            parts[name], owed = parts[name] - paid, owed - paid
        lag = min(w["lag"] for r, w in zip(self.requests, self.waits, strict=True) if r["batch"] == batch["id"])
        parts["off_core"] = batch["runqueue"]
        parts["dispatch"] = lag + batch["started"] - batch["dispatched"]
        return parts

    def model(self, causes: set[str]) -> list[int]:
        """w(causes) by list scheduling."""
        work: dict[int, int] = {}
        for batch in self.batches:
            members = self.members[batch["id"]]
            for name, part in self.behind[batch["id"]].items():
                if name == "useful" or name in causes:
                    for r, piece in zip(members, share(part, [1] * len(members)), strict=True):
                        work[r["id"]] = work.get(r["id"], 0) + piece
        ready = {
            r["id"]: r["enqueued"] + (w["hold"] if "hold" in causes else 0)
            for r, w in zip(self.requests, self.waits, strict=True)
        }
        free = [-(10**18)] * self.workers
        waits = [0] * len(self.requests)
        for position in sorted(range(len(self.requests)), key=lambda i: (ready[self.requests[i]["id"]], i)):
            request = self.requests[position]
            able = self.sets[request["stream"]] if "imbalance" in causes else range(self.workers)
            start = max(ready[request["id"]], min(free[w] for w in able))
            worker = min(able, key=lambda w: free[w])
            free[worker] = start + work[request["id"]]
            waits[position] = start - ready[request["id"]]
        return waits

    def _inherit(self) -> list[Parts]:
        causes = set(CAUSES)
        whole, nothing = self.model(causes), self.model(set())
        less = {k: self.model(causes - {k}) for k in CAUSES}
        only = {k: self.model({k}) for k in CAUSES}
        held = {b: any(w["hold"] for r, w in zip(self.requests, self.waits, strict=True) if r["batch"] == b)
                for b in self.members}  # fmt: skip
        out = []
        for i, request in enumerate(self.requests):
            owed = self.own[i]["busy"] + self.own[i]["co_batching"]
            capacity = min(whole[i], nothing[i])
            gains = [max(0, whole[i] - less[k][i]) + max(0, only[k][i] - capacity) for k in CAUSES]
            excess = share(whole[i] - capacity, gains)
            left = whole[i] - capacity - sum(excess)
            parts = dict(zip(INHERITED, share(owed, [capacity, *excess, left]), strict=True))
            if whole[i] == 0:
                to_hold = self.own[i]["co_batching"] if held[request["batch"]] else 0
                parts["hold"] += to_hold
                parts["unmodelled"] += owed - to_hold
            out.append(parts)
        return out
