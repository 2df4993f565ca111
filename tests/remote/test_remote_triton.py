"""A live Triton under a real trace: an injected fault is found by name, and a healthy server is called healthy.

Triton runs on the CPU out of the wheel nvidia-pytriton; its own trace is joined by request id. The network takes a
fixed time a batch, so what makes the tail is what was set: how long the batcher holds, and how many instances it has.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from kserve_kit import need_client
from remote_kit import STUDY, Quiet
from triton_kit import PYTHON, Model, home, make, triton

from trimtab.domain.score import Diagnosis
from trimtab.loop.loop import run_until
from trimtab.store.codec import read_json
from trimtab.store.packet import Packet, load_record, verify

need_client()
pytestmark = pytest.mark.live

TRACES = Path(__file__).parents[2] / "examples" / "ocr" / "traces"
CORE = max(os.sched_getaffinity(0))
REPLAYS = 3
ATTEMPTS = 3
TRAFFIC = """
target = "{target}"
target_trace = "{trace}"
rate = 40.0

[workload.arrivals]
file = "azure_conv.csv.gz"
time = "TIMESTAMP"
unit = "iso"

[workload.shapes]
file = "sroie_lines.csv.gz"
dims = {{ width = "width" }}
stream = "client"
"""
BUDGET = f"""
[budget]
time = "3m"
replays = {REPLAYS}
replay_s = 15.0
"""
RUN_MS = 15.0
FAULTS = {
    "hold too long": (Model(instances=2, run_ms=RUN_MS, hold_ms=150.0, size=8), "batch-policy"),
    "one instance too few": (Model(instances=1, run_ms=RUN_MS), "capacity-queueing"),
    "nothing": (Model(instances=2, run_ms=RUN_MS), "healthy"),
}


@pytest.fixture(scope="module")
def environment() -> Path:
    if not PYTHON.exists():
        pytest.skip(f"there is no {PYTHON}, which Triton's wheel runs with")
    try:
        return make(home())
    except subprocess.CalledProcessError as error:
        pytest.skip(f"Triton's wheel cannot be installed: {error.stderr.decode(errors='replace')[-300:]}")


def write_study(folder: Path, target: str) -> Path:
    """The study of a server, on the arrivals of a service and the widths of text lines."""
    for name in ("azure_conv.csv.gz", "sroie_lines.csv.gz"):
        shutil.copy(TRACES / name, folder / name)
    head, _, rest = STUDY.partition("[workload]")
    sla = rest[rest.index("[sla]") :].replace("bound_ms = 40.0", "bound_ms = 40.0\ndeadline_ms = 5000.0")
    text = f"{head.replace('hi = 100', 'hi = 1640')}[workload]{TRAFFIC}{sla}{BUDGET}"
    path = folder / "study.toml"
    path.write_text(text.format(target=target, trace=folder / "trace.json").replace("cores = [0]", f"cores = [{CORE}]"))
    return path


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_with_a_live_server_is_named(fault: str, environment: Path, tmp_path: Path) -> None:
    model, named = FAULTS[fault]
    packet = driven(environment, model, tmp_path)
    classes = [one.id for one in read_json(packet / "diagnosis.json", Diagnosis).classes]
    assert classes[0] == named
    assert set(classes) & {"batch-policy", "capacity-queueing"} <= {named}
    assert verify(packet) == []
    told = load_record(packet).findings["replay"].table("replay.server").columns
    counts = tuple(len(Packet(packet).read_trace(run).requests) for run in told["run"])
    assert told["traced"] == told["requests"] == counts


def driven(environment: Path, model: Model, folder: Path) -> Path:
    """The packet of a live server. On a machine that others use requests leave late; that is told, and tried again."""
    with triton(environment, model, folder) as target:
        study = write_study(folder, target)
        for attempt in range(ATTEMPTS):
            packet = folder / f"packet-{attempt}"
            run_until(study, "report", out=packet, budget=None, fresh=False, progress=Quiet())
            if read_json(packet / "diagnosis.json", Diagnosis).classes[0].id != "invalid-measurement":
                break
    return packet
