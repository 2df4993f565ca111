"""The serving machine, event by event. Each machine has spent its first events on starting (cause numbers follow)."""

from __future__ import annotations

import pytest
from serving_kit import ANY, LARGE, SMALL, machine_of, plan_of

from trimtab.domain.events import (
    Arrived,
    BatchDone,
    Command,
    Dispatch,
    EntryFailed,
    EntryReady,
    Event,
    Finish,
    Occupied,
    Prepare,
    Released,
    Replace,
    SetTimer,
    Stopped,
    TimerFired,
    WorkerDown,
    WorkerUp,
)
from trimtab.errors import RunError, StudyError
from trimtab.serving.machine import Machine


def arrive(t: int, request: int, width: int = 150, stream: int = 0) -> Arrived:
    return Arrived(t, request, stream, (width,), t)


def done(t: int, worker: int, batch: int, error: str = "none") -> BatchDone:
    return BatchDone(t, worker, batch, t - 1, t, error)  # type: ignore[arg-type]


def feed(machine: Machine, *events: Event) -> list[Command]:
    return [command for event in events for command in machine.handle(event)]


def brief(commands: list[Command]) -> list[tuple[object, ...]]:
    """What matters of commands: (sent, worker, entry, members), (ended, request, error), (wake, at)."""
    out: list[tuple[object, ...]] = []
    for command in commands:
        match command:
            case Dispatch():
                out.append(("sent", command.worker, command.entry, command.members))
            case Finish():
                out.append(("ended", command.request, command.error))
            case SetTimer():
                out.append(("wake", command.at))
            case _:
                out.append((type(command).__name__, command.worker))
    return out


def test_a_fresh_worker_prepares_every_entry_and_then_takes_traffic() -> None:
    machine = machine_of(plan_of(SMALL, ANY, warm=((1, 100), (1, 300))), ready=False)
    assert feed(machine, arrive(0, 0)) == []
    assert feed(machine, WorkerUp(1, 0)) == [
        Prepare(1, 0, "small", ((1, 100),)),
        Prepare(1, 0, "any", ((1, 300),)),
    ]
    assert feed(machine, EntryReady(2, 0, "any", ((1, 300),))) == []  # still compiling the other one
    assert feed(machine, EntryReady(3, 0, "small", ((1, 100),))) == [
        Dispatch(3, 0, 0, "any", "dynamic", (0,), (1, 150), True, True, False, 0, 0, 0, 0)
    ]
    assert feed(machine, done(9, 0, 0)) == [Finish(4, 0, "none")]
    assert machine.unfinished == 0


def test_first_in_first_out_over_all_entries() -> None:
    machine = machine_of(plan_of(SMALL, ANY))
    assert brief(feed(machine, arrive(1, 0, 300), arrive(2, 1, 90), arrive(3, 2, 300), arrive(4, 3, 80))) == [
        ("sent", 0, "any", (0,))
    ]
    assert brief(feed(machine, done(5, 0, 0), done(6, 0, 1), done(7, 0, 2), done(8, 0, 3))) == [
        ("ended", 0, "none"), ("sent", 0, "small", (1,)),
        ("ended", 1, "none"), ("sent", 0, "any", (2,)),
        ("ended", 2, "none"), ("sent", 0, "small", (3,)),
        ("ended", 3, "none"),
    ]  # fmt: skip


def test_a_batch_forms_late_from_one_entry_only() -> None:
    machine = machine_of(plan_of(SMALL, ANY, size=3, hold_ns=0))
    feed(machine, arrive(0, 0))
    for request, width in enumerate([90, 300, 80, 310, 320, 330, 70], start=1):
        feed(machine, arrive(request, request, width))
    assert feed(machine, done(20, 0, 0))[1:] == [
        Dispatch(11, 1, 0, "small", "padded", (1, 3, 7), (3, 100), True, True, False, 0, 0, 1, 0)
    ]
    assert feed(machine, done(30, 0, 1))[3:] == [
        Dispatch(12, 2, 0, "any", "dynamic", (2, 4, 5), (3, 320), True, True, False, 0, 0, 2, 0)
    ]
    assert brief(feed(machine, done(40, 0, 2))[3:]) == [("sent", 0, "any", (6,))]


def test_a_free_worker_waits_for_the_hold_or_for_a_full_batch() -> None:
    machine = machine_of(plan_of(ANY, size=2, hold_ns=10))
    assert feed(machine, arrive(100, 0)) == [SetTimer(2, 110, 0)]
    assert brief(feed(machine, TimerFired(110, 0))) == [("sent", 0, "any", (0,))]
    assert brief(feed(machine, done(115, 0, 0), arrive(120, 1))) == [("ended", 0, "none"), ("wake", 130)]
    assert brief(feed(machine, arrive(125, 2))) == [("sent", 0, "any", (1, 2))]
    assert feed(machine, TimerFired(130, 1)) == []


def test_two_timers_for_one_moment_of_one_queue_are_never_set() -> None:
    machine = machine_of(plan_of(ANY, size=4, hold_ns=10, workers=2))
    assert brief(feed(machine, arrive(0, 0), arrive(1, 1), Occupied(2, 0, "pace"), Released(3, 0, "pace"))) == [
        ("wake", 10)
    ]
    early = feed(machine, TimerFired(9, 0))  # a clock that fires early is asked again
    assert early == [SetTimer(8, 10, 1)]


def test_no_timer_while_nobody_could_serve() -> None:
    machine = machine_of(plan_of(ANY, size=4, hold_ns=10))
    feed(machine, Occupied(0, 0, "pace"))
    assert feed(machine, arrive(1, 0)) == []
    assert brief(feed(machine, Released(5, 0, "pace"))) == [("wake", 11)]
    feed(machine, arrive(6, 1), Occupied(7, 0, "pace"))
    assert brief(feed(machine, Released(20, 0, "pace"))) == [("sent", 0, "any", (0, 1))]  # its hold is long over


def test_the_worker_that_is_free_the_longest_takes_the_work() -> None:
    machine = machine_of(plan_of(ANY, workers=3))
    sent = brief(feed(machine, arrive(1, 0), arrive(2, 1), arrive(3, 2)))
    assert [command[1] for command in sent] == [0, 1, 2]
    feed(machine, done(4, 1, 1), done(5, 0, 0), done(6, 2, 2))
    feed(machine, Occupied(7, 1, "pace"), Released(8, 1, "pace"))
    assert [c[1] for c in brief(feed(machine, arrive(9, 3), arrive(10, 4), arrive(11, 5)))] == [0, 2, 1]


def test_news_of_a_free_worker_does_not_cost_it_its_place() -> None:
    machine = machine_of(plan_of(SMALL, ANY, workers=2))
    feed(machine, EntryFailed(1, 0, "small", "no memory"), Released(2, 0, "pace"))
    assert brief(feed(machine, arrive(3, 0))) == [("sent", 0, "any", (0,))]


def test_affinity_keeps_a_stream_on_its_worker() -> None:
    machine = machine_of(plan_of(ANY, workers=2, placement="stream-affinity"))
    assert brief(feed(machine, arrive(1, 0, stream=3), arrive(2, 1, stream=5), arrive(3, 2, stream=4))) == [
        ("sent", 1, "any", (0,)),
        ("sent", 0, "any", (2,)),
    ]
    assert brief(feed(machine, done(4, 0, 1))) == [("ended", 2, "none")]  # request 1 waits for worker 1
    assert brief(feed(machine, done(5, 1, 0))) == [("ended", 0, "none"), ("sent", 1, "any", (1,))]


def flags(commands: list[Command]) -> list[tuple[bool, bool, bool]]:
    return [(c.first_seen, c.changed, c.outside) for c in commands if isinstance(c, Dispatch)]


def test_first_seen_and_changed_are_kept_per_process() -> None:
    machine = machine_of(plan_of(ANY, fallback="any", warm=((1, 150),)))
    assert flags(feed(machine, arrive(1, 0, 150))) == [(False, False, False)]
    assert flags(feed(machine, done(2, 0, 0), arrive(3, 1, 160))) == [(True, True, False)]
    assert flags(feed(machine, done(4, 0, 1), arrive(5, 2, 160))) == [(False, False, False)]
    assert flags(feed(machine, done(6, 0, 2), arrive(7, 3, 999))) == [(True, True, True)]
    feed(machine, WorkerDown(8, 0, "crash"), WorkerUp(9, 0), EntryReady(10, 0, "any", ((1, 150),)))
    assert flags(feed(machine, arrive(11, 4, 160))) == [(True, True, False)]


def test_a_failed_first_run_is_still_to_come() -> None:
    machine = machine_of(plan_of(ANY))
    assert flags(feed(machine, arrive(1, 0))) == [(True, False, False)]
    assert brief(feed(machine, done(2, 0, 0, "backend-error"))) == [("ended", 0, "backend-error")]
    assert flags(feed(machine, arrive(3, 1))) == [(True, False, False)]


def test_a_mixed_batch_bears_the_worst_route_of_its_members() -> None:
    machine = machine_of(plan_of(ANY, size=2, hold_ns=0, fallback="any"))
    feed(machine, arrive(0, 0), arrive(1, 1, 100), arrive(2, 2, 500))
    assert feed(machine, done(3, 0, 0))[1:] == [
        Dispatch(5, 1, 0, "any", "fallback", (1, 2), (2, 500), True, True, True, 0, 0, 1, 0)
    ]


def test_a_rejected_request_ends_at_once() -> None:
    machine = machine_of(plan_of(ANY))
    assert feed(machine, arrive(5, 0, 401)) == [Finish(2, 0, "rejected")]
    assert machine.unfinished == 0


def test_a_worker_that_goes_down_gives_its_batch_up() -> None:
    machine = machine_of(plan_of(ANY))
    feed(machine, arrive(1, 0), arrive(2, 1))
    assert feed(machine, WorkerDown(5, 0, "hang")) == [Finish(4, 0, "hang"), Replace(4, 0)]
    assert feed(machine, done(6, 0, 0)) == []  # a late word of the dead process
    assert machine.late == 1
    assert feed(machine, WorkerUp(7, 0)) == [Prepare(6, 0, "any", ())]
    assert brief(feed(machine, EntryReady(8, 0, "any", ()))) == [("sent", 0, "any", (1,))]
    assert feed(machine, done(9, 0, 0)) == []  # the same batch again
    assert machine.late == 2


def test_a_replacement_that_dies_while_it_starts_is_replaced() -> None:
    machine = machine_of(plan_of(ANY))
    assert brief(feed(machine, WorkerDown(1, 0, "crash"), WorkerDown(2, 0, "crash"))) == [
        ("Replace", 0),
        ("Replace", 0),
    ]
    feed(machine, WorkerUp(3, 0))
    assert brief(feed(machine, WorkerDown(4, 0, "crash"), EntryReady(5, 0, "any", ()))) == [("Replace", 0)]
    assert machine.late == 1


def test_an_entry_is_served_only_where_it_did_not_fail() -> None:
    machine = machine_of(plan_of(SMALL, ANY, workers=2))
    feed(machine, EntryFailed(1, 0, "small", "no memory"))
    assert brief(feed(machine, arrive(2, 0, 90), arrive(3, 1, 90))) == [("sent", 1, "small", (0,))]
    assert brief(feed(machine, done(4, 1, 0))) == [("ended", 0, "none"), ("sent", 1, "small", (1,))]
    assert brief(feed(machine, arrive(5, 2, 150))) == [("sent", 0, "any", (2,))]
    feed(machine, WorkerDown(6, 0, "crash"))
    assert feed(machine, WorkerUp(7, 0)) == [Prepare(12, 0, "any", ())]  # not the one that failed here


def test_when_no_worker_can_ever_hold_an_entry_its_requests_end() -> None:
    machine = machine_of(plan_of(SMALL, ANY, workers=2), ready=False)
    feed(machine, arrive(0, 0, 90), arrive(0, 1, 150), arrive(0, 2, 80), WorkerUp(1, 0), WorkerUp(1, 1))
    assert feed(machine, EntryFailed(2, 0, "small", "no")) == []
    assert brief(feed(machine, EntryFailed(3, 1, "small", "no"))) == [
        ("ended", 0, "entry-failed"),
        ("ended", 2, "entry-failed"),
    ]
    assert brief(feed(machine, arrive(4, 3, 70))) == [("ended", 3, "entry-failed")]
    assert brief(feed(machine, EntryReady(5, 0, "any", ()))) == [("sent", 0, "any", (1,))]


def test_stopped_ends_everything_once() -> None:
    machine = machine_of(plan_of(SMALL, ANY))
    feed(machine, arrive(1, 0), arrive(2, 1), arrive(3, 2, 90))
    assert brief(feed(machine, Stopped(4))) == [("ended", i, "unfinished") for i in range(3)]
    assert brief(feed(machine, done(5, 0, 0), WorkerDown(6, 0, "crash"), WorkerUp(7, 0), arrive(8, 3))) == [
        ("ended", 3, "unfinished")
    ]
    assert (machine.unfinished, machine.late) == (0, 1)


def test_every_command_names_its_cause() -> None:
    machine = machine_of(plan_of(LARGE))
    assert machine.handled == 2
    feed(machine, arrive(1, 0), arrive(2, 1))
    assert [command.cause for command in feed(machine, done(3, 0, 0))] == [4, 4]


def test_a_driver_that_contradicts_itself_is_stopped() -> None:
    machine = machine_of(plan_of(ANY))
    feed(machine, arrive(1, 0), arrive(2, 1))
    with pytest.raises(RunError, match="request 1 arrived twice"):
        machine.handle(arrive(3, 1))
    with pytest.raises(RunError, match="worker 0 came up twice"):
        machine.handle(WorkerUp(4, 0))


def test_a_machine_needs_a_core_for_each_worker() -> None:
    plan = plan_of(ANY, workers=2)
    machine = machine_of(plan)
    with pytest.raises(StudyError, match="2 workers for 1 cores"):
        Machine(plan, machine.rules.router, machine.rules.predictor, (0,))


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        (lambda m: m.open.discard(1), "waits or runs"),
        (lambda m: m.free.setdefault(0), "list of free workers"),
        (lambda m: m.slots[0].holds.clear(), "an entry that it got ready"),
        (lambda m: m.slots[0].failed.add("any"), "no entry that failed"),
        (lambda m: m.pending.clear(), "pending exactly if"),
        (lambda m: next(iter(m.groups.values())).times.pop(), "times are those of the queue"),
        (lambda m: next(iter(m.groups.values())).queue.rotate(), "in serving order"),
    ],
)
def test_check_sees_a_broken_state(harm: object, sentence: str) -> None:
    machine = machine_of(plan_of(ANY))
    feed(machine, arrive(1, 0), arrive(2, 1), arrive(3, 2))
    harm(machine)  # type: ignore[operator]
    with pytest.raises(RunError, match=sentence):
        machine.check()


def test_a_dispatch_says_how_long_its_worker_was_free() -> None:
    machine = machine_of(plan_of(ANY))
    feed(machine, arrive(0, 0), done(9, 0, 0))
    rested = feed(machine, arrive(30, 1))
    busy = feed(machine, arrive(31, 2), done(40, 0, 1))
    assert [command.idle for command in (*rested, *busy) if isinstance(command, Dispatch)] == [21, 0]
