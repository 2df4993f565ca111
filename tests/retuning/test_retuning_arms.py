"""Arms: which runs may be compared, what they carry, and the slices of the traffic that both served."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace
from retuning_cases import MS, from_times, trace

from parts import workload_of
from trimtab.domain.workload import Slice, Workload
from trimtab.retuning.arms import arms_of, slice_rows


def test_runs_that_differ_in_what_must_be_equal_are_refused() -> None:
    a, b = trace([10, 20]), trace([10, 20])
    other = replace(b, run=replace(b.run, envelope_sha256="x", start_state="dirty"))
    assert arms_of("normal", [a], [other]).refusal == "the runs differ in envelope, start state"
    cut = replace(b, run=replace(b.run, complete=False))
    assert arms_of("normal", [a], [cut]).refusal == "incomplete runs: run"


def test_two_backends_may_each_name_their_own_version() -> None:
    a, b = trace([10]), trace([10])
    one = replace(a, run=replace(a.run, versions={"numpy": "2", "openvino": "1"}))
    two = replace(b, run=replace(b.run, versions={"numpy": "2", "onnxruntime": "3"}))
    old = replace(b, run=replace(b.run, versions={"numpy": "1"}))
    assert arms_of("normal", [one], [two]).refusal == ""
    assert arms_of("normal", [one], [old]).refusal == "the runs differ in versions"


def test_arms_carry_latency_and_peak_memory() -> None:
    times = np.array([0, 10 * MS])
    run = from_times(times, times, times + 5 * MS)
    run.batches["peak_bytes"][:] = [7, 9]
    found = arms_of("normal", [run], [run])
    assert found.baseline[0].tolist() == [0.005, 0.005]
    assert (found.baseline_bytes, found.candidate_bytes) == ((9,), (9,))


def halves() -> Workload:
    """Ten requests: two of tune, eight held out; two streams; widths 10 to 80 in the held-out part."""
    return workload_of(
        np.arange(10) * MS, [5, 5, 10, 20, 30, 40, 50, 60, 70, 80],
        stream=np.array([0, 1] * 5, dtype=np.int32), streams=("a", "b"),
        slices=(
            Slice(name="tune", start=0, stop=2),
            Slice(name="held-out", start=2, stop=10),
            Slice(name="wide", start=0, stop=10, band={"width": (60, 99)}),
        ),
    )  # fmt: skip


def test_slices_are_positions_within_the_held_out_part() -> None:
    found = slice_rows(halves(), halves().slices[1], bands=2)
    assert {name: rows.tolist() for name, rows in found.items()} == {
        "held-out": [0, 1, 2, 3, 4, 5, 6, 7],
        "wide": [5, 6, 7],
        "stream a": [0, 2, 4, 6],
        "stream b": [1, 3, 5, 7],
        "width 10-40": [0, 1, 2, 3],
        "width 50-80": [4, 5, 6, 7],
    }


def test_one_stream_and_one_width_make_no_slices_of_their_own() -> None:
    flat = replace(halves(), streams=("a",), stream=np.zeros(10, dtype=np.int32), dims=np.full((10, 1), 9))
    assert list(slice_rows(flat, flat.slices[1])) == ["held-out", "wide", "width 9-9"]
