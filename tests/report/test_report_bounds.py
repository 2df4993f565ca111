"""Where the name of a bound stands: at the end and on the side that the curves leave free."""

from __future__ import annotations

import pytest

from trimtab.report import bounds, marks

WHERE = marks.x("t", domain=(0.0, 10.0))
HIGH = marks.y("p95", domain=(0.0, 100.0))


@pytest.mark.parametrize(
    ("bound", "curves", "place"),
    [
        (60.0, [], ("right", -8)),
        (60.0, [[(0.0, 10.0), (10.0, 66.0)]], ("left", -8)),  # it ends where the name would stand
        (60.0, [[(0.0, 66.0), (10.0, 66.0)]], ("right", 9)),  # one window, just above: below the line
        (60.0, [[(0.0, 66.0), (5.0, 66.0), (5.0, 54.0), (10.0, 54.0)]], ("right", -8)),
        (60.0, [[(10.0, 66.0)]], ("left", -8)),  # a single dot
        (5.0, [[(0.0, 12.0), (10.0, 12.0)]], ("right", -8)),  # below it stand the labels of the axis
    ],
)
def test_the_name_stands_where_there_is_room(bound: float, curves: list[bounds.Curve], place: tuple[str, int]) -> None:
    line, name = bounds.named(WHERE, HIGH, bound, "bound 60 ms", curves)
    assert line["data"]["values"][0]["p95"] == bound
    row, mark = name["data"]["values"][0], name["mark"]
    assert (row["t"], mark.get("align")) == ((10.0, "right") if place[0] == "right" else (0.0, "left"))
    assert mark["dy"] == place[1]


def test_a_label_has_a_halo_of_the_ground_unless_it_stands_on_a_mark() -> None:
    assert marks.words()["stroke"] == "var(--ground)"
    assert marks.words(stroke=None)["stroke"] is None
