"""A plan from a plan: one function for each kind of change, and the name of what changed.

Every function is deterministic and leaves its argument as it was, so the way back is the plan it started from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from trimtab.domain.noun import Dims, EntryId, Executed
from trimtab.domain.plan import BatchPolicy, CompileSpec, Entry, Optimisation, Plan, Precision, kind_of_option
from trimtab.domain.verdict import Role

NO_CHANGE = "no-change"

SIZE: dict[str, int] = {
    NO_CHANGE: 0,
    "warm": 100,
    "batch": 200,
    "order": 210,
    "placement": 220,
    "admit": 230,
    "workers": 250,
    "threads": 260,
    "refit": 300,
    "round-up": 300,
    "entries": 300,
    "optimisation": 400,
    "backend": 500,
    "precision": 600,
}
"""Base rank of each kind of change; the number of shapes, entries or members is added (at most 99)."""

OWNER: dict[str, Role] = {"backend": "compiler", "precision": "compiler", "optimisation": "compiler"}
"""Who owns a kind of change; the runtime lead owns the rest (mapping, runtime, execution)."""


def rank(kind: str, count: int = 0) -> int:
    """How much a move changes: the base of its kind plus ``count`` shapes, entries or members (at most 99)."""
    return SIZE[kind] + min(count, 99)


def refit(plan: Plan, ends: Sequence[Dims], low: Dims, high: Dims) -> Plan:
    """Put padded entries that end at ``ends`` in front of the plan's dynamic entries, and warm each at start.

    Dims lie in the range ``low..high``. Dynamic entries and the fallback stay, so that what no end covers still runs; a
    plan without them gets a last entry at ``high`` instead. Every entry reaches down to ``low``.
    """
    kept = tuple(entry for entry in plan.compile.entries if entry.kind == "dynamic")
    taken = tuple(ends) if kept else tuple(dict.fromkeys((*ends, high)))
    added = tuple(bucket(plan, end, low) for end in taken)
    fallback = plan.compile.fallback if any(e.id == plan.compile.fallback for e in kept) else None
    spec = replace(plan.compile, entries=(*added, *kept), fallback=fallback or (kept[0].id if kept else None))
    return warm_up(replace(plan, compile=spec), _each_size(added))


def add_entry(plan: Plan, end: Dims, low: Dims) -> Plan:
    """One padded entry from ``low`` to ``end`` in front of those there are, warmed at start."""
    added = bucket(plan, end, low)
    spec = replace(plan.compile, entries=(added, *plan.compile.entries))
    return warm_up(replace(plan, compile=spec), _each_size([added]))


def drop_entry(plan: Plan, entry: EntryId) -> Plan:
    """Without ``entry``. The warm list stays: its shapes are warmed on the entries that now run them."""
    kept = tuple(each for each in plan.compile.entries if each.id != entry)
    return replace(plan, compile=replace(plan.compile, entries=kept))


def bucket(plan: Plan, end: Dims, low: Dims) -> Entry:
    """The padded entry from ``low`` to ``end`` for batches as large as the plan forms."""
    name = f"to-{'x'.join(map(str, end))}"
    return Entry(id=name, kind="bucket", lo=low, hi=end, batch=(1, plan.serve.batch.max_size))


def _each_size(entries: Sequence[Entry]) -> tuple[Executed, ...]:
    """The shapes that padded entries execute, at every batch size."""
    return tuple((size, *entry.hi) for entry in entries for size in range(entry.batch[0], entry.batch[1] + 1))


def warm_up(plan: Plan, shapes: Sequence[Executed]) -> Plan:
    """Run ``shapes`` (executed dims, batch size first) once on every fresh worker, after those it already warms."""
    return replace(plan, serve=replace(plan.serve, warm=tuple(dict.fromkeys((*plan.serve.warm, *shapes)))))


def rebatch(plan: Plan, policy: BatchPolicy) -> Plan:
    """Serve with another batch policy; entries that admit fewer members than it forms are widened to them."""
    entries = tuple(
        replace(e, batch=(e.batch[0], policy.max_size)) if e.batch[1] < policy.max_size else e
        for e in plan.compile.entries
    )
    return replace(plan, compile=replace(plan.compile, entries=entries), serve=replace(plan.serve, batch=policy))


def reorder(plan: Plan, order: str) -> Plan:
    """Serve waiting requests in another order."""
    return replace(plan, serve=replace(plan.serve, order=order))


def readmit(plan: Plan, bound: int) -> Plan:
    """Let at most ``bound`` requests wait or run."""
    return replace(plan, serve=replace(plan.serve, admit=bound))


def resize(plan: Plan, workers: int, threads: int) -> Plan:
    """Serve with another number of workers, or of threads in each."""
    return replace(plan, serve=replace(plan.serve, workers=workers, threads=threads))


def place(plan: Plan, placement: str) -> Plan:
    """Let another rule say which workers may serve a request."""
    return replace(plan, serve=replace(plan.serve, placement=placement))


def rehost(plan: Plan, backend: str) -> Plan:
    """The same entries compiled by another backend. Options are the old backend's own words, so they are dropped."""
    return replace(plan, compile=replace(plan.compile, backend=backend, options={}))


def optimise(plan: Plan, level: Optimisation) -> Plan:
    """The same entries compiled with another graph-optimisation level."""
    return replace(plan, compile=replace(plan.compile, optimisation=level))


def run_eagerly(plan: Plan) -> Plan:
    """The same entries without a compiler. What told it how to compile means nothing then, so it is dropped."""
    return replace(plan, compile=replace(plan.compile, optimisation="default", options={"mode": "eager"}))


def recast(plan: Plan, precision: Precision, options: Mapping[str, str]) -> Plan:
    """The same entries compiled in another precision; ``options`` say how it is made, and replace those that did."""
    kept = {name: value for name, value in plan.compile.options.items() if kind_of_option(name) != "precision"}
    return replace(plan, compile=replace(plan.compile, precision=precision, options={**kept, **options}))


def changed(baseline: Plan, plan: Plan) -> tuple[str, ...]:
    """The kinds of change between two plans. Warming new entries belongs to ``entries``, admitting larger batches to
    ``batch``, another number of workers to ``threads`` where theirs differ too (all entries are compiled again), a
    backend's own options to what they change (``domain.plan.kind_of_option``)."""
    was, now = baseline.compile, plan.compile
    before, after = baseline.serve, plan.serve
    entries = _shapes(was) != _shapes(now)
    options = _options(was, now)
    tests = {
        "entries": entries,
        "warm": before.warm != after.warm and not entries,
        "batch": before.batch != after.batch or (_admitted(was) != _admitted(now) and not entries),
        "order": before.order != after.order,
        "placement": before.placement != after.placement,
        "admit": before.admit != after.admit,
        "workers": before.workers != after.workers and before.threads == after.threads,
        "threads": before.threads != after.threads,
        "optimisation": was.optimisation != now.optimisation or "optimisation" in options,
        "backend": was.backend != now.backend or "backend" in options,
        "precision": was.precision != now.precision or "precision" in options,
    }
    return tuple(kind for kind, differs in tests.items() if differs)


def _options(was: CompileSpec, now: CompileSpec) -> set[str]:
    """What the options that differ change. Those of another backend are other words, and part of changing it."""
    if was.backend != now.backend:
        return set()
    names = was.options.keys() | now.options.keys()
    return {kind_of_option(name) for name in names if was.options.get(name) != now.options.get(name)}


def _shapes(spec: CompileSpec) -> tuple[object, ...]:
    return spec.fallback, tuple((e.id, e.kind, e.lo, e.hi) for e in spec.entries)


def _admitted(spec: CompileSpec) -> dict[EntryId, tuple[int, int]]:
    return {e.id: e.batch for e in spec.entries}
