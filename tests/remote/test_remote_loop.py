"""A whole study against a server: the packet, what is said of it, and two packets at a gate."""

from __future__ import annotations

import io
import os
import signal
from pathlib import Path

import numpy as np
import pytest
from kserve_kit import KServe, serving, write_network
from remote_kit import STUDY, Quiet
from rich.console import Console

from trimtab.domain.comparison import Gate
from trimtab.domain.events import ERROR_KINDS
from trimtab.domain.noun import NEVER
from trimtab.errors import PacketError, RunError, UsageError
from trimtab.evidence.remote import HELD_AGAINST, UNSPLIT
from trimtab.loop import driving
from trimtab.loop.loop import Outcome, run_until
from trimtab.loop.verbs.comparing import compare_packets
from trimtab.loop.verbs.exporting import export_run
from trimtab.loop.verbs.reproducing import reproduce
from trimtab.loop.verbs.signing import draft_documents
from trimtab.report import comparison, text
from trimtab.report.view import view
from trimtab.store.packet import Packet, load_record, verify

CORE = min(os.sched_getaffinity(0))
BUDGET = """
[budget]
time = "60s"
replays = 3
replay_s = 0.6
"""


def write_study(folder: Path, target: str, *, trace: str = "") -> Path:
    rng = np.random.default_rng(7)
    times, widths = np.cumsum(rng.exponential(0.01, 1500)), rng.integers(1, 101, 1500)
    rows = [f"{t:.6f},{w}" for t, w in zip(times, widths, strict=True)]
    (folder / "trace.csv").write_text("\n".join(["t,width", *rows]) + "\n")
    given = f'target = "{target}"\nrate = 400.0' + (f'\ntarget_trace = "{trace}"' if trace else "")
    study = STUDY.replace('target = "kserve-v2://localhost:8001/twice"', given)
    path = folder / "study.toml"
    path.write_text(study.replace("cores = [0]", f"cores = [{CORE}]") + BUDGET)
    return path


def run(study: Path, out: Path, stage: str = "report") -> Outcome:
    return run_until(study, stage, out=out, budget=None, fresh=False, progress=Quiet())


def page(packet: Path) -> str:
    """What the terminal shows of a packet."""
    console = Console(width=400, record=True, file=io.StringIO())
    text.show(view(load_record(packet)), console)
    return console.export_text()


@pytest.fixture(scope="module")
def packets(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    """The same study twice against one server, first joined with its trace and then without it."""
    folder = tmp_path_factory.mktemp("driven")
    with serving(KServe(write_network(folder), trace=folder / "trace.json")) as served:
        old, new = folder / "old", folder / "new"
        run(write_study(folder, served.target, trace="trace.json"), old)
        run(write_study(folder, served.target), new)
        return old, new, served.target


def test_the_packet_is_whole_and_says_whose_server_it_was(packets: tuple[Path, Path, str]) -> None:
    old, _, target = packets
    assert verify(old) == []
    record = load_record(old)
    assert [run.source for run in record.runs] == ["driven"] * 3
    assert {run.target for run in record.runs} == {target}
    assert record.runs[0].versions["kit"] == "1.2.3"
    assert record.verdict is None
    assert record.plans == record.profiles == ()
    replay = record.findings["replay"]
    assert replay.headline.startswith(f"Driven against {target}. Plan server: p95 ")
    assert replay.figure("replay.tune-server-1.server.batch").value == 1.0
    for stage in ("compile", "score", "retune", "validate", "decide"):
        assert record.findings[stage].figures == ()


def test_every_request_is_found_in_the_servers_trace(packets: tuple[Path, Path, str]) -> None:
    old, new, _ = packets
    count = len(Packet(old).read_trace("tune-server-1").requests)
    table = load_record(old).findings["replay"].table("replay.server")
    assert table.columns["traced"] == (count,) * 3
    assert table.columns["requests"] == (count,) * 3
    figures = {figure.id: figure for figure in load_record(old).findings["attribute"].figures}
    assert figures["diagnose.stage.queue"].value is not None
    assert figures["diagnose.stage.run"].value is not None
    untold = load_record(new).findings
    assert untold["replay"].table("replay.server").columns["traced"] == (None,) * 3
    assert any("its own trace was not joined" in finding.text for finding in untold["replay"].findings)


def test_the_report_says_it_on_the_page_and_in_the_terminal(packets: tuple[Path, Path, str]) -> None:
    old, _, target = packets
    said = page(old)
    assert f"Driven against {target}: queue, batches and cores there are not trimtab's." in said
    assert "No verdict on one server alone." in said
    assert "No score: both accuracies hold a run against its compile profile" in said
    assert f"driven against {target}" in (old / "report.html").read_text()


def test_a_second_run_drives_nothing(packets: tuple[Path, Path, str]) -> None:
    """The server is gone by now."""
    _, new, _ = packets
    again = run(new.parent / "study.toml", new)
    assert again.ran == ()


def test_two_packets_stand_at_a_gate(packets: tuple[Path, Path, str]) -> None:
    old, new, target = packets
    found: Gate = compare_packets(old, new)
    assert found.forbids == ()
    assert found.rows[0].metric == "p95"
    assert f"driven against {target}" in found.how
    assert "driven against" in comparison.gate(found)


def test_a_server_cannot_be_reproduced_from_its_packet(packets: tuple[Path, Path, str], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="this packet drove a server"):
        reproduce(packets[0], inputs=tmp_path, out=None, budget=None, trust=False, progress=Quiet())


def test_a_server_that_is_not_there_stops_the_study_before_anything_is_sent(tmp_path: Path) -> None:
    with serving(KServe(write_network(tmp_path))) as served:
        study = write_study(tmp_path, served.target)
    with pytest.raises(RunError, match="does not answer ServerMetadata"):
        run(study, tmp_path / "packet")
    assert not (tmp_path / "packet" / "traces").exists()


def test_a_run_that_loses_its_server_keeps_what_it_has(tmp_path: Path) -> None:
    """Nothing is known of the server any more; the run and its failures stay."""
    service = KServe(write_network(tmp_path), trace=tmp_path / "trace.json")
    with serving(service) as served:
        study = write_study(tmp_path, served.target)
        study.write_text(study.read_text().replace("replays = 3", "replays = 1"))
        service.answered = lambda number: number == 100 and served.stop_soon()
        run(study, tmp_path / "packet", "replay")
    trace = Packet(tmp_path / "packet").read_trace("tune-server-1")
    lost = trace.requests["error"] != 0
    assert 0 < lost.sum() < len(lost)
    assert (trace.requests["batch"] == NEVER).all()
    said = [finding.text for finding in load_record(tmp_path / "packet").findings["replay"].findings]
    assert any(
        text.startswith("No counters of the server: the server does not answer ModelStatistics") for text in said
    )


@pytest.mark.usefixtures("own_stack")
def test_a_run_that_is_interrupted_is_kept_and_driven_again(tmp_path: Path) -> None:
    service = KServe(write_network(tmp_path))
    with serving(service) as served:
        study = write_study(tmp_path, served.target)
        study.write_text(study.read_text().replace("replays = 3", "replays = 1"))
        service.answered = lambda number: number == 60 and os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            run(study, tmp_path / "packet", "replay")
        service.answered = lambda number: None
        run(study, tmp_path / "packet", "replay")
    cut, whole = (Packet(tmp_path / "packet").read_trace(f"tune-server-1{end}") for end in (".cut1", ""))
    assert (cut.run.complete, cut.run.note) == (False, "stopped by Ctrl-C")
    assert 0 < (cut.requests["error"] == 0).sum() < len(cut.requests)
    assert set(cut.requests["error"].tolist()) == {0, ERROR_KINDS.index("unfinished")}
    assert whole.run.complete
    assert (whole.requests["error"] == 0).all()


def test_a_trace_that_is_not_there_is_told_and_nothing_is_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driving, "WRITTEN_S", 0.5)
    with serving(KServe(write_network(tmp_path), trace=tmp_path / "trace.json")) as served:
        study = write_study(tmp_path, served.target, trace="elsewhere/trace.json")
        study.write_text(study.read_text().replace("replays = 3", "replays = 1"))
        run(study, tmp_path / "packet", "attribute")
    found = load_record(tmp_path / "packet").findings
    said = [finding.text for finding in found["replay"].findings]
    assert any("trace holds none of this run's requests (no new file there)" in text for text in said)
    assert f"Missing: {UNSPLIT}." in [finding.text for finding in found["attribute"].findings]


def test_documents_and_timelines_of_a_driven_packet(packets: tuple[Path, Path, str], tmp_path: Path) -> None:
    with pytest.raises(PacketError, match="one server alone gives no verdict"):
        draft_documents(packets[0])
    path, events = export_run(packets[0], None, tmp_path / "out.trace.json")
    assert events > len(Packet(packets[0]).read_trace("tune-server-3").requests)
    assert path.exists()


def test_two_servers_are_driven_in_turn_and_held_against_each_other(tmp_path: Path) -> None:
    network = write_network(tmp_path)
    with serving(KServe(network)) as first, serving(KServe(network, delay_s=0.2), threads=64) as second:
        study = write_study(tmp_path, first.target)
        text = study.read_text().replace("rate = 400.0", f'against = "{second.target}"\nrate = 400.0')
        study.write_text(text.replace("replays = 3", "replays = 2"))
        run(study, tmp_path / "packet")
    record = load_record(tmp_path / "packet")
    ended = sorted(
        record.runs, key=lambda run: (tmp_path / "packet" / "traces" / run.id / "run.json").stat().st_mtime_ns
    )
    assert [run.target for run in ended] == [first.target, second.target, second.target, first.target]
    found = record.findings
    assert found["replay"].headline.startswith(f"Driven against {first.target} and {second.target}. Plan server: ")
    gate = found["validate"].table("validate.gate").columns
    assert gate["metric"] == ("p95",)
    assert gate["new"][0] >= 200.0  # ms: every answer of the second takes that
    assert gate["change"][0] is not None
    assert found["decide"].headline == HELD_AGAINST
    assert f"Driven against {first.target} and {second.target}: queue, batches" in page(tmp_path / "packet")
