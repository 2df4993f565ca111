"""Trials on the machines of a Ray cluster: Ray places the nodes and carries messages, and measures nothing.

One actor stands on each node for the whole run and holds all of its CPUs as Ray counts them, so no other work of the
cluster comes between two runs of a comparison. Which trial runs where is the board's to say, which machines make trials
at all is the pool's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from threading import Event
from typing import Any, NamedTuple

from msgspec.structs import replace

from trimtab.domain.envelope import Envelope
from trimtab.domain.ports import ModelFile, Progress
from trimtab.domain.study import Study
from trimtab.errors import UsageError
from trimtab.loop.trials import crossing
from trimtab.loop.trials.board import Board, Place, Start
from trimtab.loop.trials.executor import Group, Material, Watch
from trimtab.loop.trials.laying import files_of, relocated
from trimtab.loop.trials.pooling import Pool
from trimtab.loop.trials.ray_node import BOOT_ID
from trimtab.loop.trials.trial import Replay, Trial
from trimtab.runtime.affinity import pinned
from trimtab.runtime.undisturbed import ctrl_c
from trimtab.store.codec import digest

BAR = "machines"
WAKE_S = 0.5
"""How long Ctrl-C may go unseen."""


class RayExecutor:
    """``ray``: the module, joined to a cluster; ``nodes``: the actor on each node of the pool, by the node's id."""

    def __init__(
        self, ray: Any, nodes: dict[str, Any], pool: Pool, told: Sequence[str], driver_core: int, progress: Progress
    ) -> None:
        self.ray, self.nodes, self.driver_core, self._progress = ray, nodes, driver_core, progress
        self._pool, self._told = pool, tuple(told)
        self._envelopes = {digest(machine.envelope): machine.envelope for machine in pool.machines}
        self._laid: dict[str, tuple[Study, ModelFile]] = {}
        self._files: dict[str, Any] = {}

    def identity(self) -> object:
        home = self._pool.home.envelope
        return ("ray", home.host, home.kernel, home.cpu_model)

    def probe(self, cores: tuple[int, ...], runtimes: tuple[str, ...]) -> Envelope:
        return self._pool.home.envelope  # it was read when the nodes were leased, with this study's cores and runtimes

    def lends(self, envelope: str) -> bool:
        return envelope in self._envelopes

    def bars_controllers(self) -> str:
        return "under Ray a plan is not changed while it serves; leave --executor out for adapted replays"

    def told(self) -> tuple[str, ...]:
        return self._told

    def perform(self, material: Material, groups: Sequence[Group], watch: Watch) -> None:
        for trial in (trial for group in groups for trial in group.trials):
            if watch.controller(trial) is not None:
                raise UsageError(self.bars_controllers(), where=trial.note)
        if groups:
            with self._off_the_workers(), ctrl_c() as pressed:
                _Show(self, material, groups, watch).run(pressed)

    # --- nodes --------------------------------------------------------------------------------------------------

    def places(self) -> list[Place]:
        """Every node that is there, the home machine's first."""
        return [
            Place(node, machine.id, digest(machine.envelope))
            for machine in self._pool.machines
            for node in machine.nodes
            if node in self.nodes
        ]

    def envelope(self, sha256: str) -> Envelope:
        return self._envelopes[sha256]

    def tell(self, what: str) -> None:
        """Show what happened to the machines."""
        self._progress.step(BAR, 0, None, what)

    def drop(self, node: str) -> None:
        """``node`` is gone."""
        self.nodes.pop(node, None)
        self._laid.pop(node, None)

    def laid(self, node: str, material: Material) -> tuple[Study, ModelFile]:
        """Study and network as they lie on ``node``; what is not there yet is sent."""
        if node not in self._laid:
            paths = {}
            for name, file in files_of(material).items():
                if file.sha256 not in self._files:
                    self._files[file.sha256] = self.ray.put(file.path.read_bytes())
                data = self._files[file.sha256]
                paths[name] = self.ray.get(self.nodes[node].lay.remote(file.sha256, file.path.name, data))
            folder = self.ray.get(self.nodes[node].folder.remote())
            self._laid[node] = relocated(material, paths, f"{folder}/networks")
        return self._laid[node]

    @contextlib.contextmanager
    def _off_the_workers(self) -> Iterator[None]:
        """Where trials are made on this machine too, this process keeps to the driver's core."""
        here = BOOT_ID.read_text().strip()
        if any(place.machine == here for place in self.places()):
            with pinned({self.driver_core}):
                yield
        else:
            yield


class _Running(NamedTuple):
    start: Start
    trial: Trial
    envelope: Envelope


class _Show:
    """One call of ``perform``: what runs where, and who is asked next."""

    def __init__(self, cluster: RayExecutor, material: Material, groups: Sequence[Group], watch: Watch) -> None:
        self._cluster, self._material, self._groups, self._watch = cluster, material, groups, watch
        self._board = Board([(len(group.trials), group.envelope) for group in groups], cluster.places())
        self._running: dict[str, _Running] = {}
        self._asked: dict[Any, str] = {}  # a reference to an answer -> the node that owes it

    def run(self, pressed: Event) -> None:
        """Until every trial is made, or Ctrl-C: then what runs ends in good order, and KeyboardInterrupt follows."""
        interrupted = False
        try:
            while not self._board.finished:
                if not pressed.is_set():
                    self._begin_all()
                elif not interrupted:
                    interrupted = True
                    self._interrupt()
                if interrupted and not self._asked:
                    raise KeyboardInterrupt
                for node, said in self._heard():
                    self._take(node, said)
        finally:
            for node in self._running:
                self._cluster.nodes[node].stop.remote()

    def _begin_all(self) -> None:
        while (start := self._board.start()) is not None:
            envelope = self._cluster.envelope(start.place.envelope)
            trial = _placed(self._groups[start.group].trials[start.trial], start.place.envelope)
            self._running[start.place.node] = _Running(start, trial, envelope)
            self._watch.began(trial, envelope)
            with self._losing(start.place.node):
                study, model = self._cluster.laid(start.place.node, self._material)
                order = crossing.encode(crossing.Job(study, model, trial))
                node = self._cluster.nodes[start.place.node]
                self._asked[node.begin.remote(order, self._cluster.driver_core)] = start.place.node

    def _interrupt(self) -> None:
        for node in self._running:
            self._cluster.nodes[node].interrupt.remote()

    def _heard(self) -> Iterator[tuple[str, crossing.Said]]:
        """What nodes say, and the next question to each whose trial goes on."""
        ready, _ = self._cluster.ray.wait(list(self._asked), num_returns=1, timeout=WAKE_S)
        for answer in ready:
            node = self._asked.pop(answer)
            messages: list[bytes] = []
            with self._losing(node):
                messages = self._cluster.ray.get(answer)
            for message in messages:
                if node in self._running:
                    yield node, crossing.decode_said(message)
            if node in self._running:
                self._asked[self._cluster.nodes[node].poll.remote()] = node

    def _take(self, node: str, said: crossing.Said) -> None:
        running = self._running[node]
        host = running.envelope.host
        match said:
            case crossing.Step():
                self._watch.progress(running.trial).step(said.stage, said.done, said.total, f"{said.note} on {host}")
            case crossing.Rows():
                self._watch.rows(running.trial, said.table, [tuple(row) for row in said.rows])
            case crossing.Ended():
                del self._running[node]
                self._board.ended(node)
                self._watch.made(running.trial, said.result, running.envelope)
            case crossing.Stopped():
                raise KeyboardInterrupt
            case crossing.Fault():
                raise crossing.raised(said, host)
            case crossing.Lost():
                del self._running[node]
                self._again(running, said.why)
                self._board.failed(node, said.why)
            case crossing.Seen():
                raise AssertionError("a trial does not look")

    @contextlib.contextmanager
    def _losing(self, node: str) -> Iterator[None]:
        """A node that is gone leaves the cluster, and what ran on it runs again."""
        try:
            yield
        except self._cluster.ray.exceptions.RayActorError as error:
            why = f"node {node[:8]} is gone: {str(error).splitlines()[0]}"
            running = self._running.pop(node)
            self._cluster.drop(node)
            self._again(running, why)
            self._board.lost(node, why)

    def _again(self, running: _Running, why: str) -> None:
        self._cluster.tell(f"{running.trial.note} is made again: {why}")


def _placed(trial: Trial, envelope: str) -> Trial:
    """The trial, with the machine that makes it."""
    if isinstance(trial, Replay):
        return replace(trial, run=replace(trial.run, envelope_sha256=envelope))
    return trial
