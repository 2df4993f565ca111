"""More replays where cells cannot be decided yet: who gets them, and when none are left."""

from __future__ import annotations

import pytest

from trimtab.loop.rounds import grant


@pytest.mark.parametrize(
    ("wanted", "affordable", "granted"),
    [
        ({"normal": 5}, 10, {"normal": 5}),
        ({"normal": 50}, 10, {"normal": 9}),
        ({"normal": 5, "cold start": 6}, 4, {"normal": 5, "cold start": 5}),
        ({"normal": 5, "cold start": 6}, 1, {"normal": 4, "cold start": 3}),
        ({"normal": 5}, -3, {"normal": 3}),
        ({}, 10, {}),
    ],
    ids=["what-it-needs", "at-most-three-times", "first-come", "one-left", "budget-spent", "nothing-wanted"],
)
def test_rounds_go_to_the_traffic_as_recorded_first(
    wanted: dict[str, int], affordable: int, granted: dict[str, int]
) -> None:
    assert grant(wanted, 3, affordable) == granted
