"""Answers of a plan, request by request: what its compiled entries say for real payloads, ready to be compared.

Each request runs as the plan routes it, alone or in batches: padded up to a bucket, or to the largest of its batch, by
the study's rule, and its outputs cropped back to its true dims. The reference is the same function on a plan whose one
dynamic entry runs every request at its true dims, unpadded. Comparing the two is ``evidence/quality``'s; this module
only fetches the arrays, and asks a user's own function about them where the study names one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.noun import Dims, EntryId, Executed
from trimtab.domain.plan import Plan
from trimtab.domain.ports import BackendFactory, ModelFile, Payloads, Progress
from trimtab.domain.route import Route, RouteKind
from trimtab.domain.workload import Workload
from trimtab.mapping.route import Router
from trimtab.runtime import wire
from trimtab.runtime.replay import compiles
from trimtab.runtime.solo import PREPARE_S, LostError, Solo, solo
from trimtab.runtime.vacant import VACANT
from trimtab.runtime.verify import Infinities
from trimtab.runtime.worker import Job

Outputs: TypeAlias = dict[str, NDArray[Any]]
Stratum: TypeAlias = Callable[[Dims], Hashable]
"""True dims -> the group of requests that they belong to; None = to none."""


class Answered(NamedTuple):
    """What a plan said to one request. ``outputs`` is None where it has no answer, and ``message`` says why."""

    member: wire.Member
    entry: EntryId | None
    route: RouteKind
    executed: Executed
    outputs: Outputs | None
    message: str = ""


def sample_members(
    workload: Workload, count: int, seed: int, strata: Sequence[Stratum] = (), each: int = 0
) -> tuple[wire.Member, ...]:
    """Up to ``count`` different requests, evenly over the order of their shapes, then as many more as every group of
    every stratum needs to have ``each`` of them, as far as there are any; which of equal ones is drawn by ``seed``.

    Evenly over shapes and not over requests: rare wide ones would hardly be in a small random sample. In the order of
    their shapes.
    """
    members = {(p, tuple(d)) for p, d in zip(workload.payload.tolist(), workload.dims.tolist(), strict=True)}
    draw = np.random.default_rng(seed)
    order = sorted(members)
    draw.shuffle(order)
    order.sort(key=lambda member: member[1])  # stable: shuffled within one shape
    picked = set(_evenly(range(len(order)), count))
    for stratum in strata:
        groups: dict[Hashable, list[int]] = {}
        for at, (_, dims) in enumerate(order):
            groups.setdefault(stratum(dims), []).append(at)
        groups.pop(None, None)
        for group in groups.values():
            rest = [at for at in group if at not in picked]
            picked.update(_evenly(rest, each - (len(group) - len(rest))))
    return tuple(order[at] for at in sorted(picked))


def _evenly(positions: Sequence[int], count: int) -> list[int]:
    """``count`` of them, both ends included; all of them where there are fewer, none for a count below 1."""
    if not positions or count < 1:
        return []
    chosen = np.linspace(0, len(positions) - 1, min(count, len(positions))).round().astype(int)
    return [positions[at] for at in np.unique(chosen).tolist()]


def answers(
    plan: Plan,
    model: ModelFile,
    backend: BackendFactory,
    payloads: Payloads,
    members: Sequence[wire.Member],
    core: int,
    progress: Progress | None = None,
    infinities: Infinities = None,
    size: int = 1,
) -> tuple[Answered, ...]:
    """What ``plan`` answers to each of ``members``, in order, from one worker on ``core``. With a ``size`` above 1
    those of one entry share batches of up to that many, as they follow one another.

    A refusal, a failed entry, a failed run or a lost worker is an Answered without outputs, never an exception.
    """
    router = Router(plan.compile)
    given: dict[int, Answered] = {}
    with solo(Job(backend, model, payloads, infinities), core, plan.serve.threads) as worker:
        compiled = _compile(plan, worker, {router.route(dims).entry for _, dims in members})
        for batch in _batches(router, members, size):
            if progress is not None:
                progress.step("quality", len(given), len(members), plan.id)
            given |= zip(batch, _answer(worker, router, compiled, [members[at] for at in batch]), strict=True)
    return tuple(given[at] for at in range(len(members)))


def _batches(router: Router, members: Sequence[wire.Member], size: int) -> list[list[int]]:
    """Positions of the members that run together: of one entry, at most ``size``, and as many as the entry takes."""
    of_entry: dict[EntryId | None, list[int]] = {}
    for at, (_, dims) in enumerate(members):
        of_entry.setdefault(router.route(dims).entry, []).append(at)
    batches: list[list[int]] = []
    for entry, found in of_entry.items():
        most = 1 if entry is None else min(size, router.entries[entry].batch[1])
        batches += [found[begin : begin + most] for begin in range(0, len(found), most)]
    return sorted(batches)


def _compile(plan: Plan, worker: Solo, wanted: set[EntryId | None]) -> dict[EntryId, str]:
    """Entry -> why it is not there; an empty string: it is."""
    compiled: dict[EntryId, str] = {}
    for id, (entry, options) in compiles(plan).items():  # noqa: A001 - the word of the noun
        if id not in wanted:
            continue
        try:
            reply = worker.ask(wire.Compile(entry, options, ()), PREPARE_S)
        except LostError as error:
            compiled[id] = error.message
            continue
        compiled[id] = reply.failure.message if isinstance(reply, wire.Refused) else ""
    return compiled


def _answer(
    worker: Solo, router: Router, compiled: dict[EntryId, str], members: Sequence[wire.Member]
) -> list[Answered]:
    """The answers to one batch, which all have the same route."""
    routes = [router.route(dims) for _, dims in members]
    entry = routes[0].entry
    if entry is None:
        return _without(members, routes, (), "no entry takes this shape")
    executed = router.batch(routes[0], [dims for _, dims in members])
    if compiled[entry]:
        return _without(members, routes, executed, compiled[entry])
    try:
        reply = worker.ask(wire.Answer(entry, executed, tuple(members)))
    except LostError as error:
        return _without(members, routes, executed, error.message)
    if isinstance(reply, wire.Ran):
        return _without(members, routes, executed, reply.message)
    assert isinstance(reply, wire.Answers)
    found = [{name: wire.unpack(tensor) for name, tensor in outputs.items()} for outputs in reply.outputs]
    return [
        Answered(member, route.entry, route.kind, executed, outputs)
        for member, route, outputs in zip(members, routes, found, strict=True)
    ]


def _without(members: Sequence[wire.Member], routes: Sequence[Route], executed: Executed, why: str) -> list[Answered]:
    """No answer for any of them, and why."""
    return [Answered(m, route.entry, route.kind, executed, None, why) for m, route in zip(members, routes, strict=True)]


def graded(function: str, folder: Path, pairs: Sequence[tuple[Outputs, Outputs]], core: int) -> tuple[wire.Graded, ...]:
    """What the user's function says of each (reference's outputs, plan's outputs), from a worker process of its own.

    A function that raises, or takes the worker with it, is a message and never a value.
    """
    said: list[wire.Graded] = []
    with solo(VACANT, core) as worker:
        for reference, outputs in pairs:
            sides = [{name: wire.pack(array) for name, array in side.items()} for side in (reference, outputs)]
            try:
                reply = worker.ask(wire.Grade(function, str(folder.resolve()), *sides))
            except LostError as error:
                reply = wire.Graded(float("nan"), f"{function}: {error.message}")
            assert isinstance(reply, wire.Graded)
            said.append(reply)
    return tuple(said)
