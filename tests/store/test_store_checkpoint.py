"""A stage is finished only while its inputs and what it wrote are what they were."""

from __future__ import annotations

from pathlib import Path

import pytest

from trimtab.errors import PacketError
from trimtab.store.packet import Checkpoint, forget, is_done, mark_done

INPUTS = {"study": "a" * 64, "versions": "b" * 64}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "run.json").write_text("{}")
    mark_done(tmp_path, "replay", INPUTS, [tmp_path / "traces" / "run.json"])
    return tmp_path


def test_a_finished_stage_is_known_by_its_inputs(folder: Path) -> None:
    assert is_done(folder, "replay", INPUTS)
    assert not is_done(folder, "score", INPUTS)
    assert not is_done(folder, "replay", INPUTS | {"study": "c" * 64})
    assert not is_done(folder, "replay", INPUTS | {"more": "d" * 64})
    assert not is_done(folder, "replay", {})


def test_a_stage_whose_output_is_gone_or_altered_is_not_finished(folder: Path) -> None:
    path = folder / "traces" / "run.json"
    path.write_text("{ }")
    assert not is_done(folder, "replay", INPUTS)
    path.write_text("{}")
    assert is_done(folder, "replay", INPUTS)
    path.unlink()
    assert not is_done(folder, "replay", INPUTS)


@pytest.mark.parametrize("text", ["", "{", '{"stage": "replay"}', '{"stage":"score","inputs":{},"outputs":{}}'])
def test_a_checkpoint_that_was_cut_off_means_not_finished(folder: Path, text: str) -> None:
    (folder / ".progress" / "replay.json").write_text(text)
    assert not is_done(folder, "replay", INPUTS)


def test_a_forgotten_stage_runs_again(folder: Path) -> None:
    forget(folder, "replay")
    forget(folder, "replay")
    assert not is_done(folder, "replay", INPUTS)


def test_a_checkpoint_names_what_was_written(folder: Path) -> None:
    done = mark_done(folder, "plan", {}, [folder / "traces" / "run.json"])
    assert done == Checkpoint(
        stage="plan",
        inputs={},
        outputs={"traces/run.json": "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"},
    )
    with pytest.raises(PacketError):
        mark_done(folder, "../plan", {}, [])
