"""The budget is dealt out whole: what is fixed, the starts, and every replay add up to it."""

from __future__ import annotations

import importlib
from pathlib import Path

import loop_kit
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from trimtab import backends
from trimtab.loop.context import Context
from trimtab.loop.schedule import AMPLE_S, CONFIRMED, FIXED_S, PROFILE_S, START_S, plan_time, profiling_s, starting_s
from trimtab.store.packet import Packet, build_manifest, verify
from trimtab.store.study import load_study


@given(st.floats(600, 10_000), st.integers(1, 5), st.floats(1, 100), st.integers(0, 3), st.floats(1, 9))
def test_replays_starts_and_profiles_add_up_to_the_budget(
    budget_s: float, replays: int, profiling: float, conditions: int, starting: float
) -> None:
    found = plan_time(budget_s, replays, profiling, None, conditions, starting=starting)
    tune = replays + (CONFIRMED + 1) * (replays if budget_s >= AMPLE_S else 1)
    held_out = 2 * replays * (1 + conditions)
    starts = starting * (tune + held_out)
    if found.tune_s > 0:
        spent = FIXED_S + profiling + starts + tune * found.tune_s + held_out * found.held_out_s
        assert spent == pytest.approx(budget_s)


def test_conditions_shorten_every_replay_alike() -> None:
    plain, harder = plan_time(600, 3, 4, None), plan_time(600, 3, 4, None, conditions=2)
    assert harder.tune_s < plain.tune_s
    assert harder.held_out_s / harder.tune_s == pytest.approx(plain.held_out_s / plain.tune_s)


def test_a_fixed_length_is_taken_as_it_is() -> None:
    assert plan_time(60, 3, 4, 2.0, conditions=4).tune_s == 2.0


def test_what_an_entry_takes_is_its_backends_and_counts_for_each_entry_of_each_plan(tmp_path: Path) -> None:
    plain = load_study(loop_kit.write_study(tmp_path))
    slow = {"null": 0.0, "iree": 20.0}
    # The baseline, the reference, the lowest level, and two buckets.
    assert (profiling_s(plain, slow.__getitem__), starting_s(plain, slow.__getitem__)) == (4 * PROFILE_S, START_S)
    compile_ = replace(plain.baseline.compile, backend="iree")
    tried = replace(
        plain,
        baseline=replace(plain.baseline, compile=compile_),
        candidates=(replace(plain.baseline, id="other"),),
        space=replace(plain.space, precisions=("int8",), backends=("null",)),
    )
    # One dynamic entry: baseline, reference, lowest level, int8 in two ways, two buckets and the dynamic entry.
    assert profiling_s(tried, slow.__getitem__) == 8 * PROFILE_S + (1 + 1 + 1 + 2 + 3) * 2 * 20.0
    assert starting_s(tried, slow.__getitem__) == START_S + 20.0


def test_slow_compilers_say_so_and_fast_ones_need_not() -> None:
    declared = {name: backends.info(name).entry_s for name in ("null", "onnxruntime", "openvino")}
    assert set(declared.values()) == {0.0}
    assert all(importlib.import_module(f"trimtab.backends.{name}").ENTRY_S > START_S for name in ("iree", "torch"))


def test_what_is_made_from_the_network_is_kept_beside_the_checkpoints_and_is_no_evidence(tmp_path: Path) -> None:
    study, packet = load_study(loop_kit.write_study(tmp_path)), Packet(tmp_path / "packet")
    kept = Path(Context(study, tmp_path, packet, 60.0, loop_kit.Silent()).model.kept)
    kept.mkdir(parents=True)
    (kept / "made.onnx").write_bytes(b"a network")
    build_manifest(packet.folder, "evidence", "0")
    assert kept.is_relative_to(packet.folder)
    assert verify(packet.folder) == []
    assert "made.onnx" not in (packet.folder / "manifest.json").read_text()
