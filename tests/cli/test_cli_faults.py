"""What a user sees after a mistake: what, where, how to fix, and an exit code by kind. Fresh processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "loop"))
from loop_kit import STUDY, write_study

OK, USAGE, STUDY_, DATA, MODEL, TOOL, MACHINE, PACKET = 0, 2, 3, 4, 5, 6, 7, 8


def trimtab(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trimtab", *map(str, arguments)], capture_output=True, text=True, timeout=120
    )


def test_version_needs_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['trimtab', '--version']; import trimtab.__main__ as m; m.main(); "
        "assert not {'numpy', 'duckdb', 'cyclopts', 'rich', 'msgspec'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("trimtab ")


CASES = [
    ("an unknown key", 'name = "plumbing"', 'nmae = "plumbing"', STUDY_, "did you mean"),
    ("a wrong type", "rate = 250.0", 'rate = "fast"', STUDY_, "workload.rate"),
    ("a missing model", 'path = "network.bin"', 'path = "netwrok.bin"', MODEL, "network.bin"),
    ("a missing trace", 'file = "trace.csv"', 'file = "trase.csv"', DATA, "trase.csv"),
    ("a missing column", 'time = "t"', 'time = "when"', DATA, "when"),
    ("an unknown backend", 'backend = "null"', 'backend = "nul"', USAGE, "null"),
    ("a core that does not exist", "cores = [0, 1]", "cores = [0, 4000]", MACHINE, "4000"),
    ("shapes outside the model's range", "hi = 100\n", "hi = 20\n", STUDY_, "20"),
    (
        "an empty slice",
        "[workload.arrivals]",
        '[[workload.slices]]\nname = "void"\nstreams = ["nobody"]\n\n[workload.arrivals]',
        DATA,
        "void",
    ),
    ("no time for a replay", "replay_s = 1.2", "replay_s = 0.01", STUDY_, "budget.time"),
]


@pytest.mark.parametrize(("what", "old", "new", "code", "says"), CASES, ids=[case[0] for case in CASES])
def test_a_mistake_in_the_study(tmp_path: Path, what: str, old: str, new: str, code: int, says: str) -> None:
    assert old in STUDY
    study = write_study(tmp_path, STUDY.replace(old, new, 1))
    done = trimtab("plan", study, "--out", tmp_path / "packet")
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert "fix:" in done.stderr
    assert "Traceback" not in done.stderr


ROWS = [
    ("unsorted", "t,width,client\n1.0,5,a\n0.5,5,a\n2.0,5,a\n", "0.5"),
    ("negative", "t,width,client\n-1.0,5,a\n0.5,5,a\n", "-1"),
    ("missing time", "t,width,client\n0.0,5,a\n,5,a\n", "line 3"),
    ("not a number", "t,width,client\n0.0,5,a\nsoon,5,a\n", "soon"),
    ("a width of nothing", "t,width,client\n0.0,5,a\n1.0,0,a\n", "width"),
    ("nothing at all", "", "trace.csv"),
]


@pytest.mark.parametrize(("what", "text", "says"), ROWS, ids=[row[0] for row in ROWS])
def test_a_broken_trace(tmp_path: Path, what: str, text: str, says: str) -> None:
    study = write_study(tmp_path)
    (tmp_path / "trace.csv").write_text(text)
    done = trimtab("workload", study, "--out", tmp_path / "packet")
    assert done.returncode == DATA, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_faults_as_json(tmp_path: Path) -> None:
    done = trimtab("run", tmp_path / "nothing.toml", "--json")
    assert done.returncode == STUDY_
    told = json.loads(done.stdout)["error"]
    assert told["kind"] == "StudyError"
    assert told["what"]
    assert told["fix"]


def test_an_unknown_verb_or_option_is_a_usage_error() -> None:
    assert trimtab("rum").returncode == USAGE
    assert trimtab("run").returncode == USAGE
    assert trimtab("backends", "--jsn").returncode == USAGE


def test_a_folder_that_is_no_packet(tmp_path: Path) -> None:
    assert trimtab("verify", tmp_path).returncode == PACKET
    assert trimtab("report", tmp_path).returncode == PACKET


def test_backends_prints_every_runtime_with_a_reason() -> None:
    done = trimtab("backends")
    assert done.returncode == OK
    for name in ("null", "onnxruntime", "openvino"):
        assert name in done.stdout
    told = json.loads(trimtab("backends", "--json").stdout)
    assert all(info["available"] or info["why"] for info in told)


def test_probe_says_what_the_machine_is_and_what_the_study_assumes(tmp_path: Path) -> None:
    told = json.loads(trimtab("probe", write_study(tmp_path), "--json").stdout)
    assert told["envelope"]["kernel"]
    assert {check["name"] for check in told["checks"]} == {"cores"}


def test_schema_is_json() -> None:
    assert json.loads(trimtab("schema").stdout)["title"] == "trimtab study"
