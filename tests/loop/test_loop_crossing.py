"""Orders and answers between two machines: everything crosses and comes out equal, arrays and all; files by digest."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from loop_kit import write_study

from parts import envelope, run_info, workload_of
from trimtab.domain.plan import Plan
from trimtab.domain.ports import ModelFile
from trimtab.domain.profile import CompileFailure, CompileOptions, CompileProfile, FirstRun, Inspection, ShapeTiming
from trimtab.domain.study import Study
from trimtab.domain.trace import MARK_COLUMNS, REQUEST_COLUMNS, Trace, empty
from trimtab.errors import MachineError, RunError
from trimtab.loop.trials import crossing
from trimtab.loop.trials.executor import Material
from trimtab.loop.trials.laying import BANK, CALIBRATION, NETWORK, TORCH, Laid, files_of, relocated
from trimtab.loop.trials.trial import Answering, Answers, Neighbour, Profile, Profiled, Replay, Replayed
from trimtab.runtime.grid import GridPoint
from trimtab.runtime.quality import Answered
from trimtab.store.packet import file_digest
from trimtab.store.study import load_study, resolve_model

RUN = run_info(
    id="tune-today-1", plan="today", slice="tune", source="measured", start_state="fresh", cores=(1,), driver_core=0
)
LOAD = workload_of([0, 5], [7, 9], id="load")
PROFILED = CompileProfile(
    plan="today", entry="any", backend="null", versions={"null": "1"}, options=CompileOptions(), compile_ns=5,
    memory_bytes=1, peak_bytes=2, inspection=Inspection(executed=(1, 7), operators=(), operators_before=0),
    timings=(ShapeTiming(executed=(1, 7), first_ns=9, wall_ns=(3, 4), cpu_ns=(3, 4)),),
    first_runs=(FirstRun(executed=(1, 9), ns=8),),
)  # fmt: skip


@pytest.fixture
def material(tmp_path: Path) -> Material:
    study = load_study(write_study(tmp_path))
    return Material(study, tmp_path, resolve_model(study, tmp_path), envelope())


def there_and_back(study: Study, model: ModelFile, trial: Profile | Answers | Replay) -> crossing.Job:
    job = crossing.decode_order(crossing.encode(crossing.Job(study, model, trial)))
    assert isinstance(job, crossing.Job)
    return job


def test_a_replay_crosses_with_its_arrivals_and_its_promises(material: Material) -> None:
    plan = material.study.baseline
    sent = Replay(
        stage="replay", note=RUN.id, plan=plan, run=RUN, workload=LOAD, profiles=(PROFILED,), hang_s=10.0,
        infinities={"y": "-"}, neighbour=Neighbour("spin", 1, "0"),
    )  # fmt: skip
    job = there_and_back(material.study, material.model, sent)
    got = job.trial
    assert isinstance(got, Replay)
    assert (job.study, job.model, got.plan, got.profiles) == (material.study, material.model, plan, (PROFILED,))
    assert (got.run.id, got.neighbour, got.infinities) == (RUN.id, Neighbour("spin", 1, "0"), {"y": "-"})
    assert got.workload.dims.tolist() == [[7], [9]]
    assert got.workload.stream.dtype == np.int32
    got.workload.scheduled[0] = 3  # what came is ours: nothing shares its memory


@pytest.mark.parametrize("infinities", [None, {"y": "+"}])
def test_orders_to_profile_and_to_answer_come_out_equal(material: Material, infinities: dict[str, str] | None) -> None:
    plan: Plan = material.study.baseline
    grid = {"any": (GridPoint((1, 7), ((0, (7,)),)),)}
    profile = Profile(
        stage="compile", note="n", plan=plan, points=grid, prelude={}, repeats=3, core=1, infinities=infinities
    )
    asked = Answers(
        stage="compile", note="n", plan=plan, members=((0, (7,)), (1, (9,))), core=1, infinities=infinities, size=2
    )
    assert there_and_back(material.study, material.model, profile).trial == profile
    assert there_and_back(material.study, material.model, asked).trial == asked


def said(message: crossing.Said) -> crossing.Said:
    return crossing.decode_said(crossing.encode(message))


def test_a_trace_comes_back_column_for_column() -> None:
    requests = empty(REQUEST_COLUMNS | {"dim.width": "int64"}, 2)
    trace = Trace(
        run=RUN, dim_names=("width",), streams=("s",), entries=("any",), details=(), requests=requests,
        batches=empty({}, 0), marks=empty(MARK_COLUMNS, 1), samples=empty({}, 0),
    )  # fmt: skip
    back = said(crossing.Ended(Replayed(trace=trace)))
    assert isinstance(back, crossing.Ended)
    assert isinstance(back.result, Replayed)
    got = back.result.trace
    for name in ("requests", "marks"):
        for column, values in getattr(trace, name).columns.items():
            mine = getattr(got, name).columns[column]
            assert mine.dtype == values.dtype
            assert np.array_equal(mine, values, equal_nan=values.dtype.kind == "f")


def test_profiles_failures_answers_and_rows_come_back() -> None:
    failure = CompileFailure(entry="any", kind="crash", message="gone", plan="today")
    assert said(crossing.Ended(Profiled(profiles=(PROFILED,), failures=(failure,)))) == crossing.Ended(
        Profiled(profiles=(PROFILED,), failures=(failure,))
    )
    given = Answered((0, (7,)), "any", "dynamic", (1, 7), {"y": np.array([[1.5]], np.float32)})
    none = Answered((1, (9,)), None, "rejected", (), None, "no entry takes this shape")
    back = said(crossing.Ended(Answering(answers=(given, none))))
    assert isinstance(back, crossing.Ended)
    assert isinstance(back.result, Answering)
    one, other = back.result.answers
    assert one[:4] == given[:4]
    assert one.outputs is not None
    assert one.outputs["y"].tolist() == [[1.5]]
    assert other == none
    rows = crossing.Rows("marks", [[1, 2, None, float("inf"), "word"]])
    assert said(rows) == rows


def test_a_fault_is_raised_as_what_it_was_with_the_machine_s_name() -> None:
    fault = said(crossing.fault(MachineError("core 7 does not exist", where="envelope.cores", fix="name another")))
    assert isinstance(fault, crossing.Fault)
    error = crossing.raised(fault, "box-2")
    assert (type(error), error.where, error.fix) == (MachineError, "envelope.cores; machine box-2", "name another")


def test_a_bug_is_told_as_one_and_a_name_that_is_no_fault_of_ours_makes_no_class() -> None:
    error = crossing.raised(crossing.fault(ZeroDivisionError("by zero")), "box-2")
    assert isinstance(error, RunError)
    assert "ZeroDivisionError: by zero" in error.what
    assert isinstance(crossing.raised(crossing.Fault("annotations", "x", "", ""), "box-2"), RunError)


def test_what_does_not_cross_is_refused_before_it_is_sent() -> None:
    with pytest.raises(NotImplementedError, match="object does not cross"):
        crossing.encode(crossing.Rows("marks", [[object()]]))


# --- files ---------------------------------------------------------------------------------------------------------


def test_files_are_found_by_what_they_are_and_named_where_they_lie(material: Material, tmp_path: Path) -> None:
    (tmp_path / "bank.npz").write_bytes(b"bank")
    (tmp_path / "net.py").write_bytes(b"code")
    payload = msgspec.structs.replace(material.study.workload.payload, kind="real", bank="bank.npz")
    study = msgspec.structs.replace(
        material.study, workload=msgspec.structs.replace(material.study.workload, payload=payload)
    )
    model = msgspec.structs.replace(
        material.model, torch=f"{tmp_path}/net.py:make", torch_sha256="t", calibration="/c.npz", calibration_sha256="c"
    )
    given = Material(study, tmp_path, model, material.home)
    assert files_of(given) == {
        NETWORK: Laid(tmp_path / "network.bin", material.model.sha256),
        TORCH: Laid(tmp_path / "net.py", "t"),
        CALIBRATION: Laid(Path("/c.npz"), "c"),
        BANK: Laid(tmp_path / "bank.npz", file_digest(tmp_path / "bank.npz")),
    }
    there = {NETWORK: "/n/a.bin", TORCH: "/n/net.py", CALIBRATION: "/n/c.npz", BANK: "/n/bank.npz"}
    study_there, model_there = relocated(given, there, "/n/kept")
    assert study_there.workload.payload.bank == "/n/bank.npz"
    assert (model_there.path, model_there.torch, model_there.calibration, model_there.kept) == (
        "/n/a.bin", "/n/net.py:make", "/n/c.npz", "/n/kept",
    )  # fmt: skip


def test_a_network_in_a_package_stays_a_name_and_an_exported_program_is_a_file(material: Material) -> None:
    packaged = msgspec.structs.replace(material.model, path="", torch="package.module:make", torch_sha256="p")
    given = Material(material.study, material.folder, packaged, material.home)
    assert files_of(given) == {}
    assert relocated(given, {}, "")[1].torch == "package.module:make"
    exported = msgspec.structs.replace(material.model, path="", torch="/here/net.pt2", torch_sha256="x")
    given = Material(material.study, material.folder, exported, material.home)
    assert files_of(given) == {TORCH: Laid(Path("/here/net.pt2"), "x")}
    assert relocated(given, {TORCH: "/n/net.pt2"}, "")[1].torch == "/n/net.pt2"
