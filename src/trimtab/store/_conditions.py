"""What a study must hold of its conditions: each once, and guards only under those that are replayed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from trimtab.domain.study import Condition, Study
from trimtab.store._strict import Fault, Path, meant

_AS_RECORDED, _HELD_OUT = "normal", "held-out"


def condition_faults(study: Study) -> Iterator[Fault]:
    """Every broken rule about ``[[conditions]]`` and the guards that name one."""
    kinds: list[str] = [condition.kind for condition in study.conditions]
    for kind, count in Counter(kinds).items():
        if count > 1:
            yield Fault(("conditions",), f"{kind!r} is listed twice", "use each once")
    for position, condition in enumerate(study.conditions):
        yield from _second_trace(study, condition, ("conditions", position))
    for position, guard in enumerate(study.guards):
        known = (_AS_RECORDED, *kinds)
        if guard.condition not in known:
            text = f"there is no condition {guard.condition!r} in [[conditions]]"
            yield Fault(("guards", position, "condition"), text, meant(guard.condition, known))
        elif guard.condition != _AS_RECORDED and guard.slice != _HELD_OUT:
            text = f"under {guard.condition!r} a guard is decided on all held-out traffic, not on {guard.slice!r}"
            yield Fault(("guards", position, "slice"), text, "use held-out, or leave out the condition")


def _second_trace(study: Study, condition: Condition, path: Path) -> Iterator[Fault]:
    sources = {"arrivals": condition.arrivals, "shapes": condition.shapes}
    own = condition.kind == "second trace"
    for key, source in sources.items():
        if own and source is None:
            yield Fault((*path, key), "a second trace needs its own", f"add [conditions.{key}] below it")
        if not own and source is not None:
            yield Fault((*path, key), f"{condition.kind!r} has no traffic of its own", f"remove [conditions.{key}]")
    if own and condition.shapes is not None:
        for name in sorted(study.dims.keys() - condition.shapes.dims.keys()):
            where = (*path, "shapes", "dims", name)
            yield Fault(where, f"no column gives the dim {name!r}", f'add {name} = "<column>"')
