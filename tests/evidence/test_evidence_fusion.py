"""Fusion levels side by side: operators, time, and always the memory."""

from __future__ import annotations

from pathlib import Path

from evidence_cases import profile
from msgspec.structs import replace

from trimtab.domain.plan import Optimisation
from trimtab.domain.profile import CompileOptions, CompileProfile
from trimtab.domain.study import QualitySpec
from trimtab.evidence import compile as compiled
from trimtab.evidence import fusion

WIDTHS = ((1, 50), (1, 100), (1, 400), (4, 100))


def at(
    level: Optimisation, warm: float, operators: int, peak: int, plan: str = "", entry: str = "any"
) -> CompileProfile:
    """``warm`` ms at every profiled shape."""
    made = profile(
        {shape: [warm] * 12 for shape in WIDTHS}, entry=entry, plan=plan or f"fusion-{level}",
        operators=[("Conv", "f32", 100)] * operators, before=9,
    )  # fmt: skip
    return replace(made, options=CompileOptions(optimisation=level), peak_bytes=peak << 20)


TODAY = at("default", 3.0, 4, 200, plan="today")
OFF = at("off", 4.5, 9, 150)
BASIC = at("basic", 3.6, 7, 180)


def test_one_row_a_level_with_time_and_memory() -> None:
    found = fusion.levels([TODAY, OFF, BASIC])
    assert found is not None
    names = ("plan", "level", "operators_before", "operators", "shape", "warm", "peak", "compile")
    assert found.columns["largest"] == ("1x400",) * 3
    assert list(zip(*(found.columns[name] for name in names), strict=True)) == [
        ("today", "default", 9, 4, "1x100", 3.0, 200.0, 250.0),
        ("fusion-off", "off", 9, 9, "1x100", 4.5, 150.0, 250.0),
        ("fusion-basic", "basic", 9, 7, "1x100", 3.6, 180.0, 250.0),
    ]
    assert found.columns["warm_lo"] == (3.0, 4.5, 3.6)


def test_every_sentence_holds_the_memory_beside_the_time() -> None:
    assert [finding.text for finding in fusion.told([TODAY, OFF])] == [
        "any compiled with level off instead of default: 9 operators instead of 4, +50.0 % time at 1x100 "
        "(+50.0 % to +50.0 %), +50.0 % time at 1x400 (+50.0 % to +50.0 %), -25.0 % peak memory (150 MiB)."
    ]
    blind = replace(OFF, peak_bytes=-1)
    assert next(fusion.told([TODAY, blind])).text.endswith("peak memory not known.")


def test_what_one_run_holds_stands_beside_its_time_where_the_runtime_counts() -> None:
    less, more = (
        replace(one, inspection=replace(one.inspection, workspace_bytes=mib << 20))
        for one, mib in ((TODAY, 8), (OFF, 12))
    )
    found = fusion.levels([less, more])
    assert found is not None
    assert (found.columns["workspace"], found.columns["scratch"]) == ((8.0, 12.0), (None, None))
    assert next(fusion.told([less, more])).text == (
        "any compiled with level off instead of default: 9 operators instead of 4, +50.0 % time at 1x100 "
        "(+50.0 % to +50.0 %), +50.0 % time at 1x400 (+50.0 % to +50.0 %), +50.0 % held in one run (12 MiB), "
        "-25.0 % peak memory (150 MiB)."
    )
    half_known = fusion.levels([less, OFF])
    assert half_known is not None
    assert half_known.columns["workspace"] == (8.0, None)
    assert "held in one run" not in next(fusion.told([less, OFF])).text


def test_the_page_of_metrics_holds_these_changes() -> None:
    page = " ".join((Path(__file__).parents[2] / "docs" / "metrics.md").read_text().split())
    text = next(fusion.told([TODAY, OFF])).text
    time, peak = (text.split(word)[0].rsplit(",", 1)[1].strip() for word in (" time at", " peak memory"))
    assert f"off: 9 operators, 4.5 ms, 150 MiB: {time} time, {peak} peak memory." in page


def test_plans_that_differ_in_more_than_the_level_are_not_set_side_by_side() -> None:
    more_threads = replace(OFF, options=CompileOptions(optimisation="off", threads=2))
    other_entry = at("off", 4.5, 9, 150, entry="to-400")
    other_backend = replace(OFF, backend="openvino")
    assert fusion.levels([TODAY, more_threads, other_entry, other_backend]) is None


def test_a_second_plan_of_the_same_level_is_left_out() -> None:
    twin = at("default", 3.3, 4, 200, plan="refit-4")
    found = fusion.levels([TODAY, twin, OFF])
    assert found is not None
    assert found.columns["plan"] == ("today", "fusion-off")


def test_without_a_common_shape_there_is_no_time() -> None:
    elsewhere = replace(OFF, timings=profile({(1, 7): [1.0] * 12}).timings)
    found = fusion.levels([TODAY, elsewhere])
    assert found is not None
    assert (found.columns["shape"], found.columns["warm"], found.columns["long"]) == (("", ""), *[(None, None)] * 2)


def test_the_compile_stage_carries_it() -> None:
    told = compiled.findings([TODAY, OFF], [], QualitySpec(precision="default"))
    assert told.table("compile.fusion") is not None
    assert any("instead of default" in finding.text for finding in told.findings)
    assert compiled.findings([TODAY], [], QualitySpec()).table("compile.fusion") is None


def test_a_fusion_that_is_left_out_is_a_level_of_its_own_and_other_options_are_not() -> None:
    without = {"disable": "ConvActivationFusion", "arena": "off"}
    plain, less, pooled = (
        replace(TODAY, plan=plan, options=CompileOptions(extra=extra))
        for plan, extra in (("plain", {"arena": "off"}), ("less", without), ("pooled", {"arena": "on"}))
    )
    found = fusion.levels([plain, less, pooled])
    assert found is not None
    assert found.columns["plan"] == ("plain", "less")
    assert found.columns["level"] == ("default", "default, disable = ConvActivationFusion")
