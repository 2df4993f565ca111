"""The board: one trial a machine, one machine a comparison, lost nodes and their bounded second tries. No Ray here."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.errors import RunError
from trimtab.loop.trials.board import ATTEMPTS, Board, Place, Start

A1, A2 = Place("a1", "A", "env-a"), Place("a2", "A", "env-a")
B, C = Place("b", "B", "env-b"), Place("c", "C", "env-c")


def test_groups_run_at_the_same_time_on_different_machines_and_each_in_order_on_one() -> None:
    board = Board([(2, ""), (1, ""), (1, "")], [A1, B])
    assert [board.start(), board.start(), board.start()] == [Start(0, 0, A1), Start(1, 0, B), None]
    board.ended("b")
    assert board.start() == Start(2, 0, B)
    board.ended("b")
    assert board.start() is None, "the second trial of group 0 waits for the machine of its first"
    board.ended("a1")
    assert board.start() == Start(0, 1, A1)
    board.ended("a1")
    assert board.finished


def test_two_nodes_of_one_machine_never_run_at_the_same_time() -> None:
    board = Board([(1, ""), (1, "")], [A1, A2])
    assert board.start() == Start(0, 0, A1)
    assert board.start() is None
    board.ended("a1")
    assert board.start() == Start(1, 0, A1)


def test_a_group_that_continues_a_comparison_runs_where_that_began() -> None:
    board = Board([(1, "env-b")], [A1, B])
    assert board.start() == Start(0, 0, B)


def test_a_lost_node_s_trial_is_made_again_on_another_node_of_its_machine() -> None:
    board = Board([(2, "")], [A1, A2, B])
    board.start()
    board.ended("a1")
    assert board.start() == Start(0, 1, A1)
    board.lost("a1", "gone")
    assert board.start() == Start(0, 1, A2), "trial 0 was made by the same machine and stands"


def test_a_comparison_whose_machine_is_lost_starts_again_as_a_whole_elsewhere() -> None:
    board = Board([(2, "")], [A1, B])
    board.start()
    board.ended("a1")
    board.start()
    board.lost("a1", "gone")
    assert board.start() == Start(0, 0, B)


def test_a_comparison_that_waits_between_two_trials_moves_too() -> None:
    board = Board([(2, "")], [A1, B])
    board.start()
    board.ended("a1")
    board.lost("a1", "gone")
    assert board.start() == Start(0, 0, B)


def test_a_bound_group_never_moves_and_says_why() -> None:
    board = Board([(1, "env-a")], [A1, B])
    board.start()
    with pytest.raises(RunError, match="the machine that must go on is gone: node a1 died") as refused:
        board.lost("a1", "node a1 died")
    assert "run the same command again" in refused.value.fix


def test_a_group_that_is_bound_to_a_machine_that_is_not_there_is_refused_at_once() -> None:
    with pytest.raises(RunError, match="the machine that must go on is gone"):
        Board([(1, "env-c")], [A1, B])


def test_with_the_last_machine_everything_ends() -> None:
    board = Board([(1, ""), (1, "")], [A1])
    board.start()
    with pytest.raises(RunError, match="gone: power cut"):
        board.lost("a1", "power cut")


def test_a_trial_that_breaks_off_is_tried_a_bounded_number_of_times() -> None:
    board = Board([(1, "")], [A1])
    for _ in range(ATTEMPTS - 1):
        assert board.start() == Start(0, 0, A1)
        board.failed("a1", "killed by SIGKILL")
    board.start()
    with pytest.raises(RunError, match="a trial broke off 3 times; the last time: killed by SIGKILL"):
        board.failed("a1", "killed by SIGKILL")


@settings(deadline=None)
@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=6),
    machines=st.lists(st.sampled_from("ABC"), min_size=1, max_size=5),
    moves=st.lists(st.tuples(st.integers(0, 99), st.booleans()), max_size=60),
)
def test_whatever_ends_or_is_lost(sizes: list[int], machines: list[str], moves: list[tuple[int, bool]]) -> None:
    """A machine makes one trial at a time, and a group ends with all of its trials made by one machine, in order."""
    places = [Place(f"n{i}", machine, f"env-{machine}") for i, machine in enumerate(machines)]
    board = Board([(size, "") for size in sizes], places)
    running: dict[str, Start] = {}
    made: list[list[tuple[int, str]]] = [[] for _ in sizes]
    queue, lost = list(moves), False
    while not board.finished:
        while (start := board.start()) is not None:
            assert start.place.machine not in {other.place.machine for other in running.values()}
            running[start.place.node] = start
        pick, lose = queue.pop(0) if queue else (0, False)
        node = sorted(running)[pick % len(running)]
        start = running.pop(node)
        if not lose:
            board.ended(node)
            if start.trial == 0:
                made[start.group].clear()  # it started again: what another machine made does not count
            made[start.group].append((start.trial, start.place.machine))
            continue
        lost = True
        try:
            board.lost(node, "gone")
        except RunError:
            return  # given up, or nothing is left
    for size, trials in zip(sizes, made, strict=True):
        assert [trial for trial, _ in trials] == list(range(size))
        assert len({machine for _, machine in trials}) == 1
    assert lost or board.start() is None
