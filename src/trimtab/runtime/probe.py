"""Probe: what this machine says of itself, and whether it is what the study assumes (R4, R5).

The parsers are pure and take the texts of the files; :func:`probe` reads the files. What cannot be read is an empty
string or None, never a guess. An assumption that the probe cannot judge is ``unknown``, which is not a pass.
"""

from __future__ import annotations

import os
import platform
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from trimtab.domain.envelope import Assumptions, Envelope, EnvelopeCheck, Pace
from trimtab.runtime import wire
from trimtab.runtime.cgroup import memory_limit, own_group, quota_cores
from trimtab.runtime.pace import REFERENCE_RUNS, reference
from trimtab.runtime.solo import solo
from trimtab.runtime.vacant import VACANT

ROOT = Path("/")
HALF_GIB = 2**29

# --- pure ---------------------------------------------------------------------------------------------------


def parse_cpuinfo(text: str) -> dict[str, str]:
    """The first processor of /proc/cpuinfo as ``model``, ``flags`` and ``microcode`` (x86 and ARM word them apart)."""
    fields: dict[str, str] = {}
    for line in text.split("\n\n", 1)[0].splitlines():
        key, _, value = line.partition(":")
        fields[key.strip()] = value.strip()
    arm = " ".join(f"{key} {fields[key]}" for key in ("CPU implementer", "CPU part", "CPU variant") if key in fields)
    return {
        "model": fields.get("model name") or fields.get("Model") or arm,
        "flags": fields.get("flags") or fields.get("Features", ""),
        "microcode": fields.get("microcode", ""),
    }


def parse_meminfo(text: str) -> int:
    """MemTotal of /proc/meminfo, bytes; 0 if it is not there."""
    for line in text.splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    return 0


def parse_selected(text: str) -> str:
    """The word in brackets: ``always [madvise] never`` -> ``madvise``; the whole text where there are none."""
    before, bracket, after = text.partition("[")
    return after.partition("]")[0] if bracket else before.strip()


def parse_cores(text: str) -> int:
    """How many cores a list such as ``0-3,8`` names."""
    spans = (part.partition("-") for part in text.strip().split(",") if part)
    return sum(int(hi or lo) - int(lo) + 1 for lo, _, hi in spans)


def check(assumptions: Assumptions, envelope: Envelope) -> tuple[EnvelopeCheck, ...]:
    """Each assumption that the study makes, against the probe, in the order of its fields."""
    made = (
        _check_cores(assumptions, envelope),
        _check_memory(assumptions, envelope),
        _check_quota(assumptions, envelope),
        _check_text("governor", assumptions.governor, envelope.governor),
        _check_text("power_profile", assumptions.power_profile, envelope.power_profile),
        _check_virtual(assumptions, envelope),
        _check_flags(assumptions, envelope),
        *(_check_text(f"versions.{k}", v, envelope.versions.get(k, "")) for k, v in assumptions.versions.items()),
    )
    return tuple(c for c in made if c is not None)


def _judged(name: str, assumed: str, probed: str, agrees: bool | None) -> EnvelopeCheck:
    """A check; ``agrees`` None = the probe does not know."""
    told: Literal["agrees", "differs"] = "agrees" if agrees else "differs"
    return EnvelopeCheck(name=name, assumed=assumed, probed=probed, status="unknown" if agrees is None else told)


def _check_cores(a: Assumptions, e: Envelope) -> EnvelopeCheck | None:
    wanted = sorted({*a.cores, *(() if a.driver_core is None else (a.driver_core,))})
    if not wanted:
        return None
    return _judged("cores", _list(wanted), _list(e.cores_allowed), set(wanted) <= set(e.cores_allowed))


def _check_memory(a: Assumptions, e: Envelope) -> EnvelopeCheck | None:
    """At least the assumed memory is there, to half a GiB: firmware and kernel keep some of what was installed."""
    if a.memory_gib is None:
        return None
    have = min(filter(None, (e.memory_bytes, e.memory_limit_bytes)), default=0)
    agrees = have + HALF_GIB >= a.memory_gib * 2**30 if have else None
    return _judged("memory_gib", f"{a.memory_gib:g}", f"{have / 2**30:.1f}" if have else "", agrees)


def _check_quota(a: Assumptions, e: Envelope) -> EnvelopeCheck | None:
    """A quota below the assumed one differs; none at all leaves as many cores as are allowed."""
    if a.quota_cores is None:
        return None
    if not e.cgroup:
        return _judged("quota_cores", f"{a.quota_cores:g}", "", None)
    have = e.quota_cores if e.quota_cores is not None else float(len(e.cores_allowed))
    probed = f"{have:g}" + ("" if e.quota_cores is not None else " (no quota)")
    return _judged("quota_cores", f"{a.quota_cores:g}", probed, abs(have - a.quota_cores) < 0.01)


def _check_virtual(a: Assumptions, e: Envelope) -> EnvelopeCheck | None:
    if a.virtual is None:
        return None
    known = e.virtualisation != ""
    agrees = (e.virtualisation != "none") == a.virtual if known else None
    return _judged("virtual", str(a.virtual).lower(), e.virtualisation, agrees)


def _check_flags(a: Assumptions, e: Envelope) -> EnvelopeCheck | None:
    if not a.cpu_flags:
        return None
    if not e.cpu_flags:
        return _judged("cpu_flags", " ".join(a.cpu_flags), "", None)
    missing = [flag for flag in a.cpu_flags if flag not in e.cpu_flags]
    probed = f"missing: {' '.join(missing)}" if missing else "all present"
    return _judged("cpu_flags", " ".join(a.cpu_flags), probed, not missing)


def _check_text(name: str, assumed: str | None, probed: str) -> EnvelopeCheck | None:
    if assumed is None:
        return None
    return _judged(name, assumed, probed, assumed == probed if probed else None)


def _list(cores: Sequence[int]) -> str:
    return ",".join(map(str, cores))


# --- reading ------------------------------------------------------------------------------------------------


def probe(cores: Sequence[int] = (), *, versions: Mapping[str, str] | None = None, root: Path = ROOT) -> Envelope:
    """Read the envelope; ``cores`` are those whose reference pace is measured (0.1 s each). MachineError if one does
    not exist. ``versions`` are those of the runtimes in use."""
    cpu = parse_cpuinfo(_text(root, "proc/cpuinfo"))
    group = own_group("cpu", root)
    first = min(os.sched_getaffinity(0))
    return Envelope(
        host=socket.gethostname(),
        kernel=platform.release(),
        cpu_model=cpu["model"],
        cpu_flags=tuple(cpu["flags"].split()),
        cores_online=parse_cores(_text(root, "sys/devices/system/cpu/online")) or os.cpu_count() or 0,
        cores_allowed=tuple(sorted(os.sched_getaffinity(0))),
        microcode=cpu["microcode"],
        firmware=_firmware(root),
        governor=_text(root, f"sys/devices/system/cpu/cpu{first}/cpufreq/scaling_governor"),
        power_profile=_text(root, "sys/firmware/acpi/platform_profile"),
        virtualisation=_virtualisation(root, cpu["flags"]),
        quota_cores=quota_cores(root),
        cgroup=f"v{group.version} {group.folders[0]}" if group else "",
        memory_bytes=parse_meminfo(_text(root, "proc/meminfo")),
        memory_limit_bytes=memory_limit(root),
        huge_pages=parse_selected(_text(root, "sys/kernel/mm/transparent_hugepage/enabled")),
        clock_source=_text(root, "sys/devices/system/clocksource/clocksource0/current_clocksource"),
        compiler=f"python: {platform.python_compiler()}; numpy: {_numpy_compiler()}",
        python=platform.python_version(),
        versions={"numpy": np.__version__, **(versions or {})},
        pace=tuple(pace_of(core) for core in cores),
    )


def pace_of(core: int) -> Pace:
    """The reference pace of one core, from quiet runs in a worker process of its own that is pinned to it."""
    with solo(VACANT, core) as worker:
        worker.ask(wire.RunPace(REFERENCE_RUNS // 10))
        paced = worker.ask(wire.RunPace(REFERENCE_RUNS))
    assert isinstance(paced, wire.Paced)
    return reference(core, paced.compute_ns, paced.stream_ns)


def _text(root: Path, name: str) -> str:
    try:
        return (root / name).read_text(errors="replace").strip()
    except OSError:
        return ""


def _firmware(root: Path) -> str:
    folder = "sys/class/dmi/id"
    words = (_text(root, f"{folder}/{name}") for name in ("bios_vendor", "bios_version", "bios_date"))
    return " ".join(filter(None, words))


def _virtualisation(root: Path, flags: str) -> str:
    """``none``, or a name. A container's own name would hide the machine below it, so only --vm is asked."""
    try:
        done = subprocess.run(["systemd-detect-virt", "--vm"], capture_output=True, text=True, timeout=5, check=False)
        said = done.stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        said = ""
    if said and said != "none":
        return said
    vendor = _text(root, "sys/class/dmi/id/sys_vendor")
    if "hypervisor" in flags.split():
        return f"hypervisor ({vendor})" if vendor else "hypervisor"
    return said


def _numpy_compiler() -> str:
    config = np.show_config(mode="dicts")
    c = config["Compilers"]["c"] if config else {}
    return f"{c.get('name', '')} {c.get('version', '')}".strip()
