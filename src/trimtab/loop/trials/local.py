"""Trials on this machine, one after the other."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from functools import partial

from trimtab.domain.envelope import Envelope
from trimtab.loop.machine import backend_versions
from trimtab.loop.trials.executor import Group, Material, Watch
from trimtab.loop.trials.trial import Live, perform
from trimtab.runtime import probe


class Local:
    """The machine that gives the command is the one that makes every trial."""

    def identity(self) -> object:
        return platform.uname()

    def probe(self, cores: tuple[int, ...], runtimes: tuple[str, ...]) -> Envelope:
        return probe.probe(cores, versions=backend_versions(runtimes))

    def lends(self, envelope: str) -> bool:
        return False

    def bars_controllers(self) -> str:
        return ""

    def told(self) -> tuple[str, ...]:
        return ()

    def perform(self, material: Material, groups: Sequence[Group], watch: Watch) -> None:
        for trial in (trial for group in groups for trial in group.trials):
            watch.began(trial, material.home)
            live = Live(watch.progress(trial), partial(watch.rows, trial), watch.controller(trial))
            result = perform(trial, material.model, material.payloads, live)
            watch.made(trial, result, material.home)
