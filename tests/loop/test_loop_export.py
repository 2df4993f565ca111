"""A run of a packet as a file for Perfetto."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).parents[1] / "store"))

from loop_kit import write_study
from store_examples import trace

from trimtab.errors import UsageError
from trimtab.loop.verbs.exporting import export_run
from trimtab.store.packet import Packet
from trimtab.store.study import load_study


@pytest.fixture
def packet(tmp_path: Path) -> Path:
    """A packet with a study and three measured runs."""
    folder = tmp_path / "packet"
    path = write_study(tmp_path)
    Packet(folder).write_study(path.read_bytes(), load_study(path))
    for name in ("tune-today-1", "held-out-today-1", "confirm-today-1"):
        made = trace()
        Packet(folder).write_trace(replace(made, run=replace(made.run, id=name, source="measured")))
    return folder


def test_the_run_that_the_verdict_rests_on_by_default(packet: Path, tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    path, events = export_run(packet, None, out)
    found = json.loads(path.read_bytes())["traceEvents"]
    assert (path, len(found)) == (out, events)
    assert found[0]["args"]["name"] == "cores, held-out-today-1"


def test_a_run_that_is_not_there_is_refused_with_the_nearest_name(packet: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        export_run(packet, "held-out-tody-1", tmp_path / "run.json")
    assert "did you mean `held-out-today-1`?" in refused.value.fix
    assert not (tmp_path / "run.json").exists()


def test_an_earlier_export_is_replaced_and_no_other_file(packet: Path, tmp_path: Path) -> None:
    out, notes = tmp_path / "run.json", tmp_path / "notes.txt"
    export_run(packet, "tune-today-1", out)
    export_run(packet, "held-out-today-1", out)
    assert b"held-out-today-1" in out.read_bytes()
    notes.write_text("mine")
    for there, what in ((notes, "no earlier export"), (tmp_path, "is a folder")):
        with pytest.raises(UsageError, match=what):
            export_run(packet, None, there)
    assert notes.read_text() == "mine"
    export_run(packet, None, notes, force=True)
    assert json.loads(notes.read_bytes())["traceEvents"]
