"""What this machine and its runtimes are, for the verbs that need no packet."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from trimtab import backends
from trimtab.domain.envelope import Envelope, EnvelopeCheck
from trimtab.domain.ports import BackendInfo
from trimtab.runtime import probe
from trimtab.store.study import load_study


def all_backends() -> tuple[BackendInfo, ...]:
    """Every backend, installed or not."""
    return tuple(backends.info(name) for name in backends.names())


def probe_machine(study: Path | None) -> tuple[Envelope, tuple[EnvelopeCheck, ...]]:
    """The envelope and, given a study, each of its assumptions against it."""
    envelope = probe.probe(versions=backend_versions(backends.names()))
    if study is None:
        return envelope, ()
    return envelope, probe.check(load_study(study).envelope, envelope)


def backend_versions(names: Iterable[str]) -> dict[str, str]:
    """Versions of the runtimes ``names``."""
    found: dict[str, str] = {}
    for name in dict.fromkeys(names):
        found |= backends.info(name).versions
    return found
