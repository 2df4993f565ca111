"""Which stages are finished, and on what input: so that a run that was killed goes on where it stopped.

A checkpoint is written after everything that its stage wrote. It holds the digests of what the stage read (study,
plans, earlier results, versions) and of what it wrote; the stage counts as finished only while both still hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from trimtab.domain.noun import Noun
from trimtab.errors import PacketError
from trimtab.store._json import read_json, write_json
from trimtab.store._write import machine_errors, safe_name
from trimtab.store.manifest import file_digest

PROGRESS = ".progress"


class Checkpoint(Noun, frozen=True, kw_only=True):
    """A finished stage: digests of its inputs by name, and of its output files by path inside the packet."""

    stage: str
    inputs: dict[str, str]
    outputs: dict[str, str]


def mark_done(folder: Path, stage: str, inputs: Mapping[str, str], outputs: Iterable[Path]) -> Checkpoint:
    """Record that ``stage`` is finished. ``outputs`` are the files it wrote, inside ``folder``."""
    done = Checkpoint(
        stage=stage,
        inputs=dict(inputs),
        outputs={path.relative_to(folder).as_posix(): file_digest(path) for path in sorted(outputs)},
    )
    write_json(_path(folder, stage), done)
    return done


def is_done(folder: Path, stage: str, inputs: Mapping[str, str]) -> bool:
    """Whether ``stage`` finished on exactly these inputs and all it wrote is still there, unaltered."""
    try:
        done = read_json(_path(folder, stage), Checkpoint)
    except PacketError:
        return False  # never finished, or killed while an older version wrote it: the stage runs again
    if done.stage != stage or done.inputs != dict(inputs):
        return False
    return all(_holds(folder / path, expected) for path, expected in done.outputs.items())


def outputs_of(folder: Path, stages: Iterable[str]) -> set[str]:
    """Every file that the finished ones among ``stages`` wrote, as paths inside ``folder``."""
    found: set[str] = set()
    for stage in stages:
        path = _path(folder, stage)
        if path.is_file():
            found |= read_json(path, Checkpoint).outputs.keys()
    return found


def forget(folder: Path, stage: str) -> None:
    """Drop the checkpoint of ``stage``, so that it runs again."""
    path = _path(folder, stage)
    with machine_errors(path):
        path.unlink(missing_ok=True)


def _path(folder: Path, stage: str) -> Path:
    return folder / PROGRESS / f"{safe_name(stage)}.json"


def _holds(path: Path, expected: str) -> bool:
    return path.is_file() and file_digest(path) == expected
