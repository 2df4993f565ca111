"""The null backend: chosen times, chosen faults, outputs that tell inputs apart."""

from __future__ import annotations

import multiprocessing
import signal
import time

import backends_nets as nets
import numpy as np
import pytest

from trimtab.backends.null import make
from trimtab.domain.ports import CompiledEntry, ModelFile
from trimtab.domain.profile import CompileFailure, CompileOptions
from trimtab.domain.study import Crop, InputSpec, OutputSpec

MODEL = ModelFile(
    path="none",
    sha256="",
    dim_names=("width",),
    spec=nets.spec(
        (InputSpec(name="x", shape=("batch", 2, "width")),),
        (OutputSpec(name="y", crop=(Crop(axis=1, dim="width", up=8),)), OutputSpec(name="z")),
    ),
)
WHOLE = nets.entry("dynamic", (1,), (100,), (1, 8))


def program(**extra: str) -> CompiledEntry:
    result = make().compile(MODEL, WHOLE, CompileOptions(extra=extra))
    assert not isinstance(result, CompileFailure), result
    return result


def ones(n: int, width: int) -> dict[str, np.ndarray]:
    return {"x": np.ones((n, 2, width), np.float32)}


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that were asked for, in microseconds; nobody really sleeps."""
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", lambda s: pauses.append(round(s * 1e6, 3)))
    return pauses


def test_service_time_is_base_plus_units_plus_the_first_run_of_a_shape(slept: list[float]) -> None:
    entry = program(base_us="100", per_unit_us="0.5", first_us="1000", compile_us="7000")
    for n, width in ((1, 10), (1, 10), (2, 10), (2, 10)):
        entry.run(ones(n, width))
    assert slept == [7000, 1105, 105, 1110, 110]


def test_spinning_uses_up_time_on_the_core(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = program(base_us="1000", mode="spin")
    ticks = iter(range(0, 10_000_000, 100_000))
    monkeypatch.setattr(time, "thread_time_ns", lambda: next(ticks))
    entry.run(ones(1, 4))
    assert next(ticks) == 1_100_000, "read from 0 until 1 ms had passed"


def test_outputs_hold_the_sum_of_each_request_and_can_be_cropped() -> None:
    out = program().run({"x": np.stack([np.full((2, 20), 1.0), np.full((2, 20), 3.0)])})
    assert {name: a.tolist() for name, a in out.items()} == {
        "y": [[40.0, 40.0, 40.0], [120.0, 120.0, 120.0]],
        "z": [[40.0], [120.0]],
    }


@pytest.mark.parametrize(("rule", "fails_at"), [("3", [2]), ("width=9", [1, 3]), ("batch=2", [0])])
def test_a_fault_strikes_at_a_count_or_at_a_dim(rule: str, fails_at: list[int]) -> None:
    entry = program(error_on_batch=rule)
    failed = []
    for i, (n, width) in enumerate([(2, 4), (1, 9), (1, 4), (1, 9)]):
        try:
            entry.run(ones(n, width))
        except RuntimeError:
            failed.append(i)
    assert failed == fails_at


def test_running_out_of_memory_and_bad_outputs_are_faults_too() -> None:
    with pytest.raises(MemoryError):
        program(out_of_memory_on_batch="1").run(ones(1, 4))
    entry = program(bad_output_on_batch="2")
    assert [bool(np.isnan(entry.run(ones(1, 4))["z"]).any()) for _ in range(3)] == [False, True, False]


def test_a_hang_sleeps_on(monkeypatch: pytest.MonkeyPatch) -> None:
    naps: list[float] = []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 3:
            raise TimeoutError

    monkeypatch.setattr(time, "sleep", nap)
    with pytest.raises(TimeoutError):
        program(hang_on_batch="1").run(ones(1, 4))
    assert naps == [3600, 3600, 3600]


def crash() -> None:
    program(crash_on_batch="2").run(ones(1, 4))
    entry = program(crash_on_batch="2")
    entry.run(ones(1, 4))
    entry.run(ones(1, 4))


def test_a_crash_takes_the_process_with_it() -> None:
    worker = multiprocessing.get_context("spawn").Process(target=crash)
    worker.start()
    worker.join()
    assert worker.exitcode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("extra", "kind", "message"),
    [
        ({"fail_compile": "no such kernel"}, "compiler-error", "no such kernel"),
        ({"base_us": "soon"}, "unknown-option", "'soon'"),
        ({"crash_on_batch": "height=3"}, "unknown-option", "there is no dim 'height'"),
        ({"crash_on_batch": "width=wide"}, "unknown-option", "'wide'"),
    ],
)
def test_failures_are_values(extra: dict[str, str], kind: str, message: str) -> None:
    failure = make().compile(MODEL, WHOLE, CompileOptions(extra=extra))
    assert isinstance(failure, CompileFailure)
    assert failure.kind == kind
    assert message in failure.message


def test_it_says_that_it_is_for_tests_only() -> None:
    assert make().info().why.startswith("tests of plumbing only")
