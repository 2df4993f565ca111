"""Which machines may make one packet together: by what they say of themselves, and by their pace."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from trimtab.domain.envelope import Envelope, Pace
from trimtab.errors import MachineError
from trimtab.loop.trials.pooling import Machine, differences, pooled, unlike

VERSIONS = {"numpy": "2.3", "onnxruntime": "1.23"}
ONE = Envelope(
    host="one", kernel="6.1", cpu_model="EPYC", cpu_flags=("avx2", "sse4"), cores_online=2, cores_allowed=(0, 1),
    microcode="0x1", firmware="v1", governor="performance", power_profile="", virtualisation="kvm", quota_cores=None,
    cgroup="v2 /a", memory_bytes=8_000_000_000, memory_limit_bytes=None, huge_pages="madvise", clock_source="kvm-clock",
    compiler="gcc", python="3.11.2", versions=VERSIONS,
    pace=(Pace(core=1, compute_ns=100_000, stream_ns=200_000, runs=200),),
)  # fmt: skip


def pace(compute_us: float, stream_us: float, core: int = 1) -> tuple[Pace, ...]:
    return (Pace(core=core, compute_ns=round(compute_us * 1e3), stream_ns=round(stream_us * 1e3), runs=200),)


def machine(envelope: Envelope) -> Machine:
    return Machine(f"boot-{envelope.host}", (f"node-{envelope.host}",), envelope)


TWO = replace(ONE, host="two", cgroup="v2 /b", memory_bytes=8_000_100_000, pace=pace(103, 195))


def test_machines_that_differ_in_name_and_a_little_in_pace_are_alike() -> None:
    assert unlike(ONE, TWO) == ()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"cpu_model": "Xeon"}, "cpu model: EPYC against Xeon"),
        ({"cores_allowed": (0, 1, 2)}, "cores allowed: (0, 1) against (0, 1, 2)"),
        ({"quota_cores": 1.5}, "quota cores: nothing against 1.5"),
        ({"governor": "powersave"}, "governor: performance against powersave"),
        ({"kernel": "6.6"}, "kernel: 6.1 against 6.6"),
        ({"cpu_flags": ("avx2", "sse4", "amx")}, "processor flags of one only: amx"),
        ({"memory_bytes": 4_000_000_000}, "memory: 8000000000 against 4000000000"),
        ({"versions": VERSIONS | {"onnxruntime": "1.22"}}, "onnxruntime: 1.23 against 1.22"),
        ({"versions": {"numpy": "2.3"}}, "onnxruntime: 1.23 against nothing"),
        ({"pace": pace(106, 200)}, "compute pace of core 1: 100 against 106 us"),
        ({"pace": pace(100, 180)}, "memory pace of core 1: 200 against 180 us"),
    ],
)
def test_whatever_moves_figures_makes_machines_unlike_both_ways(change: dict[str, object], told: str) -> None:
    other = replace(TWO, **change)
    assert unlike(ONE, other) == (told,)
    assert len(unlike(other, ONE)) == 1


def test_pace_is_no_difference_of_the_machine_itself() -> None:
    assert differences(ONE, replace(ONE, pace=pace(150, 300))) == ()


def test_a_new_packet_is_at_home_among_the_most_that_are_alike() -> None:
    fast = replace(ONE, host="a-fast", pace=pace(50, 100))
    pool = pooled([machine(fast), machine(TWO), machine(ONE)], VERSIONS)
    assert pool.home == machine(ONE)
    assert pool.beside == (machine(TWO),)
    assert pool.refused == {
        "a-fast": ("compute pace of core 1: 100 against 50 us", "memory pace of core 1: 200 against 100 us")
    }


def test_a_packet_that_is_continued_stays_at_home_under_the_envelope_it_has() -> None:
    read_again = replace(TWO, pace=pace(109, 195))
    pool = pooled([machine(ONE), machine(read_again)], VERSIONS, stored=[TWO])
    assert pool.home == machine(TWO), "the stored pace, not the one read again"
    assert pool.beside == (machine(ONE),)


def test_a_machine_that_has_changed_is_not_the_home_any_more() -> None:
    pool = pooled([machine(ONE), machine(replace(TWO, kernel="6.6"))], VERSIONS, stored=[TWO])
    assert pool.home == machine(ONE)
    assert pool.refused == {"two": ("kernel: 6.1 against 6.6",)}


def test_runtimes_must_be_those_of_the_machine_that_gives_the_command() -> None:
    pool = pooled([machine(ONE), machine(TWO)], VERSIONS)
    assert pool.refused == {}
    with pytest.raises(MachineError) as refused:
        pooled([machine(ONE)], VERSIONS | {"onnxruntime": "1.24"})
    assert "one: onnxruntime: 1.24 against 1.23" in refused.value.where


def test_a_cluster_without_cores_says_so() -> None:
    with pytest.raises(MachineError) as refused:
        pooled([], VERSIONS)
    assert "no nodes with cores" in refused.value.where
