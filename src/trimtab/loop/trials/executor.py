"""Who makes the trials of a run: this machine, or several under Ray. The loop asks for both in the same words.

Trials come in groups. The trials of one group are compared with each other, so one machine makes them all, in order;
groups are independent, and an executor with several machines makes some at the same time. Whatever comes back carries
the envelope of the machine that made it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from trimtab.domain.envelope import Envelope
from trimtab.domain.ports import Controller, ModelFile, Payloads, Progress
from trimtab.domain.study import Study
from trimtab.errors import UsageError
from trimtab.loop.trials.trial import Result, Trial
from trimtab.readers.payload import payloads_of

LOCAL, RAY = "local", "ray"


class Group(NamedTuple):
    """Trials that one machine makes, in this order. ``envelope``: the digest of the machine that made others of the
    same comparison, so that no other may make these; empty: any."""

    trials: tuple[Trial, ...]
    envelope: str = ""


@dataclass(frozen=True)
class Material:
    """What trials are made from: the network and the payloads that a study names from ``folder``, and the envelope of
    the packet's home machine."""

    study: Study
    folder: Path
    model: ModelFile
    home: Envelope

    @cached_property
    def payloads(self) -> Payloads:
        return payloads_of(self.study, self.folder)


class Watch(Protocol):
    """Who follows trials. A trial may begin more than once: its machine can be lost."""

    def began(self, trial: Trial, envelope: Envelope) -> None: ...

    def rows(self, trial: Trial, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Rows of a trace, as they come."""
        ...

    def made(self, trial: Trial, result: Result, envelope: Envelope) -> None:
        """Once for each trial that ended. An exception ends all."""
        ...

    def progress(self, trial: Trial) -> Progress: ...

    def controller(self, trial: Trial) -> Controller | None:
        """Who may change the plan of a replay while it serves."""
        ...


class Executor(Protocol):
    def identity(self) -> object:
        """What the machine is that results are made on, as far as finished stages depend on it. Any JSON value."""
        ...

    def probe(self, cores: tuple[int, ...], runtimes: tuple[str, ...]) -> Envelope:
        """The home machine, as it was read for this run."""
        ...

    def lends(self, envelope: str) -> bool:
        """Whether a machine beside the home one, with the envelope of this digest, makes trials too."""
        ...

    def bars_controllers(self) -> str:
        """Why no controller can change a plan while it serves; empty: one can."""
        ...

    def told(self) -> tuple[str, ...]:
        """One sentence for each thing that readers of the results must know of the machines."""
        ...

    def perform(self, material: Material, groups: Sequence[Group], watch: Watch) -> None:
        """Make every trial of ``groups``. RunError where one cannot be made."""
        ...


def single(executor: Executor, material: Material, trial: Trial, watch: Watch) -> None:
    """Make one trial that is compared with no other."""
    executor.perform(material, (Group((trial,)),), watch)


@contextmanager
def chosen(name: str, study: Study, stored: Callable[[], Sequence[Envelope]], progress: Progress) -> Iterator[Executor]:
    """The executor called ``name``: ``local``, ``ray``, or ``ray:`` and the address of a cluster. ``stored``
    gives the machines of a packet that is continued, its home first. UsageError for another name."""
    if name == LOCAL:
        from trimtab.loop.trials.local import Local

        yield Local()
        return
    kind, _, address = name.partition(":")
    if kind != RAY:
        raise UsageError(
            f"there is no executor {name!r}", where="--executor", fix=f"known: {LOCAL}, {RAY}, {RAY}:ADDRESS"
        )
    if study.workload.target:
        raise UsageError(
            "a server is driven from this machine only", where="--executor", fix="leave --executor out for this study"
        )
    from trimtab.loop.trials.ray_cluster import opened

    with opened(address, study, stored(), progress) as executor:
        yield executor
