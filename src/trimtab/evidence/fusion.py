"""What each graph-optimisation level did to the same entry: operators, time, and the memory it takes (R14, R29).

Definitions
-----------
A *level* is the graph-optimisation level with the options that say the same one by one: which fusions are left out.
Profiles are set side by side where backend, entry, threads, precision and every other option agree; of plans with one
level the first stands for all. *fused* = operators of the network that were folded into another one. *warm* =
median warm time at one shape that all of them profiled, at the smallest batch: the middle one by volume, and again
(*long*) the largest, because what a run holds grows with its shape; Beta intervals beside both. *peak* = the process's
peak memory while it compiled and ran. *scratch* = the most that one run took above what was held before it, and
*workspace* = the most that the runtime's own allocator held in one run of the shape that was inspected: each where it
is known.

Fusion saves launches and intermediate results; a fused kernel may need a larger workspace, all at once. So time never
stands without memory: a level that is faster and needs more is said as both. The ends of a change in time are the
lowest of the one interval over the highest of the other, and the other way round: wider than a 95 % interval.

Limits: times are those of a quiet core, one request at a time; what a level does to the queue is the simulation's to
say. Levels that give the same operators are not told apart by their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

from trimtab.domain.figure import Cell, Finding, Series
from trimtab.domain.noun import NEVER, Executed
from trimtab.domain.plan import kind_of_option
from trimtab.domain.profile import CompileOptions, CompileProfile
from trimtab.evidence._latency_tables import table
from trimtab.evidence.figures import MIB, NS_MS, percent, series
from trimtab.evidence.stats.quantiles import beta_interval, quantile

UNITS = {
    **dict.fromkeys(("warm", "warm_lo", "warm_hi", "long", "long_lo", "long_hi", "compile"), "ms"),
    **dict.fromkeys(("peak", "scratch", "workspace", "memory"), "MiB"),
}

Row = dict[str, Any]


def levels(profiles: Sequence[CompileProfile]) -> Series | None:
    """One row for each entry and level, a group's first plan first; None where no entry has two levels."""
    rows = [row for group in _groups(profiles) for row in _rows(group)]
    return series("compile.fusion", table(rows), UNITS, "profiles") if rows else None


def told(profiles: Sequence[CompileProfile]) -> Iterator[Finding]:
    """Each level against its entry's first: operators, time and memory in one sentence."""
    for group in _groups(profiles):
        base, *others = _rows(group)
        for row in others:
            text = f"{row['entry']} compiled with level {row['level']} instead of {base['level']}: {trade(row, base)}."
            yield Finding(text=text, owner="compiler")


def trade(row: Mapping[str, Cell], base: Mapping[str, Cell]) -> str:
    """What one level gives instead of another, both rows of :func:`levels` for one entry: operators, time with the ends
    that both medians' intervals leave open, memory; what is not known of both is left out, but the peak."""
    said = [f"{row['operators']} operators instead of {base['operators']}"]
    for name, where in _TIMES.items():
        moved = _changed(row, base, name)
        if moved is not None and (name == "warm" or row[where] != row["shape"]):
            said.append(f"{moved} time at {row[where]}{_open_ends(row, base, name)}")
    for name, words in _MEMORY.items():
        moved = _changed(row, base, name)
        if moved is not None:
            said.append(f"{moved} {words} ({row[name]:.4g} MiB)")
    return ", ".join(said if _changed(row, base, "peak") else [*said, "peak memory not known"])


_TIMES = {"warm": "shape", "long": "largest"}
"""Which column says where a time was taken."""
_MEMORY = {"workspace": "held in one run", "scratch": "scratch of one run", "peak": "peak memory"}


def _changed(row: Mapping[str, Cell], base: Mapping[str, Cell], name: str) -> str | None:
    now, before = row.get(name), base.get(name)
    if not isinstance(now, float) or not isinstance(before, float) or now < 0 or before <= 0:
        return None
    return _change(now, before)


def _open_ends(row: Mapping[str, Cell], base: Mapping[str, Cell], name: str) -> str:
    ends = [cells.get(f"{name}_{end}") for cells in (row, base) for end in ("lo", "hi")]
    known = [end for end in ends if isinstance(end, float)]
    if len(known) < len(ends):
        return ""
    lo, hi, base_lo, base_hi = known
    return f" ({_change(lo, base_hi)} to {_change(hi, base_lo)})"


def workspace(profile: CompileProfile) -> float | None:
    """MiB that the runtime's allocator held at most in one run; None where it does not count."""
    held = profile.inspection.workspace_bytes
    return None if held == NEVER else held / MIB


def _change(value: float, base: float) -> str:
    return f"{'+' if value >= base else ''}{percent(value / base - 1)}"


def _groups(profiles: Sequence[CompileProfile]) -> list[list[CompileProfile]]:
    groups: dict[tuple[Any, ...], dict[str, CompileProfile]] = {}
    for profile in profiles:
        options = profile.options
        others = sorted(item for item in options.extra.items() if kind_of_option(item[0]) != "optimisation")
        key = (profile.backend, profile.entry, options.threads, options.precision, *others)
        groups.setdefault(key, {}).setdefault(_level(options), profile)
    return [list(group.values()) for group in groups.values() if len(group) > 1]


def _level(options: CompileOptions) -> str:
    chosen = sorted(item for item in options.extra.items() if kind_of_option(item[0]) == "optimisation")
    return ", ".join((options.optimisation, *(f"{name} = {value}" for name, value in chosen)))


def _rows(group: Sequence[CompileProfile]) -> Iterator[Row]:
    shapes = _common(group)
    middle, largest = (shapes[(len(shapes) - 1) // 2], shapes[-1]) if shapes else ((), ())
    for profile in group:
        look = profile.inspection
        yield {
            "plan": profile.plan,
            "entry": profile.entry,
            "backend": profile.backend,
            "level": _level(profile.options),
            "operators_before": look.operators_before,
            "operators": len(look.operators),
            "fused": look.fusions,
            "shape": _name(middle),
            **_warm(profile, middle, "warm"),
            "largest": _name(largest),
            **_warm(profile, largest, "long"),
            "peak": profile.peak_bytes / MIB,
            "scratch": None if profile.scratch_bytes == NEVER else profile.scratch_bytes / MIB,
            "workspace": workspace(profile),
            "memory": profile.memory_bytes / MIB,
            "compile": profile.compile_ns * NS_MS,
        }


def _common(group: Sequence[CompileProfile]) -> list[Executed]:
    """The shapes that every profile timed at the smallest batch size, by volume."""
    common = set.intersection(*({t.executed for t in profile.timings if t.wall_ns} for profile in group))
    fewest = min((executed[0] for executed in common), default=0)
    return sorted((e for e in common if e[0] == fewest), key=lambda e: (prod(e), e))


def _name(shape: Executed) -> str:
    return "x".join(map(str, shape))


def _warm(profile: CompileProfile, shape: Executed, name: str) -> Row:
    """Its median and interval at one shape, ms, under ``name``."""
    walls = next((t.wall_ns for t in profile.timings if t.executed == shape), ())
    between = beta_interval(walls, 0.5) if walls else None
    return {
        name: quantile(walls, 0.5) * NS_MS if walls else None,
        f"{name}_lo": between.lo * NS_MS if between else None,
        f"{name}_hi": between.hi * NS_MS if between else None,
    }
