"""One worker, asked one thing at a time: for whatever is not serving (profiles, answers, the reference pace)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from trimtab.domain.events import ErrorKind
from trimtab.domain.noun import Ns
from trimtab.errors import MachineError, RunError
from trimtab.runtime import wire
from trimtab.runtime.affinity import aside, check_cores, pinned
from trimtab.runtime.link import Crew, Gone, ProcessCrew
from trimtab.runtime.worker import Job

PREPARE_S = 600.0
RUN_S = 60.0


class LostError(Exception):
    """The worker is gone, or did not answer in time and was killed."""

    def __init__(self, error: ErrorKind, message: str) -> None:
        super().__init__(message)
        self.error: ErrorKind = error
        self.message = message


class Solo:
    """A worker that is started, greeted, and then asked. ``patience`` in seconds."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._lost: LostError | None = None
        crew.start(0)
        reply = self._await(PREPARE_S)
        if not isinstance(reply, wire.Hello):
            why = reply.message if isinstance(reply, wire.Broken) else f"it said {type(reply).__name__}"
            raise RunError(
                f"the backend does not start in a worker process: {why}",
                where="worker",
                fix="see what `trimtab backends` says of it",
            )
        self.hello = reply

    def ask(self, order: wire.Order, patience: float = RUN_S) -> wire.Reply:
        """Send ``order`` and wait for its answer; raises LostError if none comes, and from then on."""
        if self._lost is not None:
            raise self._lost
        self._crew.send(0, order)
        return self._await(patience)

    def _await(self, patience: float) -> wire.Reply:
        until: Ns = self._crew.now() + round(patience * 1e9)
        while self._crew.now() < until:
            for _, reply in self._crew.wait(until):
                if isinstance(reply, Gone):
                    self._lost = LostError(reply.error, reply.message)
                    raise self._lost
                return reply
        gone = self._crew.kill(0, "hang")
        self._lost = LostError(gone.error, f"no answer within {patience:g} s")
        raise self._lost


@contextmanager
def solo(job: Job, core: int, threads: int = 1) -> Iterator[Solo]:
    """A worker on ``core``, which we keep off meanwhile; it is stopped at the end whatever happens.

    Raises MachineError for a core that does not exist, RunError where the worker cannot start.
    """
    check_cores((), core, may_share=True)
    crew = ProcessCrew(job, [(core,)], threads)
    with pinned(aside(core)):
        try:
            yield _started(crew, core)
        finally:
            crew.stop()


def _started(crew: Crew, core: int) -> Solo:
    try:
        return Solo(crew)
    except LostError as error:
        raise MachineError(
            f"a worker process does not start: {error.message}",
            where=f"core {core}",
            fix="check that the core exists and that memory is left",
        ) from error
