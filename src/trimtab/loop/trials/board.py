"""The board: which trial runs on which node, and what happens when a node is lost. No clock, no Ray.

Rules. A node makes one trial at a time, and so does a machine, however many nodes run on it: a neighbour moves a tail
through caches and memory even where it keeps off the cores. The trials of a group are made in order by one machine. A
trial whose node is lost is made again: on another node of that machine, and if there is none, the whole group starts
again on another machine, because what it holds so far must not be compared with what another machine makes. A group
that is bound to its machine by what an earlier run made cannot move. After ``ATTEMPTS`` losses a group is given up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from trimtab.errors import RunError

ATTEMPTS = 3


class Place(NamedTuple):
    """A node of the cluster, the machine that it runs on, and the digest of that machine's envelope."""

    node: str
    machine: str
    envelope: str


class Start(NamedTuple):
    """Trial ``trial`` of group ``group`` begins at ``place``."""

    group: int
    trial: int
    place: Place


@dataclass
class _Group:
    size: int
    envelope: str  # the only machine that may make it; empty: none has begun
    bound: bool  # it was so from the beginning
    next: int = 0
    running: bool = False
    losses: int = 0


class Board:
    """``groups``: the number of trials of each, and the envelope that it is bound to (empty: none)."""

    def __init__(self, groups: Sequence[tuple[int, str]], places: Sequence[Place]) -> None:
        self._groups = [_Group(size, envelope, bool(envelope)) for size, envelope in groups]
        self._places = list(places)
        self._running: dict[str, Start] = {}
        for group in self._groups:
            self._require_machine(group, "")

    @property
    def finished(self) -> bool:
        return all(group.next >= group.size for group in self._groups)

    def start(self) -> Start | None:
        """The next trial that can begin now."""
        busy = {start.place.machine for start in self._running.values()}
        free = [place for place in self._places if place.machine not in busy]
        for number, group in enumerate(self._groups):
            if group.running or group.next >= group.size:
                continue
            place = next((place for place in free if group.envelope in ("", place.envelope)), None)
            if place is not None:
                group.running, group.envelope = True, place.envelope
                self._running[place.node] = Start(number, group.next, place)
                return self._running[place.node]
        return None

    def ended(self, node: str) -> None:
        """The trial at ``node`` is made."""
        group = self._groups[self._running.pop(node).group]
        group.running = False
        group.next += 1

    def failed(self, node: str, why: str) -> None:
        """The trial at ``node`` broke off; the node is there. RunError after ``ATTEMPTS`` losses."""
        self._lose(self._running.pop(node), why)

    def lost(self, node: str, why: str) -> None:
        """``node`` is gone. RunError after ``ATTEMPTS`` losses, or where no machine is left that may go on."""
        self._places = [place for place in self._places if place.node != node]
        if node in self._running:
            self._lose(self._running.pop(node), why)
        for group in self._groups:
            self._require_machine(group, why)

    def _lose(self, start: Start, why: str) -> None:
        group = self._groups[start.group]
        group.running = False
        group.losses += 1
        if group.losses >= ATTEMPTS:
            raise RunError(
                f"a trial broke off {group.losses} times; the last time: {why}",
                where=f"node {start.place.node}",
                fix="see to that machine; what is finished is kept, so run the same command again",
            )

    def _require_machine(self, group: _Group, why: str) -> None:
        """Some place may make the rest of the group; one that may move and has none starts again elsewhere."""
        if group.next >= group.size or any(group.envelope in ("", place.envelope) for place in self._places):
            return
        if group.bound or not self._places:
            raise RunError(
                f"the machine that must go on is gone: {why or 'no node of it is left'}",
                where="--executor ray",
                fix="start it again; what is finished is kept, so run the same command again",
            )
        group.next, group.envelope = 0, ""
