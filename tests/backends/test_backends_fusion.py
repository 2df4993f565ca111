"""Fusion levels of a real runtime on a tiny network: what the optimiser folds shows in the figures."""

from __future__ import annotations

from pathlib import Path

import backends_nets as nets
import pytest

from trimtab import backends
from trimtab.domain.plan import Optimisation
from trimtab.domain.profile import CompileFailure, CompileOptions, CompileProfile, ShapeTiming
from trimtab.evidence import fusion

WHOLE = nets.entry("dynamic", (1,), (40,))
LEVELS: tuple[Optimisation, ...] = ("default", "off", "basic", "extended", "all")


@pytest.fixture(scope="module")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> list[CompileProfile]:
    """conv -> relu at each level; times are given, operators are what ONNX Runtime says."""
    model, backend = nets.line(tmp_path_factory.mktemp("net")), backends.factory("onnxruntime")()
    found = []
    for number, level in enumerate(LEVELS):
        options = CompileOptions(optimisation=level)
        compiled = backend.compile(model, WHOLE, options)
        assert not isinstance(compiled, CompileFailure)
        timing = ShapeTiming(executed=(1, 16), first_ns=9, wall_ns=(100 + number,) * 5, cpu_ns=())
        found.append(
            CompileProfile(
                plan=f"fusion-{level}", entry=WHOLE.id, backend="onnxruntime", versions={}, options=options,
                compile_ns=1, memory_bytes=0, peak_bytes=1 << 20,
                inspection=compiled.inspect(nets.inputs(model, 1, 16)), timings=(timing,),
            )
        )  # fmt: skip
        compiled.close()
    return found


def test_more_is_fused_at_a_higher_level(profiles: list[CompileProfile]) -> None:
    found = fusion.levels(profiles)
    assert found is not None
    names = ("level", "operators_before", "operators", "fused")
    assert list(zip(*(found.columns[name] for name in names), strict=True)) == [
        ("default", 2, 1, 1),
        ("off", 2, 2, 0),
        ("basic", 2, 2, 0),
        ("extended", 2, 1, 1),
        ("all", 2, 1, 1),
    ]
    assert "2 operators instead of 1" in next(fusion.told(profiles)).text


def test_a_runtime_says_whether_it_has_levels() -> None:
    can = {name: {a.name: a.ok for a in backends.info(name).abilities} for name in ("onnxruntime", "null")}
    assert can["onnxruntime"]["graph-optimisation levels"]
    assert "graph-optimisation levels" not in can["null"]


def test_a_runtime_without_levels_refuses_one(tmp_path: Path) -> None:
    refused = backends.factory("null")().compile(nets.line(tmp_path), WHOLE, CompileOptions(optimisation="off"))
    assert isinstance(refused, CompileFailure)
    assert refused.kind == "unsupported"
