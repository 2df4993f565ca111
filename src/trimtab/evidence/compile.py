"""The compile stage's figures: what compiling each entry cost and gave, and whether it is what was declared (R6, R17).

Theory
------
A compile profile promises warm times. Its raw repeats are independent (interleaved with other shapes and entries), so
the median of each shape carries a Beta interval. First-run excess = first run - warm median of the same shape: what a
shape costs once for each worker that meets it. Executed precision is the share of profiled TIME by the element type
that really computed (by count of operators where the runtime gives no times): a declared precision that was not
executed is a finding, and so is a silent one. Operators before / after and fusions say what the graph compiler did;
fusion saves launches and may raise peak memory, so the two stand in one row. *workspace* = the most that the runtime's
own allocator held at once in one run of the inspected shape: the process's peak has all that it ever held in it, and
hides what a plan changes for one run.

Limits: the profile is of one quiet core; the share of an operator is that of the one shape that was inspected, and so
is the workspace.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from trimtab.domain.figure import Finding, Findings, Series
from trimtab.domain.noun import Executed
from trimtab.domain.plan import Precision
from trimtab.domain.profile import CompileFailure, CompileProfile, ShapeTiming
from trimtab.domain.study import QualitySpec
from trimtab.evidence import fusion, precision
from trimtab.evidence._latency_tables import table
from trimtab.evidence.figures import MIB, NS_MS, Desk, counted, percent, series
from trimtab.evidence.stats.quantiles import beta_interval, quantile

MINOR_SHARE = 0.05

Row = dict[str, Any]


def findings(profiles: Sequence[CompileProfile], failures: Sequence[CompileFailure], quality: QualitySpec) -> Findings:
    """Everything the compile stage found; ``quality`` names the precision that the study declares."""
    if not profiles:
        lost = f"{len(failures)} entries failed to compile; " if failures else ""
        text = f"{lost}no entry was compiled, so nothing can be promised."
        return Findings(
            stage="compile",
            headline=text,
            findings=(Finding(text=text, owner="compiler"), *_failed(failures)),
            series=_failure_series(failures),
            status="partial",
        )
    desk = Desk("compile", "this machine", f"profiles/{profiles[0].plan}.json")
    for profile in profiles:
        _entry_figures(desk, profile)
    total = sum(p.compile_ns for p in profiles)
    desk.add("total_time", total * NS_MS, "ms", len(profiles), artifact="profiles")
    said = [
        _total(profiles, failures, total),
        *_failed(failures),
        *_precisions(profiles, quality.precision),
        *_first_runs(profiles),
        *fusion.told(profiles),
    ]
    return Findings(
        stage="compile",
        headline=said[0].text,
        findings=tuple(said),
        figures=tuple(desk.figures),
        series=(*_tables(profiles), *_failure_series(failures)),
        status="partial" if failures else "done",
    )


def _tables(profiles: Sequence[CompileProfile]) -> Iterator[Series]:
    made: tuple[tuple[str, Iterable[Row], Mapping[str, str]], ...] = (
        ("entries", map(_entry, profiles), _ENTRY_UNITS),
        ("shapes", chain.from_iterable(map(_shapes, profiles)), _SHAPE_UNITS),
        ("kernels", chain.from_iterable(map(_kernels, profiles)), {"share": "share"}),
        ("precision", chain.from_iterable(map(_shares, profiles)), {"share": "share"}),
    )
    for name, rows, units in made:
        yield series(f"compile.{name}", table(list(rows)), units, "profiles")
    levels = fusion.levels(profiles)
    if levels is not None:
        yield levels


def first_excess(timing: ShapeTiming) -> float:
    """First run minus the warm median, ns, at least 0; nan without a warm run."""
    warm = quantile(timing.wall_ns, 0.5)
    return math.nan if math.isnan(warm) else max(timing.first_ns - warm, 0.0)


def _name(profile: CompileProfile) -> str:
    return f"{profile.plan}.{profile.entry}"


def _entry_figures(desk: Desk, profile: CompileProfile) -> None:
    name, artifact = _name(profile), f"profiles/{profile.plan}.json"
    desk.add(f"{name}.time", profile.compile_ns * NS_MS, "ms", 1, artifact=artifact)
    desk.add(f"{name}.memory", profile.memory_bytes / MIB, "MiB", 1, artifact=artifact)
    desk.add(f"{name}.peak", profile.peak_bytes / MIB, "MiB", 1, artifact=artifact)
    look = profile.inspection
    held = fusion.workspace(profile)
    if held is not None:
        desk.add(f"{name}.workspace", held, "MiB", 1, artifact=artifact, note=f"one run at {_times(look.executed)}")
    count = len(look.operators)
    desk.add(
        f"{name}.operators", float(count), "operators", 1, artifact=artifact, note=f"{look.operators_before} before"
    )
    desk.add(f"{name}.fusions", float(look.fusions), "operators", count, artifact=artifact)
    for which, part in precision.told(profile).items():
        desk.add(f"{name}.precision.{which}", part, "share", count, artifact=artifact, note=_by(profile))
    excess = [first_excess(timing) for timing in profile.timings if timing.wall_ns]
    note = "median over the profiled shapes of first run - warm median"
    desk.add(f"{name}.first_excess", quantile(excess, 0.5) * NS_MS, "ms", len(excess), artifact=artifact, note=note)


def _by(profile: CompileProfile) -> str:
    timed = any(op.ns > 0 for op in profile.inspection.operators)
    return "of profiled time" if timed else "of operators: the runtime gives no times"


def _total(profiles: Sequence[CompileProfile], failures: Sequence[CompileFailure], total: int) -> Finding:
    plans = len({p.plan for p in profiles})
    memory = sum(p.memory_bytes for p in profiles) / MIB
    text = f"{len(profiles)} entries of {counted(plans, 'plan')} compiled in {total / 1e9:.3g} s and {memory:.4g} MiB"
    lost = f"; {len(failures)} failed" if failures else ""
    return Finding(text=f"{text}{lost}.", figures=("compile.total_time",), owner="compiler")


def _failed(failures: Sequence[CompileFailure]) -> Iterator[Finding]:
    for failure in failures:
        where = f"{failure.plan}.{failure.entry}" if failure.plan else failure.entry
        yield Finding(text=f"{where} did not compile ({failure.kind}): {failure.message}", owner="compiler")


def _precisions(profiles: Sequence[CompileProfile], declared: Precision) -> Iterator[Finding]:
    """One sentence for each plan and precision that its entries do not, or only partly, execute."""
    groups: dict[tuple[str, str, str, bool], list[CompileProfile]] = {}
    for profile in profiles:
        wanted, source = _wanted(profile, declared)
        shares = precision.known(profile)
        if wanted == "default" or not shares or not _others(shares, wanted):
            continue
        never = shares.get(wanted, 0.0) < MINOR_SHARE
        groups.setdefault((profile.plan, wanted, source, never), []).append(profile)
    for (plan, declared_there, source, never), found in groups.items():
        yield _precision(plan, declared_there, source, never, found)


def _wanted(profile: CompileProfile, declared: Precision) -> tuple[Precision, str]:
    """A plan's own declared precision first; where the plan leaves it to the runtime, the study's."""
    own = profile.options.precision
    return (own, "its options declare") if own != "default" else (declared, "the study declares")


def _others(shares: Mapping[str, float], wanted: str) -> dict[str, float]:
    return {name: part for name, part in shares.items() if name != wanted and part >= MINOR_SHARE}


def _precision(plan: str, wanted: str, source: str, never: bool, found: Sequence[CompileProfile]) -> Finding:
    shares = [precision.known(profile) for profile in found]
    names = sorted({name for one in shares for name in _others(one, wanted)}, key=lambda n: -shares[0].get(n, 0.0))
    executed = ", ".join(f"{_range([one.get(name, 0.0) for one in shares])} in {name}" for name in names)
    who = _name(found[0]) if len(found) == 1 else f"{plan} ({len(found)} entries)"
    if never:
        text = f"{who} does not execute {wanted}, which {source}: {executed} {_by(found[0])}."
    else:
        text = f"{who} executes {_range([one[wanted] for one in shares])} in {wanted}, which {source}; {executed}."
    figures = tuple(
        f"compile.{_name(p)}.precision.{name}" for p, one in zip(found, shares, strict=True) for name in one
    )
    return Finding(text=text, figures=figures, owner="compiler")


def _range(parts: Sequence[float]) -> str:
    low, high = percent(min(parts)), percent(max(parts))
    return low if low == high else f"{low} to {high}"


def _first_runs(profiles: Sequence[CompileProfile]) -> Iterator[Finding]:
    """Only where a first run costs more than a warm one, which is when a new shape can make a tail."""
    for profile in profiles:
        timed = [t for t in profile.timings if t.wall_ns]
        if not timed:
            continue
        excess = quantile([first_excess(t) for t in timed], 0.5)
        warm = quantile([quantile(t.wall_ns, 0.5) for t in timed], 0.5)
        if excess > warm:
            text = (
                f"{_name(profile)}: the first run of a shape takes {excess * NS_MS:.3g} ms more than a warm one "
                f"({warm * NS_MS:.3g} ms), in the median of {len(timed)} shapes."
            )
            yield Finding(text=text, figures=(f"compile.{_name(profile)}.first_excess",), owner="compiler")


_ENTRY_UNITS = {
    **dict.fromkeys(("time", "warm", "first_excess"), "ms"),
    **dict.fromkeys(("memory", "peak", "scratch", "workspace"), "MiB"),
}


def _entry(profile: CompileProfile) -> Row:
    look, shares = profile.inspection, precision.known(profile)
    main = max(shares, key=shares.__getitem__) if shares else None
    return {
        "plan": profile.plan,
        "entry": profile.entry,
        "backend": profile.backend,
        "optimisation": profile.options.optimisation,
        "declared": profile.options.precision,
        "executed": main,
        "executed_share": shares[main] if main else None,
        "time": profile.compile_ns * NS_MS,
        "memory": profile.memory_bytes / MIB,
        "peak": profile.peak_bytes / MIB,
        "scratch": profile.scratch_bytes / MIB if profile.scratch_bytes >= 0 else None,
        "workspace": fusion.workspace(profile),
        "operators_before": look.operators_before,
        "operators": len(look.operators),
        "fusions": look.fusions,
        "warm": quantile([quantile(t.wall_ns, 0.5) for t in profile.timings if t.wall_ns], 0.5) * NS_MS,
        "first_excess": quantile([first_excess(t) for t in profile.timings if t.wall_ns], 0.5) * NS_MS,
    }


_SHAPE_UNITS = dict.fromkeys(("warm", "lo", "hi", "p95", "first", "first_excess", "on_core"), "ms")


def _shapes(profile: CompileProfile) -> Iterator[Row]:
    for timing in sorted(profile.timings, key=lambda t: t.executed):
        interval = beta_interval(timing.wall_ns, 0.5)
        yield {
            "plan": profile.plan,
            "entry": profile.entry,
            "executed": _times(timing.executed),
            "warm": quantile(timing.wall_ns, 0.5) * NS_MS,
            "lo": interval.lo * NS_MS if interval else None,
            "hi": interval.hi * NS_MS if interval else None,
            "p95": quantile(timing.wall_ns, 0.95) * NS_MS,
            "on_core": quantile([ns for ns in timing.cpu_ns if ns >= 0], 0.5) * NS_MS,
            "first": timing.first_ns * NS_MS,
            "first_excess": first_excess(timing) * NS_MS,
            "n": len(timing.wall_ns),
        }


def _times(executed: Executed) -> str:
    return "x".join(map(str, executed))


def _kernels(profile: CompileProfile) -> Iterator[Row]:
    """Kernels by share of profiled time (of operators, where there are no times), largest first."""
    operators = profile.inspection.operators
    timed = any(op.ns > 0 for op in operators)
    weights: dict[tuple[str, str, str], tuple[float, int]] = {}
    for op in operators:
        key = (op.kind, op.kernel, op.precision)
        weight, count = weights.get(key, (0.0, 0))
        weights[key] = (weight + (max(op.ns, 0) if timed else 1.0), count + 1)
    total = sum(weight for weight, _ in weights.values())
    for (kind, kernel, which), (weight, count) in sorted(weights.items(), key=lambda item: -item[1][0]):
        yield {
            "plan": profile.plan,
            "entry": profile.entry,
            "kind": kind,
            "kernel": kernel,
            "precision": precision.word(which),
            "operators": count,
            "share": weight / total if total else None,
        }


def _shares(profile: CompileProfile) -> Iterator[Row]:
    for which, part in precision.told(profile).items():
        yield {"plan": profile.plan, "entry": profile.entry, "precision": which, "share": part}


def _failure_series(failures: Sequence[CompileFailure]) -> tuple[Series, ...]:
    rows = [{"plan": f.plan, "entry": f.entry, "kind": f.kind, "message": f.message} for f in failures]
    return (series("compile.failures", table(rows), {}, "profiles"),) if rows else ()
