"""Which requests judge a plan, what becomes of answers that cannot be cut or compared, and a user's own function."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from runtime_kit import ANY, BUCKET, CORES, JOB, MODEL, NoCounters, Ramp, load, plan_of

from trimtab.backends import factory
from trimtab.domain.profile import CompileOptions
from trimtab.runtime import wire
from trimtab.runtime.grading import Grader, beside
from trimtab.runtime.quality import answers, graded, sample_members
from trimtab.runtime.worker import Worker

CORE = CORES[-1]
TRAFFIC = load(range(100), [10] * 80 + [20] * 15 + [30] * 4 + [40])


def widths(found: tuple[wire.Member, ...]) -> list[int]:
    return [dims[0] for _, dims in found]


def test_a_sample_is_even_over_the_order_of_shapes() -> None:
    assert widths(sample_members(TRAFFIC, 5, seed=1)) == [10, 10, 10, 10, 40]
    assert sample_members(TRAFFIC, 5, seed=1) == sample_members(TRAFFIC, 5, seed=1)
    assert sample_members(TRAFFIC, 5, seed=1) != sample_members(TRAFFIC, 5, seed=2)


def test_every_group_gets_its_share_as_far_as_it_has_requests() -> None:
    found = widths(sample_members(TRAFFIC, 5, 1, (lambda dims: dims[0],), each=3))
    assert [found.count(width) for width in (10, 20, 30, 40)] == [4, 3, 3, 1]


def test_strata_are_filled_one_after_the_other_and_none_is_in_no_group() -> None:
    odd = (lambda dims: None if dims[0] == 10 else "wide", lambda dims: dims[0] >= 30)
    found = widths(sample_members(TRAFFIC, 1, 1, odd, each=4))
    assert [found.count(width) for width in (10, 20, 30, 40)] == [1, 3, 3, 1]


def test_no_request_twice_and_no_more_than_there_are() -> None:
    found = sample_members(TRAFFIC, 1000, 1, (lambda dims: dims[0],), each=1000)
    assert len(set(found)) == len(found) == 100


def test_requests_of_one_entry_share_batches_and_each_gets_its_own_answer() -> None:
    """Payload k is a row of k + 1; the null network sums a row, and padding adds zeros."""
    members = ((0, (3,)), (1, (60,)), (2, (5,)), (3, (20,)), (4, (30,)))
    given = answers(plan_of(BUCKET, ANY), MODEL, factory("null"), Ramp(), members, CORE, size=2)
    assert [(one.entry, one.executed) for one in given] == [
        ("bucket", (2, 8)), ("any", (2, 60)), ("bucket", (2, 8)), ("any", (2, 60)), ("any", (1, 30)),
    ]  # fmt: skip
    assert [one.outputs["y"].tolist() for one in given] == [[[(k + 1.0) * w] * w] for k, (w,) in members]


def test_a_batch_that_fails_answers_none_of_its_requests() -> None:
    members = ((0, (3,)), (1, (60,)), (2, (9,)), (3, (20,)))
    given = answers(plan_of(ANY, error_on_batch="width=60"), MODEL, factory("null"), Ramp(), members, CORE, size=2)
    assert [one.outputs is None for one in given] == [True, True, False, False]
    assert "told to fail" in given[0].message


class Halved:
    """A compiled entry whose output follows the data: one position for every two values above 1."""

    def run(self, inputs):
        x = inputs["x"]
        return {"y": x[:, : int((x > 1).sum()) // 2]}

    def events(self) -> tuple[()]:
        return ()


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (1, "output 'y' has shape [1, 2]; its crop keeps 5 of axis 1"),  # a row of 2
        (0, "output 'y' is empty"),  # a row of 1: nothing is above 1
    ],
)
def test_an_output_that_no_crop_fits_is_a_bad_output_that_names_its_shape(payload: int, message: str) -> None:
    worker = Worker(factory("null")(), JOB, NoCounters())
    worker.handle(wire.Compile(ANY, CompileOptions(), ()))
    worker._entries["any"] = Halved()
    ran = worker.handle(wire.Answer("any", (1, 8), ((payload, (5,)),)))
    assert isinstance(ran, wire.Ran)
    assert (ran.error, ran.message) == ("bad-output", message)


def test_answers_of_a_lost_worker_say_so() -> None:
    members = ((0, (3,)), (1, (60,)))
    given = answers(plan_of(ANY, crash_on_batch="width=60"), MODEL, factory("null"), Ramp(), members, CORE)
    assert [one.outputs is None for one in given] == [False, True]
    assert given[1].message == "killed by SIGKILL"


def test_answers_with_a_foreign_infinity_are_none() -> None:
    given = answers(plan_of(BUCKET), MODEL, factory("null"), Endless(), ((0, (3,)),), CORE, infinities={"y": ""})
    assert given[0].message == "output 'y' holds -inf, which the reference never gives"
    own = answers(plan_of(BUCKET), MODEL, factory("null"), Endless(), ((0, (3,)),), CORE, infinities={"y": "-"})
    assert own[0].outputs is not None


class Endless(Ramp):
    """Every payload sums to minus infinity."""

    def request(self, payload: int, dims: tuple[int, ...]) -> dict[str, np.ndarray]:
        return {"x": np.full((1, *dims), -np.inf, dtype=np.float32)}


# --- a user's own function ----------------------------------------------------------------------------------

FUNCTION = """
import numpy as np

def same(reference, outputs):
    return float(np.mean(reference["y"] == outputs["y"]))

def fails(reference, outputs):
    raise ValueError("no such output")

def dies(reference, outputs):
    import os
    os._exit(3)

number = 5
"""
ONE, TWO = {"y": np.array([[1.0, 2.0]])}, {"y": np.array([[1.0, 3.0]])}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "judge_of_answers.py").write_text(FUNCTION)
    return tmp_path


def test_a_function_is_found_beside_the_study_or_not_at_all(folder: Path) -> None:
    (folder / "pack").mkdir()
    (folder / "pack" / "__init__.py").write_text("")
    assert beside("judge_of_answers:same", folder) == folder / "judge_of_answers.py"
    assert beside("pack:same", folder) == folder / "pack" / "__init__.py"
    assert beside("numpy:allclose", folder) is None


def test_a_function_judges_in_a_process_of_its_own(folder: Path) -> None:
    said = graded("judge_of_answers:same", folder, [(ONE, ONE), (ONE, TWO)], CORE)
    assert [one.value for one in said] == [1.0, 0.5]
    assert "judge_of_answers" not in sys.modules
    assert str(folder) not in sys.path


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("judge_of_answers:fails", "judge_of_answers:fails: ValueError: no such output"),
        ("judge_of_answers:absent", "AttributeError"),
        ("judge_of_answers:number", "TypeError: number is not a function"),
        ("no_such_module_anywhere:f", "ModuleNotFoundError"),
    ],
)
def test_a_function_that_does_not_judge_is_a_message(
    folder: Path, monkeypatch: pytest.MonkeyPatch, function: str, message: str
) -> None:
    monkeypatch.syspath_prepend(folder)
    sides = [{name: wire.pack(array) for name, array in side.items()} for side in (ONE, TWO)]
    said = Grader().grade(wire.Grade(function, str(folder), *sides))
    monkeypatch.delitem(sys.modules, "judge_of_answers", raising=False)
    assert math.isnan(said.value)
    assert message in said.message


def test_a_function_that_takes_its_process_with_it_is_a_message(folder: Path) -> None:
    (said,) = graded("judge_of_answers:dies", folder, [(ONE, ONE)], CORE)
    assert "ended with exit code 3" in said.message
