"""What a study must hold that drives a server which is not ours: no plans, no conditions, no network to compile,
nothing to compare answers with. And what one that drives none must hold: a baseline and a network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trimtab.domain.plan import THEIRS
from trimtab.domain.remote import FORM, parse_target
from trimtab.domain.space import Space
from trimtab.domain.study import ModelSpec, QualitySpec, Study
from trimtab.store._network import network_faults
from trimtab.store._strict import Fault, Path

_REMOVE = "remove it, or workload.target"
_NETWORK = ("path", "package", "sha256", "torch", "torch_sha256", "calibration")


def missing_baseline(data: dict[str, Any]) -> Iterator[Fault]:
    """A missing baseline is told together with every other missing key; ``data`` is the study as read."""
    workload = data.get("workload")
    driven = isinstance(workload, dict) and bool(workload.get("target"))
    if not driven and "baseline" not in data:
        yield Fault(("baseline",), "missing", "add it: a table with id, compile, serve, note")


def local_faults(study: Study) -> Iterator[Fault]:
    """Every broken rule about the network of a study that drives no server."""
    yield from network_faults(study.model)
    asked = {"target_trace": "there is no server to trace", "against": "there is no server to hold it against"}
    for key in (key for key in asked if getattr(study.workload, key)):
        yield Fault(("workload", key), asked[key], "add workload.target, or remove it")


def target_faults(study: Study) -> Iterator[Fault]:
    """Every broken rule about ``workload.target``."""
    target, against = study.workload.target, study.workload.against
    for key, text in (("target", target), ("against", against or target)):
        if parse_target(text) is None:
            yield Fault(("workload", key), f"{text!r} names no model of a server", FORM)
    if against == target:
        yield Fault(("workload", "against"), "is workload.target itself", "name another server, or remove it")
    for key in _NETWORK:
        if getattr(study.model, key) != _default(key):
            yield _not_ours(("model", key), "is for a network that trimtab compiles")
    ours = {
        "baseline": study.baseline != THEIRS,
        "candidates": bool(study.candidates),
        "space": study.space != Space(),
        "conditions": bool(study.conditions),
    }
    for key in (key for key, given in ours.items() if given):
        yield _not_ours((key,), "is for plans that trimtab serves")
    if study.workload.deadlines_ms:
        yield _not_ours(("workload", "deadlines_ms"), "is for an order in which trimtab serves")
    if study.quality != QualitySpec():
        yield _not_ours(("quality",), "is for answers that are compared with a reference")


def _default(key: str) -> object:
    return getattr(ModelSpec(revision="", inputs=(), outputs=()), key)


def _not_ours(path: Path, text: str) -> Fault:
    return Fault(path, f"{text}; this study drives a server", _REMOVE)
