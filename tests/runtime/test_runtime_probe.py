"""What the machine says, read from literal texts: cgroup v1 and v2, cpuinfo of three makers, /proc/stat."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from msgspec.structs import replace
from runtime_kit import CORES

from parts import envelope
from trimtab.domain.envelope import Assumptions
from trimtab.domain.noun import NEVER
from trimtab.errors import MachineError
from trimtab.runtime import cgroup
from trimtab.runtime.probe import check, pace_of, parse_cores, parse_cpuinfo, parse_meminfo, parse_selected, probe
from trimtab.runtime.sample import Quotas, Sampler, Ticks, parse_stat, shares

V1_GROUPS = """\
4:memory:/jobs/a
2:cpu,cpuacct:/jobs/a
0::/init.scope
"""
V1_MOUNTS = """\
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""
V2_GROUPS = "0::/user.slice/run-7.scope\n"
V2_MOUNTS = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
CONTAINER_MOUNTS = "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup cgroup rw,cpu\n"


def folders(controller: str, groups: str, mounts: str) -> tuple[int, list[str]]:
    found = cgroup.locate(controller, groups, mounts)
    assert found is not None
    return found.version, [str(f) for f in found.folders]


def test_version_1_is_walked_from_our_group_to_the_mount() -> None:
    base = "/sys/fs/cgroup/cpu,cpuacct"
    assert folders("cpu", V1_GROUPS, V1_MOUNTS) == (1, [f"{base}/jobs/a", f"{base}/jobs", base])


def test_version_2_holds_every_controller() -> None:
    base = "/sys/fs/cgroup"
    expected = (2, [f"{base}/user.slice/run-7.scope", f"{base}/user.slice", base])
    assert folders("memory", V2_GROUPS, V2_MOUNTS) == expected


def test_a_container_sees_its_own_group_as_the_root_of_the_mount() -> None:
    assert folders("cpu", "2:cpu:/docker/abc/x\n", CONTAINER_MOUNTS)[1] == ["/sys/fs/cgroup/x", "/sys/fs/cgroup"]
    assert folders("cpu", "2:cpu:/\n", CONTAINER_MOUNTS)[1] == ["/sys/fs/cgroup"]


def test_no_control_groups_is_none() -> None:
    assert cgroup.locate("cpu", "", "") is None


@pytest.mark.parametrize(("quota", "period", "cores"), [("150000", "100000", 1.5), ("-1", "100000", None)])
def test_quota_of_version_1(quota: str, period: str, cores: float | None) -> None:
    assert cgroup.parse_quota_v1(quota, period) == cores


@pytest.mark.parametrize(("text", "cores"), [("50000 100000\n", 0.5), ("max 100000\n", None)])
def test_quota_of_version_2(text: str, cores: float | None) -> None:
    assert cgroup.parse_quota_v2(text) == cores


@pytest.mark.parametrize(("text", "limit"), [("1073741824\n", 2**30), ("9223372036854771712\n", None), ("max\n", None)])
def test_memory_limit(text: str, limit: int | None) -> None:
    assert cgroup.parse_memory(text) == limit


def test_throttling_of_both_versions_in_ns() -> None:
    assert cgroup.parse_throttle("nr_periods 9\nnr_throttled 3\nthrottled_time 7000\n") == (3, 7000)
    assert cgroup.parse_throttle("usage_usec 5\nnr_periods 9\nnr_throttled 3\nthrottled_usec 7\n") == (3, 7000)
    assert cgroup.parse_throttle("usage_usec 5\n") is None


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def v2_machine(root: Path) -> Path:
    return tree(
        root,
        {
            "proc/self/cgroup": V2_GROUPS,
            "proc/self/mountinfo": V2_MOUNTS,
            "sys/fs/cgroup/user.slice/run-7.scope/cpu.max": "max 100000\n",
            "sys/fs/cgroup/user.slice/cpu.max": "150000 100000\n",
            "sys/fs/cgroup/user.slice/run-7.scope/memory.max": "2147483648\n",
            "sys/fs/cgroup/user.slice/memory.max": "max\n",
            "sys/fs/cgroup/user.slice/run-7.scope/memory.events": "oom 1\noom_kill 2\n",
            "sys/fs/cgroup/user.slice/run-7.scope/cpu.stat": "nr_periods 0\nnr_throttled 0\nthrottled_usec 0\n",
            "sys/fs/cgroup/user.slice/cpu.stat": "nr_periods 9\nnr_throttled 4\nthrottled_usec 5\n",
            "proc/stat": "cpu 10 0 0 90 0 0 0 0 0 0\ncpu0 10 0 0 90 0 0 0 0 0 0\n",
        },
    )


def test_the_tightest_limit_holds_wherever_it_sits(tmp_path: Path) -> None:
    root = v2_machine(tmp_path)
    assert cgroup.quota_cores(root) == 1.5
    assert cgroup.memory_limit(root) == 2**31
    assert cgroup.oom_kills(root) == 2
    assert cgroup.throttle(cgroup.own_group("cpu", root), root) == (4, 5000)


def test_version_1_limits(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        {
            "proc/self/cgroup": V1_GROUPS,
            "proc/self/mountinfo": V1_MOUNTS,
            "sys/fs/cgroup/cpu,cpuacct/jobs/a/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu,cpuacct/jobs/a/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/cpu,cpuacct/jobs/cpu.cfs_quota_us": "50000\n",
            "sys/fs/cgroup/cpu,cpuacct/jobs/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/memory/jobs/a/memory.limit_in_bytes": "1073741824\n",
            "sys/fs/cgroup/memory/jobs/a/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
        },
    )
    assert (cgroup.quota_cores(root), cgroup.memory_limit(root), cgroup.oom_kills(root)) == (0.5, 2**30, 1)


def test_a_machine_without_control_groups_says_nothing(tmp_path: Path) -> None:
    assert cgroup.quota_cores(tmp_path) is None
    assert cgroup.memory_limit(tmp_path) is None
    assert cgroup.oom_kills(tmp_path) is None


INTEL = """\
processor\t: 0
vendor_id\t: GenuineIntel
model name\t: Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz
microcode\t: 0xffffffff
flags\t\t: fpu sse2 avx512f amx_bf16 hypervisor

processor\t: 1
model name\t: another
"""
AMD = "processor\t: 0\nmodel name\t: AMD EPYC 9B14\nmicrocode\t: 0xa101148\nflags\t\t: fpu avx2\n"
ARM = """\
processor\t: 0
BogoMIPS\t: 243.75
Features\t: fp asimd bf16
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x3
CPU part\t: 0xd0c
"""


@pytest.mark.parametrize(
    ("text", "model", "flags", "microcode"),
    [
        (INTEL, "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", "fpu sse2 avx512f amx_bf16 hypervisor", "0xffffffff"),
        (AMD, "AMD EPYC 9B14", "fpu avx2", "0xa101148"),
        (ARM, "CPU implementer 0x41 CPU part 0xd0c CPU variant 0x3", "fp asimd bf16", ""),
        ("", "", "", ""),
    ],
    ids=["intel", "amd", "arm", "empty"],
)
def test_cpuinfo(text: str, model: str, flags: str, microcode: str) -> None:
    assert parse_cpuinfo(text) == {"model": model, "flags": flags, "microcode": microcode}


def test_small_texts() -> None:
    assert parse_meminfo("MemFree: 1 kB\nMemTotal:       24684092 kB\n") == 24684092 * 1024
    assert parse_selected("always [madvise] never\n") == "madvise"
    assert parse_selected("tsc\n") == "tsc"
    assert parse_cores("0-3,8\n") == 5
    assert parse_cores("0\n") == 1
    assert parse_cores("") == 0


def test_stat_is_cut_into_busy_and_stolen_shares() -> None:
    before = parse_stat("cpu  10 0 10 70 5 0 0 5 0 0\ncpu1 10 0 10 70 5 0 0 5 0 0\nintr 9\n")
    after = parse_stat("cpu  30 5 15 110 15 2 3 20 7 0\ncpu1 30 5 15 110 15 2 3 20 7 0\n")
    assert before == {-1: Ticks(20, 5, 100), 1: Ticks(20, 5, 100)}
    assert shares(before[1], after[1]) == (0.35, 0.15)
    assert all(math.isnan(share) for share in shares(before[1], before[1]))


def test_the_sampler_counts_throttling_from_its_own_start(tmp_path: Path) -> None:
    root = v2_machine(tmp_path)
    sampler = Sampler([0], list, root)
    tree(
        root,
        {
            "sys/fs/cgroup/user.slice/cpu.stat": "nr_periods 12\nnr_throttled 6\nthrottled_usec 9\n",
            "proc/stat": "cpu 60 0 0 140 0 0 0 0 0 0\ncpu0 60 0 0 140 0 0 0 0 0 0\n",
        },
    )
    machine, core = sampler.read()
    assert (machine.core, machine.busy, machine.throttled, machine.throttled_ns) == (-1, 0.5, 2, 4000)
    assert (core.core, core.busy, core.throttled) == (0, 0.5, -1)
    assert math.isnan(core.mhz)
    assert math.isnan(machine.celsius)


ENVELOPE = envelope(
    cpu_flags=("avx2",), virtualisation="kvm", cgroup="v1 /x", memory_bytes=4 * 2**30 - 2**28,
    versions={"openvino": "2026.0"},
)  # fmt: skip


@pytest.mark.parametrize(
    ("assumptions", "probed", "status"),
    [
        (Assumptions(cores=(0, 1), driver_core=0), "0,1", "agrees"),
        (Assumptions(cores=(0,), driver_core=7), "0,1", "differs"),
        (Assumptions(memory_gib=4), "3.8", "agrees"),
        (Assumptions(memory_gib=8), "3.8", "differs"),
        (Assumptions(quota_cores=2), "2 (no quota)", "agrees"),
        (Assumptions(quota_cores=1.5), "2 (no quota)", "differs"),
        (Assumptions(governor="performance"), "", "unknown"),
        (Assumptions(virtual=True), "kvm", "agrees"),
        (Assumptions(virtual=False), "kvm", "differs"),
        (Assumptions(cpu_flags=("avx2",)), "all present", "agrees"),
        (Assumptions(cpu_flags=("avx2", "amx_bf16")), "missing: amx_bf16", "differs"),
        (Assumptions(versions={"openvino": "2026.0"}), "2026.0", "agrees"),
        (Assumptions(versions={"openvino": "2025.4"}), "2026.0", "differs"),
        (Assumptions(versions={"onnxruntime": "1.22"}), "", "unknown"),
    ],
)
def test_an_assumption_against_the_probe(assumptions: Assumptions, probed: str, status: str) -> None:
    (judged,) = check(assumptions, ENVELOPE)
    assert (judged.probed, judged.status) == (probed, status)


def test_what_is_not_assumed_is_not_checked() -> None:
    assert check(Assumptions(), ENVELOPE) == ()


def test_where_nothing_can_be_read_the_answer_is_unknown() -> None:
    blind = replace(ENVELOPE, cpu_flags=(), cgroup="", memory_bytes=0, virtualisation="")
    wanted = Assumptions(memory_gib=1, quota_cores=1, virtual=True, cpu_flags=("avx2",))
    assert [c.status for c in check(wanted, blind)] == ["unknown"] * 4


def test_an_empty_machine_says_nothing_of_itself(tmp_path: Path) -> None:
    envelope = probe(root=tmp_path)
    assert (envelope.cpu_model, envelope.governor, envelope.firmware, envelope.cgroup) == ("", "", "", "")
    assert (envelope.memory_bytes, envelope.quota_cores) == (0, None)


def test_this_machine_can_be_probed() -> None:
    envelope = probe((CORES[-1],), versions={"openvino": "x"})
    assert envelope.cores_allowed == CORES
    assert envelope.memory_bytes > 2**28
    assert envelope.versions["openvino"] == "x"
    (pace,) = envelope.pace
    assert (pace.core, pace.runs) == (CORES[-1], 200)
    assert pace.compute_ns > 1000
    assert pace.stream_ns > 1000


def test_the_pace_of_a_core_that_does_not_exist_is_refused() -> None:
    with pytest.raises(MachineError, match="core 4095 does not exist"):
        pace_of(4095)


def test_a_quota_on_a_workers_own_group_is_seen_from_outside(tmp_path: Path) -> None:
    group = "sys/fs/cgroup/cpu/limited"
    root = tree(
        tmp_path,
        {
            "proc/self/cgroup": "1:cpu:/\n",
            "proc/self/mountinfo": "30 1 0:25 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
            "proc/77/cgroup": "1:cpu:/limited\n",
            f"{group}/cpu.cfs_quota_us": "40000\n",
            f"{group}/cpu.cfs_period_us": "100000\n",
            f"{group}/cpu.stat": "nr_periods 9\nnr_throttled 4\nthrottled_time 500\n",
        },
    )
    workers: list[int] = []
    quotas = Quotas(lambda: workers, root)
    assert quotas.read() == (NEVER, NEVER)  # nobody has a quota yet
    workers.append(77)
    assert quotas.read() == (0, 0)  # counted from here on
    (root / group / "cpu.stat").write_text("nr_periods 12\nnr_throttled 6\nthrottled_time 900\n")
    assert quotas.read() == (2, 400)
