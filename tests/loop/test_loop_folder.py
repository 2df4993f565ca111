"""A packet's folder is its own: what else lies there is never moved or deleted."""

from __future__ import annotations

from pathlib import Path

import pytest
from loop_kit import Silent, write_study

from trimtab.errors import UsageError
from trimtab.loop.loop import run_until


def workload(study: Path, out: Path, *, fresh: bool = False, budget: str | None = None) -> None:
    run_until(study, "workload", out=out, budget=budget, fresh=fresh, progress=Silent())


def test_a_folder_with_other_files_is_refused_and_left_alone(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    other = tmp_path / "papers"
    other.mkdir()
    (other / "thesis.txt").write_text("years")
    for out in (other, tmp_path):
        with pytest.raises(UsageError):
            workload(study, out)
    assert [path.name for path in other.iterdir()] == ["thesis.txt"]
    assert not (tmp_path / ".progress").exists()


def test_starting_afresh_keeps_what_was_set_aside_and_the_lock(tmp_path: Path) -> None:
    study, out = write_study(tmp_path), tmp_path / "packet"
    workload(study, out)
    stale = out / ".progress" / "stale" / "plans" / "old.json"
    stale.parent.mkdir(parents=True)
    stale.write_text("{}")
    (out / "notes.txt").write_text("mine")
    workload(study, out, fresh=True)
    assert stale.is_file()
    assert (out / ".progress" / "lock").is_file()
    assert (out / "notes.txt").read_text() == "mine"


def test_a_budget_that_is_no_time_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    with pytest.raises(UsageError, match="'soon' is not a length of time"):
        workload(study, tmp_path / "packet", budget="soon")
    assert not (tmp_path / "packet").exists()
