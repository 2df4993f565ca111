"""The workers' processes from start to end: greeting, admission, death, replacement.

A fresh process says Hello, loads the payloads, runs the pace kernel once (that only makes it warm), and then waits to
be admitted: the machine learns that it is up, orders its entries compiled, and gives it traffic once they are ready.
A process that ends, or whose answer is overdue, is reported down; the machine asks for a replacement. A worker that
dies several times without finishing one batch is given up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trimtab.domain.events import Event, WorkerDown, WorkerUp
from trimtab.domain.noun import NEVER, Ns
from trimtab.errors import RunError
from trimtab.runtime import wire
from trimtab.runtime.link import Crew, Gone
from trimtab.runtime.spare import Spare

DEATHS = 3
"""How often in a row a worker may die without finishing one batch before it is given up."""


class Station:
    """What is known of one worker's process.

    ``alive``: it exists. ``greeted``: it holds its payloads and waits to be admitted. ``up``: the machine knows it.
    ``pacing``: it runs the pace kernel. ``deaths``: how often it ended since it last finished a batch. ``awaited``
    counts orders that are not answered yet; ``deadline`` is when the next answer is overdue. Neither speaks of
    what is compiled beside it (:mod:`.spare`).
    """

    __slots__ = ("alive", "awaited", "deadline", "deaths", "greeted", "last_words", "pacing", "up")

    def __init__(self) -> None:
        self.deaths = 0
        self.last_words = ""
        self.reset()

    def reset(self) -> None:
        """Forget the process."""
        self.alive = self.greeted = self.up = self.pacing = False
        self.awaited = 0
        self.deadline: Ns = NEVER


class Roster:
    """All workers of one run. ``apply`` takes an event to the machine, ``clock`` is the run's own."""

    def __init__(
        self,
        crew: Crew,
        workers: int,
        members: Sequence[wire.Member],
        prepare_ns: Ns,
        apply: Callable[[Event], None],
        clock: Callable[[], Ns],
    ) -> None:
        self.crew = crew
        self.stations = [Station() for _ in range(workers)]
        self.notes: dict[str, None] = {}
        self._load = wire.Load(tuple(dict.fromkeys(members)))
        self._prepare_ns = prepare_ns
        self.spare = Spare(crew, prepare_ns)
        self._apply, self._clock = apply, clock

    @property
    def quiet(self) -> bool:
        """Nobody owes an answer."""
        return self.spare.worker is None and not any(station.awaited for station in self.stations)

    @property
    def deadlines(self) -> list[Ns]:
        """When answers that are awaited become overdue."""
        found = [self.spare.deadline, *(station.deadline for station in self.stations)]
        return [deadline for deadline in found if deadline != NEVER]

    @property
    def pacing(self) -> bool:
        return any(station.pacing for station in self.stations)

    @property
    def up(self) -> list[int]:
        return [worker for worker, station in enumerate(self.stations) if station.up]

    @property
    def deserted(self) -> str:
        """How the last worker went, if none is left; else nothing."""
        if any(station.alive for station in self.stations):
            return ""
        return next(station.last_words for station in reversed(self.stations) if station.last_words)

    def settled(self, worker: int) -> bool:
        """Up, and every answer has come."""
        station = self.stations[worker]
        return station.up and not station.awaited

    def remark(self, sentence: str) -> None:
        """Keep a sentence for the record of the run, once."""
        self.notes[sentence] = None

    def send(self, worker: int, order: wire.Order, patience: Ns) -> None:
        """Give an order whose answer must come within ``patience`` (of the answer before it, where there is one)."""
        self.crew.send(worker, order)
        station = self.stations[worker]
        station.awaited += 1
        station.deadline = max(station.deadline, self.crew.now() + patience)

    def answered(self, worker: int) -> Station:
        """One answer came; if more are awaited, the next is due after the time for a preparation."""
        station = self.stations[worker]
        station.awaited -= 1
        station.deadline = self.crew.now() + self._prepare_ns if station.awaited else NEVER
        return station

    def start(self, worker: int) -> None:
        """Start a process, unless the worker has been given up."""
        station = self.stations[worker]
        if station.deaths >= DEATHS:
            return
        self.crew.start(worker)
        station.alive = True
        station.awaited = 1
        station.deadline = self.crew.now() + self._prepare_ns

    def admit(self, worker: int) -> None:
        """Tell the machine."""
        self.stations[worker].up = True
        self._apply(WorkerUp(self._clock(), worker))

    def admit_waiting(self) -> None:
        """Admit every worker that is ready for it: one that fell while others were still starting."""
        for worker, station in enumerate(self.stations):
            if station.greeted and not station.up:
                self.admit(worker)

    def require(self, worker: int) -> None:
        """Raise RunError if the worker has been given up."""
        station = self.stations[worker]
        if not station.alive:
            raise RunError(
                f"worker {worker} cannot get ready to serve: {station.last_words}",
                where=f"worker {worker}, tried {station.deaths} times",
                fix="compile the plan alone (trimtab compile) to see which entry fails",
            )

    def bury_overdue(self) -> None:
        """Kill every worker whose answer is overdue."""
        now = self.crew.now()
        late = [worker for worker, station in enumerate(self.stations) if NEVER != station.deadline <= now]
        if (beside := self.spare.overdue(now)) is not None and beside not in late:
            late.append(beside)
        for worker in late:
            self.gone(worker, self.crew.kill(worker, "hang"))

    # --- replies ------------------------------------------------------------------------------------------------

    def hello(self, worker: int, reply: wire.Hello) -> None:
        self.answered(worker)
        for counter, reason in reply.unread.items():
            self.remark(f"not readable here: {counter} ({reason})")
        self.send(worker, self._load, self._prepare_ns)

    def loaded(self, worker: int, _: wire.Loaded) -> None:
        self.answered(worker)
        self.send(worker, wire.RunPace(1), self._prepare_ns)

    def broken(self, worker: int, reply: wire.Broken) -> None:
        """It would break again: the end that follows is final."""
        station = self.stations[worker]
        station.deaths = DEATHS
        station.last_words = f"its backend does not start: {reply.message}"

    def gone(self, worker: int, reply: Gone) -> None:
        """Tell the machine that a worker went down; whether it is replaced is the machine's word."""
        station = self.stations[worker]
        station.reset()
        self.spare.lost(worker)
        if station.deaths < DEATHS:
            station.last_words = reply.message
        station.deaths += 1
        self.remark(f"worker {worker}: {station.last_words}")
        self._apply(WorkerDown(self._clock(), worker, reply.error))
