"""What benches share: marked sections of a page, and searches on a grid whose goodput is written down."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

import marked
import rivals

PAGE = """# Title

By hand.

<!-- bench:one -->

old

<!-- /bench:one -->

More by hand.
"""


def test_only_what_stands_between_the_marks_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    marked.fill(page, "one", "\n| a |\n\n")
    assert page.read_text() == PAGE.replace("old", "| a |")
    marked.fill(page, "one", "again")
    assert page.read_text() == PAGE.replace("old", "again")


@pytest.mark.parametrize(
    "text",
    [
        PAGE.replace("bench:one", "bench:two"),
        PAGE + PAGE,
        PAGE.replace("<!-- /bench:one -->\n", ""),
        PAGE.replace("/bench", "!").replace("bench:one", "/bench:one").replace("!:one", "bench:one"),  # turned around
    ],
)
def test_a_page_without_that_section_is_left_alone(tmp_path: Path, text: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(SystemExit, match="has no section 'one'"):
        marked.fill(page, "one", "new")
    assert page.read_text() == text


def test_a_table_and_a_share_as_they_are_printed() -> None:
    assert marked.table(("a", "b"), [("1", "2")]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"
    assert [marked.percent(share) for share in (-0.251, 0.0, 0.5)] == ["−25.1 %", "+0.0 %", "+50.0 %"]


class Hill:
    """Goodput falls with the distance from one plan; an evaluation costs what its share says."""

    axes = (4, 3, 2)
    whole = 1.0

    def __init__(self) -> None:
        self.spent = 0.0

    def evaluate(self, point: rivals.Point, share: float, seed: int) -> float:
        self.spent += share
        return 1 - 0.1 * sum(abs(a - b) for a, b in zip(point, (2, 1, 1), strict=True))


def test_neighbours_are_one_step_away_and_inside() -> None:
    assert rivals.neighbours((0, 1, 1), (4, 3, 2)) == [(1, 1, 1), (0, 0, 1), (0, 2, 1), (0, 1, 0)]


@pytest.mark.parametrize("search", [rivals.at_random, rivals.climbing])
def test_a_search_keeps_its_budget_and_finds_the_top_with_enough_of_it(search: rivals.Search) -> None:
    for seed in range(5):
        field = Hill()
        search(field, 5.0, seed)
        assert 1 <= field.spent <= 5
        assert search(Hill(), 24.0, seed) == (2, 1, 1)
