"""After a study is edited, no result of the old one is shown beside the new one; nothing is deleted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from loop_kit import STUDY, Silent, write_study

from trimtab.cli.app import main
from trimtab.loop.loop import Outcome, run_until

LATER = ("replay.json", "verdict.json", "proposal.json", "manifest.json", "manifest-views.json", "report.html")


def workload(study: Path, out: Path, *, fresh: bool = False) -> Outcome:
    return run_until(study, "workload", out=out, budget=None, fresh=fresh, progress=Silent())


@pytest.fixture
def started(tmp_path: Path) -> tuple[Path, Path]:
    """A study whose workload is read, with results of later stages that have no part in it."""
    study, out = write_study(tmp_path), tmp_path / "packet"
    workload(study, out)
    for name in LATER:
        (out / name).write_text("{}")
    (out / "signatures").mkdir()
    (out / "signatures" / "runtime.json").write_text("{}")
    (out / "documents").mkdir()
    (out / "documents" / "runtime.md").write_text("mine")
    return study, out


def test_results_that_do_not_follow_from_the_study_are_set_aside(started: tuple[Path, Path]) -> None:
    study, out = started
    study.write_text(STUDY.replace("rate = 250.0", "rate = 240.0"))
    done = workload(study, out)
    assert (done.ran, done.record.verdict) == (("workload",), None)
    assert set(done.set_aside) >= {*LATER, "signatures/runtime.json"}
    assert not any((out / name).exists() for name in (*LATER, "signatures/runtime.json"))
    assert all((out / ".progress" / "stale" / name).is_file() for name in LATER)
    assert (out / "documents" / "runtime.md").read_text() == "mine"
    assert (out / "workload.json").is_file()


def test_they_are_set_aside_even_if_nothing_had_to_run(started: tuple[Path, Path]) -> None:
    study, out = started
    done = workload(study, out)
    assert (done.ran, done.reused) == ((), ("workload",))
    assert done.record.verdict is None
    assert not (out / "verdict.json").exists()


def test_starting_afresh_sets_them_aside_too(started: tuple[Path, Path]) -> None:
    study, out = started
    workload(study, out, fresh=True)
    assert not (out / "verdict.json").exists()
    assert (out / ".progress" / "stale" / "verdict.json").is_file()


def test_the_verb_says_so_in_json(started: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    study, out = started
    study.write_text(STUDY.replace("rate = 250.0", "rate = 240.0"))
    assert main(["workload", str(study), "--out", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"] is None
    assert "verdict.json" in told["set_aside"]


def test_naming_owners_and_keys_is_no_reason_to_measure_again(tmp_path: Path) -> None:
    study, out = write_study(tmp_path), tmp_path / "packet"
    workload(study, out)
    study.write_text(STUDY + '\n[owners]\nruntime = "ann"\n\n[signoff]\nrequire = ["runtime"]\n')
    assert workload(study, out).reused == ("workload",)
