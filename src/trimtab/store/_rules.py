"""What a study must hold beyond types: names that exist, ranges that fit, ids that may be file names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from trimtab.domain.noun import BATCH, Dims
from trimtab.domain.plan import Entry, Plan
from trimtab.domain.study import SliceSpec, Study
from trimtab.errors import StudyError
from trimtab.store._conditions import condition_faults
from trimtab.store._quality import quality_faults
from trimtab.store._seconds import seconds
from trimtab.store._signoff import signoff_faults
from trimtab.store._strict import Fault, Path, meant, unique
from trimtab.store._target import local_faults, target_faults
from trimtab.store._tensors import tensor_faults
from trimtab.store._write import is_safe

BUILT_IN_SLICES = ("tune", "held-out")
LONGEST_HOLD_MS = 3_600_000.0
MOST = 1e9
_SAFE_FIX = "use a-z, 0-9, '.', '_' and '-', not starting with a dot, at most 96 characters"


def rule_faults(study: Study) -> Iterator[Fault]:
    """Every broken rule of a study whose types are right."""
    yield from _texts(study)
    yield from target_faults(study) if study.workload.target else local_faults(study)
    yield from tensor_faults(study)
    yield from _dims(study)
    yield from _workload(study)
    yield from _envelope(study)
    yield from _sla(study)
    for path, plan in _plans(study):
        yield from _plan(study, plan, path)
    yield from _plan_ids(study)
    yield from _space(study)
    yield from _guards(study)
    yield from condition_faults(study)
    yield from signoff_faults(study)
    yield from quality_faults(study.quality)


def _texts(study: Study) -> Iterator[Fault]:
    if not is_safe(study.name.lower().replace(" ", "-")):
        fix = "use letters, digits, spaces, '.', '_' and '-', not starting with a dot, at most 96 characters"
        yield Fault(("name",), f"{study.name!r} cannot be the name of a folder", fix)
    named: list[tuple[Path, str]] = [
        (("model", "revision"), study.model.revision),
        (("workload", "arrivals", "file"), study.workload.arrivals.file),
        (("workload", "arrivals", "time"), study.workload.arrivals.time),
        *((("owners", role), owner) for role, owner in study.owners.items()),
    ]
    for path, text in named:
        if not text.strip() or not text.isprintable():
            yield Fault(path, "must be printable text and not empty", "write it in plain characters")
    if study.model.package and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", study.model.package):
        yield Fault(("model", "package"), "is not the name of a package", "write it as `pip install` takes it")
    try:
        seconds(study.budget.time)
    except StudyError as error:
        yield Fault(("budget", "time"), error.what, error.fix)


def _dims(study: Study) -> Iterator[Fault]:
    used = {size for spec in study.model.inputs for size in spec.shape}
    if not study.dims:
        yield Fault(("dims",), "is empty", "add [dims.<name>] for each dim whose size changes, as in dims.width")
    yield from unique([name.lower() for name in study.dims], ("dims",), "is named twice, capitals apart")
    for name, dim in study.dims.items():
        if name == BATCH:
            yield Fault(("dims", name), f"{BATCH!r} is the batch axis, not a dim", "remove it; batches are in the plan")
        elif name not in used:
            yield Fault(("dims", name), "no input has this dim", "name it in the shape of an input, or remove it")
        if not is_safe(name.lower()):
            yield Fault(("dims", name), "is not a plain name", "use letters, digits, '_' and '-'")
        if dim.lo > dim.hi:
            yield Fault(("dims", name, "lo"), f"lo {dim.lo} is above hi {dim.hi}", "swap them")
    yield from _keys(study.workload.shapes.dims, study, ("workload", "shapes", "dims"))
    for name in study.dims:
        if name not in study.workload.shapes.dims:
            path: Path = ("workload", "shapes", "dims", name)
            yield Fault(path, f"no column gives the dim {name!r}", f'add {name} = "<column>"')


def _workload(study: Study) -> Iterator[Fault]:
    workload = study.workload
    if (workload.payload.kind == "random") == bool(workload.payload.bank):
        fix = "set kind to real or rendered, or remove bank" if workload.payload.bank else "name the .npz file"
        text = "random payloads use no bank" if workload.payload.bank else f"{workload.payload.kind} payloads need it"
        yield Fault(("workload", "payload", "bank"), text, fix)
    if not 0 < workload.tune_share < 1:
        text = f"{workload.tune_share} leaves the tune or the held-out slice empty"
        yield Fault(("workload", "tune_share"), text, "use a share between 0 and 1, such as 0.4")
    if workload.deadlines_ms and not workload.shapes.stream:
        text = "no column says which stream a request is of"
        yield Fault(("workload", "deadlines_ms"), text, "name it in workload.shapes.stream")
    for position, part in enumerate(workload.slices):
        yield from _slice(study, part, ("workload", "slices", position))
    names = [*BUILT_IN_SLICES, *(part.name for part in workload.slices)]
    yield from unique(names, ("workload", "slices"), "is the name of two slices")


def _slice(study: Study, part: SliceSpec, path: Path) -> Iterator[Fault]:
    if not is_safe(part.name):
        yield Fault((*path, "name"), f"{part.name!r} cannot be a file name", _SAFE_FIX)
    if part.start >= part.stop:
        yield Fault((*path, "start"), f"start {part.start} is not before stop {part.stop}", "swap them")
    yield from _keys(part.band, study, (*path, "band"))
    for name, (lo, hi) in part.band.items():
        if lo > hi:
            yield Fault((*path, "band", name), f"lo {lo} is above hi {hi}", "swap them")


def _envelope(study: Study) -> Iterator[Fault]:
    assumed = study.envelope
    path: Path = ("envelope", "cores")
    cores = [*assumed.cores, *([] if assumed.driver_core is None else [assumed.driver_core])]
    if any(core < 0 for core in cores):
        yield Fault(path, "a core's number is 0 or above", "number cores as the operating system does")
    yield from unique([str(core) for core in assumed.cores], path, "is listed twice")
    driver = assumed.driver_core if assumed.driver_core is not None else (assumed.cores or (None,))[-1]
    workers = [core for core in assumed.cores if core != driver]
    if not assumed.cores:
        yield Fault(path, "is empty", "list the cores that may be used: the driver's and the workers'")
    elif not workers and not study.workload.target:
        yield Fault(path, f"the driver has core {driver} and no core is left for a worker", "list a second core")
    for plan_path, plan in _plans(study):
        if 0 < len(workers) < plan.serve.workers:
            text = f"{plan.serve.workers} workers need a core each; beside the driver's there are {len(workers)}"
            yield Fault((*plan_path, "serve", "workers"), text, "list more cores in envelope.cores, or use fewer")
    for name, value in (("memory_gib", assumed.memory_gib), ("quota_cores", assumed.quota_cores)):
        if value is not None and not 0 < value <= MOST:
            text = f"must be above 0 and at most {MOST:.0f}, got {value}"
            yield Fault(("envelope", name), text, "remove it if it is not assumed")


def _sla(study: Study) -> Iterator[Fault]:
    sla = study.sla
    if sla.deadline_ms is not None and sla.deadline_ms < sla.bound_ms:
        text = f"deadline {sla.deadline_ms} ms is below the bound {sla.bound_ms} ms, so the bound can never be missed"
        yield Fault(("sla", "deadline_ms"), text, "set deadline_ms above bound_ms, or remove it")


def _plans(study: Study) -> list[tuple[Path, Plan]]:
    candidates: list[tuple[Path, Plan]] = [(("candidates", k), plan) for k, plan in enumerate(study.candidates)]
    return candidates if study.workload.target else [(("baseline",), study.baseline), *candidates]


def _plan(study: Study, plan: Plan, path: Path) -> Iterator[Fault]:
    if not is_safe(plan.id):
        yield Fault((*path, "id"), f"{plan.id!r} cannot be a file name", _SAFE_FIX)
    spec, entries = plan.compile, (*path, "compile", "entries")
    ids = [entry.id for entry in spec.entries]
    if not ids:
        yield Fault(entries, "is empty", "add at least one entry")
    yield from unique(ids, entries, "is the id of two entries")
    for position, entry in enumerate(spec.entries):
        yield from _entry(study, entry, (*entries, position))
    if spec.fallback is not None and spec.fallback not in ids:
        text = f"there is no entry {spec.fallback!r}"
        yield Fault((*path, "compile", "fallback"), text, meant(spec.fallback, ids))
    yield from _serve(study, plan, (*path, "serve"))


def _entry(study: Study, entry: Entry, path: Path) -> Iterator[Fault]:
    if not is_safe(entry.id):
        yield Fault((*path, "id"), f"{entry.id!r} cannot be a file name", _SAFE_FIX)
    if not 1 <= entry.batch[0] <= entry.batch[1]:
        yield Fault((*path, "batch"), f"{list(entry.batch)} is not a range of batch sizes", "write [lowest, highest]")
    names = study.dim_names
    for key, dims in (("lo", entry.lo), ("hi", entry.hi)):
        if len(dims) != len(names):
            text = f"has {len(dims)} sizes for {len(names)} dims ({', '.join(names)})"
            yield Fault((*path, key), text, "give one size for each dim, in the order of [dims]")
    if not len(entry.lo) == len(entry.hi) == len(names):
        return
    if entry.kind == "static" and entry.lo != entry.hi:
        yield Fault((*path, "lo"), "a static entry has lo equal to hi", "make them equal, or use kind = 'bucket'")
    for name, lo, hi in zip(names, entry.lo, entry.hi, strict=True):
        dim = study.dims[name]
        if lo > hi:
            yield Fault((*path, "lo"), f"{name}: lo {lo} is above hi {hi}", "swap them")
        elif lo < dim.lo or hi > dim.hi:
            text = f"{name}: {lo}..{hi} is outside the range {dim.lo}..{dim.hi} that the network accepts"
            yield Fault((*path, "hi"), text, f"stay inside it, or widen dims.{name}")


def _serve(study: Study, plan: Plan, path: Path) -> Iterator[Fault]:
    serve = plan.serve
    for key, count in (("workers", serve.workers), ("threads", serve.threads)):
        if count < 1:
            yield Fault((*path, key), f"must be at least 1, got {count}", "use 1 or more")
    yield from _batch(serve.batch.max_size, serve.batch.hold_ms, (*path, "batch"))
    for position, shape in enumerate(serve.warm):
        if not _covered(study, plan, shape):
            text = f"{list(shape)} fits no entry"
            fix = f"write [batch size, {', '.join(study.dim_names)}] of a shape that an entry runs"
            yield Fault((*path, "warm", position), text, fix)


def _batch(max_size: int, hold_ms: float, path: Path) -> Iterator[Fault]:
    if max_size < 1:
        yield Fault((*path, "max_size"), f"must be at least 1, got {max_size}", "use 1 or more")
    if not 0 <= hold_ms <= LONGEST_HOLD_MS:
        yield Fault((*path, "hold_ms"), f"must be from 0 to {LONGEST_HOLD_MS:.0f}, got {hold_ms}", "use 0 or more")


def _covered(study: Study, plan: Plan, shape: tuple[int, ...]) -> bool:
    if len(shape) != 1 + len(study.dims):
        return False
    size, dims = shape[0], shape[1:]
    fallback = plan.compile.fallback
    return any(
        entry.batch[0] <= size <= entry.batch[1]
        and (_runs(entry, dims) or (entry.id == fallback and _accepts(study, dims)))
        for entry in plan.compile.entries
    )


def _runs(entry: Entry, dims: Dims) -> bool:
    if entry.kind != "dynamic":
        return dims == entry.hi
    return len(entry.lo) == len(dims) and all(
        lo <= size <= hi for lo, size, hi in zip(entry.lo, dims, entry.hi, strict=False)
    )


def _accepts(study: Study, dims: Dims) -> bool:
    return all(dim.lo <= size <= dim.hi for dim, size in zip(study.dims.values(), dims, strict=True))


def _plan_ids(study: Study) -> Iterator[Fault]:
    seen = {study.baseline.id}
    for position, plan in enumerate(study.candidates):
        if plan.id in seen:
            text = f"{plan.id!r} is the id of two plans (the baseline's counts)"
            yield Fault(("candidates", position, "id"), text, "give each plan its own id")
        seen.add(plan.id)


def _space(study: Study) -> Iterator[Fault]:
    for key, counts, least in (("buckets", study.space.buckets, 1), ("warm_shapes", study.space.warm_shapes, 0)):
        for position, count in enumerate(counts):
            if count < least:
                yield Fault(("space", key, position), f"must be at least {least}, got {count}", "remove it")
    for position, policy in enumerate(study.space.batches):
        yield from _batch(policy.max_size, policy.hold_ms, ("space", "batches", position))


def _guards(study: Study) -> Iterator[Fault]:
    """A guard is decided on held-out traffic, so its slice must reach into it."""
    stops = {"tune": study.workload.tune_share, "held-out": 1.0}
    stops |= {part.name: part.stop for part in study.workload.slices if part.name not in BUILT_IN_SLICES}
    for position, guard in enumerate(study.guards):
        path: Path = ("guards", position, "slice")
        stop = stops.get(guard.slice)
        if stop is None:
            yield Fault(path, f"there is no slice {guard.slice!r}", meant(guard.slice, stops))
        elif stop <= study.workload.tune_share:
            text = f"slice {guard.slice!r} ends before the held-out traffic begins, so its guard can never be decided"
            yield Fault(path, text, "use held-out, or a slice that stops after workload.tune_share")


def _keys(found: Iterable[str], study: Study, path: Path) -> Iterator[Fault]:
    for name in found:
        if name not in study.dims:
            yield Fault((*path, name), f"there is no dim {name!r}", meant(name, study.dims))
