"""A server that is not ours: where it is, what it says of itself, and what it counted while we drove it.

A target is written ``kserve-v2://host:port/model``, with a ``/version`` behind it if one is meant.
"""

from __future__ import annotations

import re

from trimtab.domain.noun import Noun, Ns

SCHEME = "kserve-v2"
FORM = f"write {SCHEME}://host:port/model, or {SCHEME}://host:port/model/version"
_TARGET = re.compile(
    rf"{SCHEME}://(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(?P<port>\d{{1,5}})"
    r"/(?P<model>[A-Za-z0-9._-]+)(?:/(?P<version>\d+))?"
)
_LAST_PORT = 65_535


class Target(Noun, frozen=True, kw_only=True):
    """One model of one server. ``version`` empty = the server chooses."""

    host: str
    port: int
    model: str
    version: str = ""

    @property
    def address(self) -> str:
        """What a gRPC channel is opened to."""
        return f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"{SCHEME}://{self.address}/{self.model}{f'/{self.version}' if self.version else ''}"


def parse_target(text: str) -> Target | None:
    """The target that ``text`` writes; None where it writes none."""
    found = _TARGET.fullmatch(text)
    if found is None or not 0 < int(found["port"]) <= _LAST_PORT:
        return None
    return Target(host=found["host"], port=int(found["port"]), model=found["model"], version=found["version"] or "")


class Server(Noun, frozen=True, kw_only=True):
    """What a server says of itself and of its model. None, or empty: it does not say.

    ``instances``: how many requests (batches) it can run at the same time. ``hold_ms``: the longest that its batcher
    waits for more.
    """

    name: str
    version: str
    extensions: tuple[str, ...] = ()
    platform: str = ""
    instances: int | None = None
    max_batch: int | None = None
    hold_ms: float | None = None


class Counters(Noun, frozen=True, kw_only=True):
    """What a server counted of its model: requests, the executions that ran them, and sums of time over requests.

    ``compute_ns`` holds copying inputs in and outputs out. A server that answers from its cache executes nothing.
    """

    requests: int
    executions: int
    failed: int
    queued: int
    queue_ns: Ns
    computed: int
    compute_ns: Ns

    def since(self, before: Counters) -> Counters | None:
        """What was counted after ``before``; None where a counter went back: the server was started anew."""
        names = self.__struct_fields__
        grown = {name: getattr(self, name) - getattr(before, name) for name in names}
        return None if min(grown.values()) < 0 else Counters(**grown)


class Inside(Noun, frozen=True, kw_only=True):
    """What a server told of one run: its counters over it (None: see ``why``), and how many of the run's requests its
    own trace holds (None: it was not asked for one)."""

    run: str
    server: Server
    counters: Counters | None = None
    why: str = ""
    traced: int | None = None
    notes: tuple[str, ...] = ()
