"""The operating Envelope: what the plan assumes of the machine, what was probed, and whether they agree (R5, R16)."""

from __future__ import annotations

from typing import Literal

from trimtab.domain.noun import Noun, Ns


class Assumptions(Noun, frozen=True, kw_only=True):
    """What the study declares. None = not assumed, so not checked. ``cores`` lists those we may use, ``driver_core``
    the one that the load generator keeps for itself (None: the last of ``cores``)."""

    cores: tuple[int, ...] = ()
    driver_core: int | None = None
    memory_gib: float | None = None
    quota_cores: float | None = None
    governor: str | None = None
    power_profile: str | None = None
    virtual: bool | None = None
    cpu_flags: tuple[str, ...] = ()
    versions: dict[str, str] = {}

    @property
    def worker_cores(self) -> tuple[int, ...]:
        """The cores that are left beside the driver's."""
        driver = self.cores[-1] if self.driver_core is None and self.cores else self.driver_core
        return tuple(core for core in self.cores if core != driver)


class Pace(Noun, frozen=True, kw_only=True):
    """Reference speed of the pace kernel on one core: p10 of the quiet runs, ns. Compute and stream stay apart."""

    core: int
    compute_ns: Ns
    stream_ns: Ns
    runs: int


class Envelope(Noun, frozen=True, kw_only=True):
    """What the machine said of itself. An empty string or None means: it does not say."""

    host: str
    kernel: str
    cpu_model: str
    cpu_flags: tuple[str, ...]
    cores_online: int
    cores_allowed: tuple[int, ...]
    microcode: str
    firmware: str
    governor: str
    power_profile: str
    virtualisation: str
    quota_cores: float | None
    cgroup: str
    memory_bytes: int
    memory_limit_bytes: int | None
    huge_pages: str
    clock_source: str
    compiler: str
    python: str
    versions: dict[str, str]
    pace: tuple[Pace, ...] = ()


def memory_limit(assumed: Assumptions, envelope: Envelope) -> int | None:
    """The memory that all workers may take, bytes: the least of what is assumed, what the control group allows and what
    the machine has; None where nothing of it is known."""
    declared = None if assumed.memory_gib is None else round(assumed.memory_gib * 2**30)
    return min(filter(None, (declared, envelope.memory_limit_bytes, envelope.memory_bytes)), default=None)


class EnvelopeCheck(Noun, frozen=True, kw_only=True):
    """One assumption against the probe; ``unknown`` is never a pass."""

    name: str
    assumed: str
    probed: str
    status: Literal["agrees", "differs", "unknown"]
