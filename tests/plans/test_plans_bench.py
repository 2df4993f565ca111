"""The plan bench's pure parts: which plans a runtime has, and literal visits in, rows out."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

import pytest
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from plans.catalogue import NETWORKS, REFERENCE, Choice, choices, plan_of, refused
from plans.visits import Quality, Visit

from plans import page, run, visits
from trimtab import backends
from trimtab.domain.ports import Ability, BackendInfo
from trimtab.domain.profile import CompileFailure, CompileOptions, CompileProfile, Inspection, Operator, ShapeTiming
from trimtab.mapping.route import Router
from trimtab.store.study import load_study

MIB = 2**20
MINILM = next(one for one in NETWORKS if one.name == "minilm")


def info(*able: str, unable: str = "precision f16") -> BackendInfo:
    abilities = [Ability(name=name, ok=True, why="it can") for name in able]
    abilities.append(Ability(name=unable, ok=False, why="this CPU has none"))
    return BackendInfo(name="some", available=True, why="", versions={"some": "1"}, abilities=tuple(abilities))


def profile(warm_ms: float, *, peak: int = 100, scratch: int = -1, precision: str = "f32") -> CompileProfile:
    ns = round(warm_ms * 1e6)
    return CompileProfile(
        plan="p",
        entry="any",
        backend="some",
        versions={},
        options=CompileOptions(),
        compile_ns=1_500_000_000,
        memory_bytes=50 * MIB,
        peak_bytes=peak * MIB,
        scratch_bytes=scratch,
        inspection=Inspection(
            executed=(1, 32),
            operators=(Operator(name="a", kind="MatMul", kernel="k", precision=precision, ns=1000, fused=("b", "c")),),
            operators_before=3,
        ),
        timings=(ShapeTiming(executed=(1, 32), first_ns=9_000_000, wall_ns=(ns, ns, ns), cpu_ns=(ns, ns, ns)),),
    )


def visit(number: int, own: float, reference: float, choice: Choice = REFERENCE, **changes: object) -> Visit:
    found = {
        "profiles": (profile(own),),
        "failures": (),
        "quality": (Quality(band="3–32", values={"cosine": 0.99}, samples=16),) if number == 1 else (),
    } | changes
    return Visit(
        inputs="",
        network="minilm",
        plan=plan_of(choice, MINILM),
        mapping=choice.mapping,
        round=number,
        reference=(profile(reference),),
        payloads="real",
        **found,
    )


def test_a_runtime_is_measured_in_every_way_that_it_says_it_can() -> None:
    able = info("dynamic shapes", "precision f32", "precision bf16", "precision int8", "quantise static")
    assert [choice.id for choice in choices(able)] == [
        "some-f32-default-dynamic",
        "some-bf16-default-dynamic",
        "some-int8-default-quantise-static-dynamic",
    ]
    levels = info("dynamic shapes", "padded buckets", "graph-optimisation levels")
    assert [(c.optimisation, c.mapping) for c in choices(levels)] == [
        ("default", "dynamic"), ("off", "dynamic"), ("basic", "dynamic"), ("extended", "dynamic"), ("all", "dynamic"),
        ("default", "bucket"),
    ]  # fmt: skip
    assert list(refused(able)) == [("some", "precision f16", "this CPU has none")]


def test_a_silent_default_and_single_options_are_plans_of_their_own() -> None:
    found = replace(info("dynamic shapes", "padded buckets"), name="openvino")
    assert [choice.id for choice in choices(found)] == [
        "openvino-f32-default-dynamic",
        "openvino-default-default-dynamic",
        "openvino-f32-default-snippets-off-dynamic",
        "openvino-f32-default-bucket",
        "openvino-default-default-bucket",
    ]


def test_options_that_belong_together_are_one_plan() -> None:
    iree = list(choices(replace(info("dynamic shapes"), name="iree")))
    assert [choice.id for choice in iree[-2:]] == [
        "iree-f32-default-convolution-im2col-dynamic",
        "iree-f32-default-convolution-im2col-data-tiling-on-dynamic",
    ]
    assert plan_of(iree[-1], MINILM).compile.options == {"convolution": "im2col", "data_tiling": "on"}


def test_the_reference_is_one_of_the_measured_plans() -> None:
    found = backends.info(REFERENCE.backend)
    if not found.available:
        pytest.skip(found.why)
    assert REFERENCE in list(choices(found))


def test_buckets_take_every_size_of_their_band_and_nothing_runs_longer_than_its_end() -> None:
    router = Router(plan_of(Choice("some", "f32", "default", "bucket"), MINILM).compile)
    for band in MINILM.bands:
        assert [router.route((size,)).executed for size in (band.lo, band.hi)] == [(1, band.hi)] * 2
    dynamic = Router(plan_of(REFERENCE, MINILM).compile)
    assert dynamic.route((77,)).executed == (1, 77)


def test_ids_are_names_of_files() -> None:
    choice = Choice("some", "default", "default", "dynamic", (("keep_all", "On"),))
    assert choice.id == "some-default-default-keep-all-on-dynamic"


def test_a_row_is_the_plan_against_the_reference_of_the_same_visit() -> None:
    (row,) = page.rows([visit(1, own=5.0, reference=10.0), visit(2, own=8.0, reference=20.0)])
    assert (row.backend, row.precision, row.fusion, row.mapping, row.band) == (
        "onnxruntime", "f32", "default", "dynamic", "3–32",
    )  # fmt: skip
    assert (row.warm, row.first, row.spread) == pytest.approx((40**0.5, 9.0, 0.6))
    assert row.ratio == pytest.approx((0.5 * 0.4) ** 0.5)
    assert row.ratio_range == pytest.approx((0.4, 0.5))
    assert (row.compile, row.held, row.peak, row.scratch) == (1.5, 50.0, 100.0, None)
    assert (row.operators, row.operators_before, row.executed) == (1, 3, {"f32": 1.0})
    assert row.quality is not None
    assert row.quality.values == {"cosine": 0.99}


def test_a_plan_that_was_not_timed_in_every_visit_has_no_row_but_a_failure() -> None:
    lost = CompileFailure(plan="p", entry="any", kind="crash", message="it | died")
    found = [visit(1, 5.0, 10.0), visit(2, 5.0, 10.0, profiles=(), failures=(lost,))]
    assert page.rows(found) == []
    (failure,) = page.failures([*found, *found])
    assert (failure.kind, failure.message) == ("crash", "it | died")
    assert failure.places == ("onnxruntime-f32-default-dynamic (any)",)


def test_the_page_shows_ratios_memory_quality_precision_and_failures() -> None:
    half = Choice("openvino", "bf16", "default", "dynamic")
    lost = CompileFailure(plan="p", entry="any", kind="crash", message="it |\ndied")
    visits = [
        visit(1, 5.0, 10.0, half, profiles=(profile(5.0, scratch=3 * MIB, precision="bf16"),)),
        visit(1, 10.0, 10.0, profiles=(), failures=(lost,)),
    ]
    text = page.page(visits, [("some", "threads", "it has one")], ["Machine: this one"])
    assert "| openvino | bf16 | default | dynamic | 3–32 | 5 | one visit | 0.50 | 9 | 1.5 |" in text
    assert "| 50 / 100 / 3 | 1 of 3 | cosine 0.9900 (n=16) | bf16 100% |" in text
    assert "- fastest at 3–32: 0.50 openvino bf16, default, dynamic (cosine 0.9900 (n=16); bf16 100%)\n" in text
    assert "3–32: 10 ms (10 to 10, 2 visits)" in text
    assert "| crash | it \\| died |" in text
    assert "| some | threads | it has one |" in text


class Counting:
    """A bench that only counts; ``version`` stands for all that a visit depends on."""

    network = MINILM

    def __init__(self) -> None:
        self.version = "1"
        self.made: list[tuple[str, int]] = []

    def inputs(self, choice: Choice) -> str:
        return f"{choice.id} {self.version}"

    def visit(self, choice: Choice, number: int) -> Visit:
        self.made.append((choice.id, number))
        return replace(visit(number, 5.0, 10.0, choice), inputs=self.inputs(choice))


def test_a_run_that_was_ended_goes_on_and_makes_again_only_what_has_changed(tmp_path: Path) -> None:
    bench, able = Counting(), [info("dynamic shapes", "precision bf16")]
    run._measure([bench], able, Namespace(out=tmp_path, rounds=1, seconds=60.0))
    assert sorted(bench.made) == [("some-bf16-default-dynamic", 1), ("some-f32-default-dynamic", 1)]
    run._measure([bench], able, Namespace(out=tmp_path, rounds=2, seconds=60.0))
    assert [number for _, number in bench.made] == [1, 1, 2, 2]
    bench.version = "2"
    run._measure([bench], able, Namespace(out=tmp_path, rounds=1, seconds=60.0))
    assert [number for _, number in bench.made[4:]] == [1, 1]


def test_no_visit_begins_after_the_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench = Counting()
    run._measure([bench], [info("dynamic shapes")], Namespace(out=tmp_path, rounds=1, seconds=-1.0))
    assert bench.made == []
    assert "goes on from here" in capsys.readouterr().out


def test_a_network_has_the_torch_form_of_its_study_or_else_of_the_bench() -> None:
    named = {one.name: visits.with_torch(load_study(one.study), one).model.torch for one in NETWORKS}
    assert named == {"ocr": "network.py:recogniser", "minilm": "data/minilm.pt2"}
    assert all((one.study.parent / one.torch.partition(":")[0]).is_file() for one in NETWORKS if one.torch)
