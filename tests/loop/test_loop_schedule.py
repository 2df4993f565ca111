"""The budget is dealt out whole: what is fixed, the starts, and every replay add up to it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.loop.schedule import AMPLE_S, CONFIRMED, FIXED_S, PROFILE_S, START_S, plan_time


@given(st.floats(600, 10_000), st.integers(1, 5), st.integers(1, 8), st.integers(0, 3))
def test_replays_starts_and_profiles_add_up_to_the_budget(
    budget_s: float, replays: int, profiles: int, conditions: int
) -> None:
    found = plan_time(budget_s, replays, profiles, None, conditions)
    tune = replays + (CONFIRMED + 1) * (replays if budget_s >= AMPLE_S else 1)
    held_out = 2 * replays * (1 + conditions)
    starts = START_S * (tune + held_out)
    if found.tune_s > 0:
        spent = FIXED_S + PROFILE_S * profiles + starts + tune * found.tune_s + held_out * found.held_out_s
        assert spent == pytest.approx(budget_s)


def test_conditions_shorten_every_replay_alike() -> None:
    plain, harder = plan_time(600, 3, 4, None), plan_time(600, 3, 4, None, conditions=2)
    assert harder.tune_s < plain.tune_s
    assert harder.held_out_s / harder.tune_s == pytest.approx(plain.held_out_s / plain.tune_s)


def test_a_fixed_length_is_taken_as_it_is() -> None:
    assert plan_time(60, 3, 4, 2.0, conditions=4).tune_s == 2.0
