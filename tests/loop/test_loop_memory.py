"""Memory in the loop: the limit of an envelope, and what a move is charged. Written profiles, no process."""

from __future__ import annotations

from pathlib import Path

import pytest
from loop_kit import Silent, write_study
from msgspec.structs import replace

from parts import envelope
from trimtab.domain.envelope import Assumptions, memory_limit
from trimtab.domain.figure import Findings
from trimtab.domain.plan import ServePolicy
from trimtab.domain.profile import CompileOptions, CompileProfile, Inspection, MemoryPoint
from trimtab.domain.verdict import Move
from trimtab.loop import memory
from trimtab.loop.context import Context
from trimtab.store.packet import Packet
from trimtab.store.study import load_study

GIB, MIB = 2**30, 2**20
MACHINE = envelope(cgroup="v2 /", memory_bytes=8 * GIB, memory_limit_bytes=3 * GIB)


@pytest.fixture
def ctx(tmp_path: Path) -> Context:
    """A run whose baseline has one profile: 400 MiB at most, 300 MiB after 20 shapes and 380 MiB after 120."""
    study = load_study(write_study(tmp_path))
    made = Context(study=study, folder=tmp_path, packet=Packet(tmp_path / "packet"), budget_s=60, progress=Silent())
    profile = CompileProfile(
        plan="today", entry="any", backend="null", versions={}, options=CompileOptions(), compile_ns=1,
        memory_bytes=20 * MIB, peak_bytes=400 * MIB, scratch_bytes=MIB, timings=(),
        inspection=Inspection(executed=(1, 5), operators=(), operators_before=0),
        growth=tuple(MemoryPoint(shapes=n, resident_bytes=held * MIB) for n, held in ((20, 300), (120, 380))),
    )  # fmt: skip
    made.packet.write_envelope(MACHINE, ())
    made.packet.write_plan(study.baseline)
    made.packet.write_profiles("today", [profile])
    return made


@pytest.mark.parametrize(
    ("declared", "group", "machine", "limit"),
    [
        (2.0, 3 * GIB, 8 * GIB, 2 * GIB),
        (4.0, 3 * GIB, 8 * GIB, 3 * GIB),
        (None, None, 8 * GIB, 8 * GIB),
        (None, None, 0, None),
    ],
)
def test_the_limit_is_the_least_of_what_is_known(
    declared: float | None, group: int | None, machine: int, limit: int | None
) -> None:
    envelope = replace(MACHINE, memory_limit_bytes=group, memory_bytes=machine)
    assert memory_limit(Assumptions(memory_gib=declared), envelope) == limit


def test_a_move_is_charged_with_the_peak_of_all_its_workers(ctx: Context) -> None:
    assert memory.limit(ctx) == 3 * GIB
    two = replace(ctx.study.baseline, id="two", serve=ServePolicy(workers=2))
    one, both = (
        memory.charged(ctx, Move(kind="workers", sentence="", owner="runtime", plan=plan, size=1))
        for plan in (ctx.study.baseline, two)
    )
    assert (one.peak_mib, both.peak_mib) == (400.0, 800.0)


def test_the_compile_stage_carries_memory_by_plan_and_its_curve(ctx: Context) -> None:
    found = memory.beside(ctx, Findings(stage="compile", headline=""), [ctx.study.baseline])
    table, curve = found.table("compile.memory"), found.table("compile.growth")
    assert table is not None
    assert curve is not None
    assert (table.columns["peak"], table.columns["growth"], table.columns["limit"]) == ((400.0,), (80.0,), (3072.0,))
    assert curve.columns["resident"] == (300.0, 380.0)
    assert [finding.text for finding in found.findings] == [
        "today.any: memory grows with the shapes it meets, from 300 MiB after 20 to 380 MiB after 120."
    ]
