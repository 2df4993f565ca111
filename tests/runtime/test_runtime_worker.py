"""The parts of a worker, without a process: orders and replies, counters, checks, payloads, pace."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from runtime_kit import ANY, BUCKET, JOB, MODEL, NoCounters, Ramp

from trimtab.backends import factory
from trimtab.domain.profile import CompileOptions
from trimtab.runtime import launch, wire
from trimtab.runtime.counters import Counters, status_bytes
from trimtab.runtime.pace import Allowance, PaceKernel, reference
from trimtab.runtime.payloads import PayloadStore
from trimtab.runtime.verify import OutputCheck
from trimtab.runtime.worker import Worker

PLAIN = CompileOptions()


def worker() -> Worker:
    made = Worker(factory("null")(), JOB, NoCounters())
    made.handle(wire.Compile(ANY, PLAIN, ()))
    made.handle(wire.Compile(BUCKET, PLAIN, ()))
    return made


def test_a_run_is_answered_with_its_marks() -> None:
    ran = worker().handle(wire.Run(7, "any", (2, 5), ((0, (4,)), (1, (5,)))))
    assert isinstance(ran, wire.Ran)
    assert (ran.batch, ran.error, ran.message) == (7, "none", "")
    assert ran.started <= ran.ended


def test_an_answer_holds_each_members_own_outputs() -> None:
    """The null network sums a row: 4 values of 1, and 3 of 2, padded to 8 with zeros."""
    got = worker().handle(wire.Answer("bucket", (2, 8), ((0, (4,)), (1, (3,)))))
    assert isinstance(got, wire.Answers)
    assert [wire.unpack(m["y"]).tolist() for m in got.outputs] == [[[4.0] * 4], [[6.0] * 3]]


@pytest.mark.parametrize(
    ("order", "error", "message"),
    [
        (wire.Run(0, "none", (1, 5), ((0, (5,)),)), "backend-error", "KeyError: 'none'"),
        (wire.Run(0, "any", (1, 5), ((0, (9,)),)), "backend-error", "does not fit"),
        (wire.Run(0, "bucket", (1, 9), ((0, (9,)),)), "backend-error", "compiled for width = 8"),
    ],
)
def test_a_run_that_cannot_be_done_is_an_error_kind(order: wire.Run, error: str, message: str) -> None:
    ran = worker().handle(order)
    assert isinstance(ran, wire.Ran)
    assert ran.error == error
    assert message in ran.message


def test_what_does_not_compile_is_refused_with_its_reason() -> None:
    made = Worker(factory("null")(), JOB, NoCounters())
    refused = made.handle(wire.Compile(ANY, CompileOptions(extra={"bas_us": "1"}), ()))
    assert isinstance(refused, wire.Refused)
    assert refused.failure.kind == "unknown-option"
    refused = made.handle(wire.Compile(BUCKET, PLAIN, ((1, 9),)))
    assert isinstance(refused, wire.Refused)
    assert refused.failure.message.startswith("warming (1, 9): ")


def test_a_forgotten_entry_is_gone() -> None:
    made = worker()
    assert made.handle(wire.Forget("any")) is None
    ran = made.handle(wire.Run(0, "any", (1, 5), ((0, (5,)),)))
    assert isinstance(ran, wire.Ran)
    assert ran.error == "backend-error"


def test_inspection_and_pace_are_answered() -> None:
    made = worker()
    inspected = made.handle(wire.Inspect("any", (1, 5), ((0, (5,)),)))
    assert isinstance(inspected, wire.Inspected)
    assert inspected.inspection.executed == (1, 5)
    paced = made.handle(wire.RunPace(3))
    assert isinstance(paced, wire.Paced)
    assert len(paced.compute_ns) == len(paced.stream_ns) == 3


def test_messages_survive_the_wire() -> None:
    order = wire.Run(3, "any", (2, 5), ((0, (4,)), (1, (5,))))
    assert wire.decode_order(wire.encode(order)) == order
    ran = worker().handle(order)
    assert wire.decode_reply(wire.encode(ran)) == ran
    compile_ = wire.Compile(ANY, CompileOptions(threads=2, extra={"a": "b"}), ((1, 5),))
    assert wire.decode_order(wire.encode(compile_)) == compile_


def test_a_tensor_survives_the_wire() -> None:
    array = np.arange(6, dtype=np.float16).reshape(1, 2, 3)
    back = wire.unpack(wire.pack(array))
    assert back.dtype == array.dtype
    assert np.array_equal(back, array)


def test_a_worker_gets_the_plans_threads_and_one_for_numpy() -> None:
    env = launch.environment(3)
    assert (env["OMP_NUM_THREADS"], env["OPENBLAS_NUM_THREADS"]) == ("3", "1")
    assert launch.command(5, (0, 2))[-3:] == ["5", "0,2", str(os.getpid())]


# --- counters -----------------------------------------------------------------------------------------------


def test_counters_are_differences_over_a_batch() -> None:
    counters = Counters()
    assert counters.unread == {}
    before = counters.begin()
    touched = np.ones(8 * 2**20)  # 64 MiB: more than malloc ever takes from pages that it already holds
    report = counters.end(before, 7)
    counters.close()
    assert report.on_cpu_ns > 0
    assert report.runqueue_ns >= 0
    assert report.minor_faults > 0
    assert report.major_faults >= 0
    assert report.migrations >= 0
    assert report.peak_bytes > touched.nbytes
    assert report.assembly_ns == 7


def test_the_peak_is_the_batchs_own() -> None:
    counters = Counters()
    first = counters.begin()
    big = np.ones(8 * 2**20)
    del big
    large = counters.end(first).peak_bytes
    small = counters.end(counters.begin()).peak_bytes
    counters.close()
    assert large - small > 32 * 2**20


def test_threads_that_come_and_go_are_followed() -> None:
    counters = Counters()
    for _ in range(3):
        before = counters.begin()
        thread = threading.Thread(target=sum, args=(range(1000),))
        thread.start()
        during = counters.end(before)
        thread.join()
        assert during.runqueue_ns >= 0
        assert counters.end(before).runqueue_ns >= 0
    counters.close()


def test_a_counter_that_cannot_be_read_is_never_and_says_why(tmp_path: Path) -> None:
    counters = Counters(tmp_path)
    report = counters.end(counters.begin())
    assert (report.runqueue_ns, report.migrations, report.peak_bytes) == (-1, -1, -1)
    assert "No such file" in counters.unread["peak memory"]
    assert "No such file" in counters.unread["run-queue delay and migrations"]


def test_status_lines() -> None:
    text = b"VmPeak:\t    3060 kB\nVmHWM:\t    1752 kB\nVmRSS:\t    1700 kB\n"
    assert status_bytes(text, b"VmHWM:") == 1752 * 1024
    assert status_bytes(text, b"VmSwap:") == -1


# --- outputs ------------------------------------------------------------------------------------------------

X, OTHER = {"x": np.zeros(3)}, {"x": np.ones(3)}
Y = np.arange(32, dtype=np.float32).reshape(2, 16)


@pytest.mark.parametrize(
    ("outputs", "fault"),
    [
        ({"y": Y}, ""),
        ({}, "output 'y' is missing; the network gave none"),
        ({"y": np.zeros((2, 0))}, "output 'y' is empty"),
        ({"y": Y[:1]}, "output 'y' has shape [1, 16] for a batch of 2: its axis 0 is not the batch"),
        ({"y": np.where(Y == 3, np.nan, Y)}, "output 'y' holds nan"),
        ({"y": np.where(Y == 3, -np.inf, Y)}, ""),  # nothing is known of what the reference gives
        ({"y": np.full((2, 16), 6e4, dtype=np.float16)}, ""),  # its sum overflows, its values do not
    ],
)
def test_outputs_are_judged(outputs: dict[str, np.ndarray], fault: str) -> None:
    assert OutputCheck(("y",)).judge(X, outputs, 2) == fault


@pytest.mark.parametrize(
    ("infinities", "value", "fault"),
    [
        ({"y": "-"}, -np.inf, ""),
        ({"y": "-"}, np.inf, "output 'y' holds +inf, which the reference never gives"),
        ({"y": "-"}, np.nan, "output 'y' holds nan"),
        ({"y": ""}, -np.inf, "output 'y' holds -inf, which the reference never gives"),
        ({}, np.inf, "output 'y' holds +inf, which the reference never gives"),
    ],
)
def test_only_infinities_that_the_reference_gives_are_answers(infinities, value: float, fault: str) -> None:
    check = OutputCheck(("y",), infinities)
    assert check.judge(X, {"y": np.where(Y == 3, value, Y)}, 2) == fault
    assert check.judge(X, {"y": Y}, 2) == ""


def test_masked_outputs_are_stale_like_others() -> None:
    check, masked = OutputCheck(("y",), {"y": "-+"}), np.where(Y == 3, -np.inf, Y)
    both = np.where(Y == 4, np.inf, masked)  # its sum is nan
    for output in (masked, both):
        assert check.judge(X, {"y": output}, 2) == ""
        assert check.judge(OTHER, {"y": output}, 2).startswith("the output is the one of the batch before")


def test_the_output_of_the_batch_before_is_stale_if_the_inputs_differ() -> None:
    check = OutputCheck(("y",))
    assert check.judge(X, {"y": Y}, 2) == ""
    assert check.judge(X, {"y": Y}, 2) == ""
    assert check.judge(OTHER, {"y": Y}, 2).startswith("the output is the one of the batch before")
    assert check.judge(X, {"y": Y + 1}, 2) == ""


def test_runs_on_pad_values_may_repeat_but_must_be_whole() -> None:
    check = OutputCheck(("y",))
    assert check.judge_filled({"y": Y}, 2) == ""
    assert check.judge_filled({"y": Y}, 2) == ""
    assert check.judge(X, {"y": Y}, 2) == ""
    assert check.judge_filled({"y": Y * np.nan}, 2) == "output 'y' holds nan"
    assert check.judge_filled({}, 2) == "output 'y' is missing; the network gave none"


def test_a_few_values_may_honestly_repeat() -> None:
    check = OutputCheck(("y",))
    assert check.judge(X, {"y": np.ones((2, 1))}, 2) == ""
    assert check.judge(OTHER, {"y": np.ones((2, 1))}, 2) == ""


# --- payloads and pace --------------------------------------------------------------------------------------


class Counting(Ramp):
    def __init__(self) -> None:
        self.made: list[int] = []

    def request(self, payload: int, dims: tuple[int, ...]) -> dict[str, np.ndarray]:
        self.made.append(payload)
        return super().request(payload, dims)


def test_payloads_are_made_once_and_the_oldest_go_first() -> None:
    source = Counting()
    store = PayloadStore(source, bound=80)  # room for two rows of 10 float32
    store.load([(0, (10,)), (1, (10,)), (2, (10,))])
    assert (len(store), store.bytes, source.made) == (2, 80, [0, 1, 2])
    source.made.clear()
    for payload in (0, 3, 0, 1):
        store.get(payload, (10,))
    assert source.made == [3, 1]
    assert store.bytes == 80


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 20)), max_size=40))
def test_the_store_keeps_to_its_bound(asked: list[tuple[int, int]]) -> None:
    store = PayloadStore(Ramp(), bound=160)
    for payload, width in asked:
        assert store.get(payload, (width,))["x"].tolist() == [[payload + 1.0] * width]
        assert store.bytes <= 160


def test_the_reference_pace_is_an_observed_tenth_percentile() -> None:
    pace = reference(1, range(100, 300), range(1000, 1200))
    assert (pace.core, pace.compute_ns, pace.stream_ns, pace.runs) == (1, 119, 1019, 200)


def test_pace_takes_its_share_of_the_time_and_no_more() -> None:
    allowance = Allowance(share=0.01)
    assert allowance.open(0)
    allowance.spent(1_000, 3_000)
    assert not allowance.open(200_999)
    assert allowance.open(201_000)


def test_both_halves_of_the_pace_kernel_are_timed() -> None:
    assert all(part > 1000 for part in PaceKernel().run())


def test_the_kit_speaks_of_one_network() -> None:
    assert MODEL.spec is JOB.model.spec
