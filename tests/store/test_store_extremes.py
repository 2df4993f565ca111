"""Numbers that no study can mean: each is refused with its key, or stays a number that everything can hold."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomlkit

from trimtab.domain.study import Study
from trimtab.errors import StudyError
from trimtab.store.codec import to_json
from trimtab.store.study import parse_study

EXAMPLES = Path(__file__).parents[2] / "examples"
STUDY = tomllib.loads((EXAMPLES / "ocr" / "study.toml").read_text()) | {
    "adapt": {"spare": 2, "compile_s": 60.0},
    "conditions": [{"kind": "higher load", "factor": 1.2}],
}
EXTREMES = (-1, 0, 2**31, 2**63, -(2**70), 10**30, 1e300, -1e300, 1e-300, float("inf"), float("nan"))
LONGEST_NS = 2**62


def leaves(node: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of every number in the study."""
    if isinstance(node, bool | str):
        return
    if isinstance(node, int | float):
        yield path
        return
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        yield from leaves(value, (*path, key))


def with_number(path: tuple[str | int, ...], number: float) -> str:
    data = copy.deepcopy(STUDY)
    node: Any = data
    for part in path[:-1]:
        node = node[part]
    node[path[-1]] = number
    return tomlkit.dumps(data)


def read(text: str) -> tuple[Study | None, str]:
    """The study, or why there is none."""
    try:
        return parse_study(text), ""
    except StudyError as error:
        return None, f"{error.what} {error.where}"


@pytest.mark.parametrize("path", list(leaves(STUDY)), ids=lambda path: ".".join(map(str, path)))
def test_a_number_is_refused_with_its_key_or_can_be_kept(path: tuple[str | int, ...]) -> None:
    for number in EXTREMES:
        study, refused = read(with_number(path, number))
        if study is None:
            assert str(path[0]) in refused, number
            continue
        to_json(study)
        times_ms = [study.sla.bound_ms, study.sla.deadline_ms, *(policy.hold_ms for policy in study.space.batches)]
        assert all(round((ms or 0) * 1e6) < LONGEST_NS for ms in times_ms), number


@pytest.mark.parametrize("text", ["name = " + "9" * 5000, "[a]\nb = 1e", "a = [" * 2000])
def test_a_text_that_no_parser_can_take_is_a_study_error(text: str) -> None:
    with pytest.raises(StudyError, match="not valid TOML"):
        parse_study(text)
