"""Which machines make one packet: its home, and those that nothing tells apart from it but their name.

Rule. Two machines are alike if they say the same of processor, cores, memory, limits, firmware, kernel and its
settings, Python and the versions of the runtimes, and if the reference pace of each core in use lies within 5 % of the
other's. Virtual machines of one kind differ by more than that where their hosts are loaded differently, and no field
shows it: hence the pace. Each machine is held against the home one, so two of them differ by 10 % at most.

A profile promises times to replays, and replays under a condition stand beside those without: both come from machines
that are alike, or are not made at all. The runs of one comparison come from ONE machine (``board``), however alike.

The home of a packet that is continued is the machine that began it. Its stored envelope stays: read again, the pace
would be another number, and every finished run would seem to come from elsewhere. A new packet is at home in the
largest group of machines that are alike; of its members the first by name.

Limits: memory is compared to 1 %, because firmware keeps a little of it for itself; what no field and no pace shows
(a neighbour that comes later) is for the samples and the pace of each run to show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from trimtab.domain.envelope import Envelope
from trimtab.errors import MachineError

PACE_TOLERANCE = 0.05
MEMORY_TOLERANCE = 0.01
SAME = (
    "cpu_model", "cores_online", "cores_allowed", "microcode", "firmware", "governor", "power_profile",
    "virtualisation", "quota_cores", "memory_limit_bytes", "huge_pages", "clock_source", "kernel", "compiler", "python",
)  # fmt: skip


class Machine(NamedTuple):
    """A machine and the nodes of the cluster that run on it. ``id`` is the kernel's own: two nodes with one id share
    their cores."""

    id: str
    nodes: tuple[str, ...]
    envelope: Envelope


class Pool(NamedTuple):
    """``refused``: why the others make nothing, by name."""

    home: Machine
    beside: tuple[Machine, ...]
    refused: dict[str, tuple[str, ...]]

    @property
    def machines(self) -> tuple[Machine, ...]:
        return (self.home, *self.beside)


def unlike(one: Envelope, other: Envelope) -> tuple[str, ...]:
    """What tells two machines apart, so that their results must not stand in one packet; empty: they are alike."""
    return (*differences(one, other), *_paces(one, other))


def differences(one: Envelope, other: Envelope) -> tuple[str, ...]:
    """The same without the pace, which is not the same twice on one machine either."""
    return tuple(_differences(one, other))


def pooled(
    found: Sequence[Machine],
    versions: dict[str, str],
    stored: Sequence[Envelope] = (),
    refused: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> Pool:
    """The pool that ``found`` make. ``versions`` are those of the machine that gives the command, which every run
    names; ``stored``: the machines of a packet that is continued, its home first; ``refused``: what could not even be
    looked at. MachineError where none is left."""
    other = {m.envelope.host: why for m in found if (why := _other_versions(versions, m.envelope.versions))}
    left_out = {**refused, **other}
    usable = [_as_stored(m, stored) for m in found if m.envelope.host not in left_out]
    if not usable:
        reasons = "; ".join(f"{host}: {', '.join(why)}" for host, why in left_out.items())
        raise MachineError(
            "no machine of the cluster can make trials of this study",
            where=f"--executor ray: {reasons or 'it has no nodes with cores'}",
            fix="install the same versions of trimtab's runtimes on every node",
        )
    home = _home(usable, stored)
    apart = [(m, unlike(home.envelope, m.envelope)) for m in usable if m is not home]
    left_out |= {m.envelope.host: why for m, why in apart if why}
    return Pool(home, tuple(m for m, why in apart if not why), left_out)


def _home(usable: Sequence[Machine], stored: Sequence[Envelope]) -> Machine:
    if stored and (began := next((m for m in usable if m.envelope == stored[0]), None)):
        return began
    sizes = {m.id: sum(not unlike(m.envelope, other.envelope) for other in usable) for m in usable}
    return min(usable, key=lambda m: (-sizes[m.id], m.envelope.host, m.id))


def _as_stored(machine: Machine, stored: Sequence[Envelope]) -> Machine:
    """With the envelope under which it is known in the packet, if it still is that machine."""
    now = machine.envelope
    known = (then for then in stored if then.host == now.host and not differences(then, now))
    return machine._replace(envelope=next(known, now))


def _differences(one: Envelope, other: Envelope) -> Iterator[str]:
    for name in SAME:
        yield from _told(name.replace("_", " "), getattr(one, name), getattr(other, name))
    flags = sorted(set(one.cpu_flags) ^ set(other.cpu_flags))
    if flags:
        yield f"processor flags of one only: {', '.join(flags[:5])}"
    if abs(one.memory_bytes - other.memory_bytes) > MEMORY_TOLERANCE * max(one.memory_bytes, other.memory_bytes):
        yield from _told("memory", one.memory_bytes, other.memory_bytes)
    yield from _other_versions(one.versions, other.versions)


def _other_versions(one: dict[str, str], other: dict[str, str]) -> tuple[str, ...]:
    return tuple(
        text for name in sorted({*one, *other}) for text in _told(name, one.get(name, ""), other.get(name, ""))
    )


def _paces(one: Envelope, other: Envelope) -> Iterator[str]:
    known = {pace.core: pace for pace in one.pace}
    for pace in other.pace:
        if pace.core not in known:
            continue
        home = known[pace.core]
        for kind, a, b in (
            ("compute", home.compute_ns, pace.compute_ns),
            ("memory", home.stream_ns, pace.stream_ns),
        ):
            if max(a, b) > (1 + PACE_TOLERANCE) * min(a, b):
                yield f"{kind} pace of core {pace.core}: {a / 1e3:.0f} against {b / 1e3:.0f} us"


def _told(name: str, one: object, other: object) -> Iterator[str]:
    if one != other:
        yield f"{name}: {_known(one)} against {_known(other)}"


def _known(value: object) -> str:
    return "nothing" if value is None or value == "" else str(value)
