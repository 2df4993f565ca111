"""The compile stage's figures."""

from __future__ import annotations

from evidence_cases import profile
from msgspec.structs import replace

from trimtab.domain.profile import CompileFailure
from trimtab.domain.study import QualitySpec
from trimtab.evidence import compile as compiled

F32 = QualitySpec(precision="f32")
WALLS = [2.0, 2.2, 1.8, 2.1, 1.9, 2.0, 2.3, 1.7, 2.0, 2.0, 2.1, 1.9]


def texts(found: compiled.Findings) -> list[str]:
    return [finding.text for finding in found.findings]


def test_one_entry() -> None:
    found = compiled.findings([profile({(1, 100): WALLS})], [], F32)
    assert found.headline == "1 entries of 1 plan compiled in 0.25 s and 3 MiB."
    entries, shapes = found.table("compile.entries"), found.table("compile.shapes")
    assert entries is not None
    assert shapes is not None
    assert {name: column[0] for name, column in entries.columns.items()} == {
        "plan": "base", "entry": "dyn", "backend": "null", "optimisation": "default", "declared": "default",
        "executed": "f32", "executed_share": 1.0, "time": 250.0, "memory": 3.0, "peak": 8.0, "scratch": None,
        "workspace": None, "operators_before": 5, "operators": 1, "fusions": 0, "warm": 2.0, "first_excess": 18.0,
    }  # fmt: skip
    assert {name: column[0] for name, column in shapes.columns.items()} == {
        "plan": "base", "entry": "dyn", "executed": "1x100", "warm": 2.0, "lo": 1.9, "hi": 2.1, "p95": 2.3,
        "on_core": 2.0, "first": 20.0, "first_excess": 18.0, "n": 12,
    }  # fmt: skip


def test_what_one_run_holds_is_a_figure_only_where_the_runtime_counts() -> None:
    silent = profile({(1, 100): WALLS})
    counted = replace(silent, inspection=replace(silent.inspection, executed=(1, 100), workspace_bytes=3 << 20))
    figure = compiled.findings([counted], [], F32).figure("compile.base.dyn.workspace")
    assert figure is not None
    assert (figure.value, figure.unit, figure.note) == (3.0, "MiB", "one run at 1x100")
    assert compiled.findings([silent], [], F32).figure("compile.base.dyn.workspace") is None


def test_too_few_repeats_have_no_interval() -> None:
    shapes = compiled.findings([profile({(1, 9): [1, 2, 3]})], [], F32).table("compile.shapes")
    assert shapes is not None
    assert (shapes.columns["warm"], shapes.columns["lo"], shapes.columns["hi"]) == ((2.0,), (None,), (None,))


def test_entries_of_one_plan_share_one_sentence_about_precision() -> None:
    mixed = [
        profile({(1, 9): WALLS}, operators=[("MatMul", "bf16", part), ("Softmax", "f32", 100 - part)])
        for part in (96, 98)
    ]
    said = [text for text in texts(compiled.findings(mixed, [], F32)) if "does not execute" in text]
    assert said == [
        "base (2 entries) does not execute f32, which the study declares: 96.0 % to 98.0 % in bf16 of profiled time."
    ]


def test_a_declared_precision_that_is_not_executed_is_a_finding() -> None:
    silent = profile({(1, 9): WALLS}, operators=[("MatMul", "bf16", 97), ("Softmax", "f32", 3)])
    assert "base.dyn does not execute f32, which the study declares: 97.0 % in bf16 of profiled time." in texts(
        compiled.findings([silent], [], F32)
    )


def test_a_plans_own_precision_goes_before_the_studys() -> None:
    asked = profile({(1, 9): WALLS}, precision="bf16", operators=[("MatMul", "bf16", 97), ("Softmax", "f32", 3)])
    assert not any("declare" in text for text in texts(compiled.findings([asked], [], F32)))


def test_a_partly_executed_precision_shows_both_shares() -> None:
    mixed = profile({(1, 9): WALLS}, operators=[("MatMul", "f32", 60), ("Conv", "bf16", 40)])
    found = compiled.findings([mixed], [], F32)
    assert "base.dyn executes 60.0 % in f32, which the study declares; 40.0 % in bf16." in texts(found)


def test_without_times_shares_are_by_operators_and_say_so() -> None:
    untimed = profile({(1, 9): WALLS}, operators=[("MatMul", "bf16", -1), ("Conv", "bf16", -1), ("Cast", "f32", -1)])
    figure = compiled.findings([untimed], [], F32).figure("compile.base.dyn.precision.bf16")
    assert figure is not None
    assert figure.value is not None
    assert round(figure.value, 3) == 0.667
    assert figure.note == "of operators: the runtime gives no times"


def test_a_dear_first_run_is_a_finding_and_a_cheap_one_is_not() -> None:
    dear, cheap = (profile({(1, 9): WALLS}, first=first) for first in (20.0, 2.2))
    said = [text for text in texts(compiled.findings([dear], [], F32)) if "first run" in text]
    assert said == [
        "base.dyn: the first run of a shape takes 18 ms more than a warm one (2 ms), in the median of 1 shapes."
    ]
    assert not any("first run" in text for text in texts(compiled.findings([cheap], [], F32)))


def test_kernels_are_ranked_by_their_share_of_time() -> None:
    mixed = profile({(1, 9): WALLS}, operators=[("Add", "f32", 10), ("Conv", "f32", 45), ("Conv", "f32", 45)])
    kernels = compiled.findings([mixed], [], F32).table("compile.kernels")
    assert kernels is not None
    assert kernels.columns["kind"] == ("Conv", "Add")
    assert kernels.columns["share"] == (0.9, 0.1)
    assert kernels.columns["operators"] == (2, 1)


def test_failures_are_rows_and_findings() -> None:
    failure = CompileFailure(entry="b8", kind="timeout", message="no answer after 60 s", plan="wide")
    found = compiled.findings([profile({(1, 9): WALLS})], [failure], F32)
    assert "wide.b8 did not compile (timeout): no answer after 60 s" in texts(found)
    assert found.table("compile.failures") is not None
    assert found.status == "partial"
    nothing = compiled.findings([], [failure], F32)
    assert nothing.headline == "1 entries failed to compile; no entry was compiled, so nothing can be promised."
    assert nothing.table("compile.failures") is not None


def test_an_entry_without_warm_runs_still_reports() -> None:
    found = compiled.findings([profile({})], [], F32)
    figure = found.figure("compile.base.dyn.first_excess")
    assert figure is not None
    assert figure.value is None
