"""Invented records for the report's tests: plausible figures, all of them synthetic, none of them measured."""

from __future__ import annotations

import math

import msgspec
from msgspec.structs import replace
from sample_findings import figure, replay, score, series, validate, workload
from sample_stages import attributed, compiled, retuned
from sample_trends import decided, padding, sweep

from trimtab.domain.envelope import Assumptions, Envelope, EnvelopeCheck, Pace
from trimtab.domain.figure import Figure, Findings, Interval, Series
from trimtab.domain.packet import Manifest, ManifestFile, Record
from trimtab.domain.plan import CompileSpec, Entry, Plan, ServePolicy
from trimtab.domain.profile import CompileFailure, CompileOptions, CompileProfile, Inspection, Operator, ShapeTiming
from trimtab.domain.study import (
    ArrivalSource,
    DimSpec,
    InputSpec,
    ModelSpec,
    OutputSpec,
    ShapeSource,
    Sla,
    Study,
    WorkloadSpec,
)
from trimtab.domain.trace import RunInfo
from trimtab.domain.verdict import MatrixCell, Move, Proposal, Rejected, Verdict

HOSTILE = "<img src=x onerror=alert(1)>"
HOSTILE_URL = "javascript:alert(document.domain)"

TODAY = Plan(
    id="today",
    compile=CompileSpec(
        backend="openvino",
        entries=(Entry(id="any-width", kind="dynamic", lo=(16,), hi=(1640,), batch=(1, 8)),),
        fallback="any-width",
    ),
)
REFIT = Plan(
    id="refit-4",
    compile=CompileSpec(
        backend="openvino",
        entries=(
            Entry(id="to-160", kind="bucket", lo=(16,), hi=(160,)),
            Entry(id="to-288", kind="bucket", lo=(16,), hi=(288,)),
            Entry(id="to-512", kind="bucket", lo=(16,), hi=(512,)),
            Entry(id="to-960", kind="bucket", lo=(16,), hi=(960,)),
            *TODAY.compile.entries,
        ),
        fallback="any-width",
    ),
    serve=ServePolicy(warm=((1, 160), (1, 288), (1, 512), (1, 960))),
)


def study(name: str = "ocr-receipts") -> Study:
    return Study(
        name=name,
        model=ModelSpec(
            path="models/rec.onnx",
            revision="invented recogniser r14",
            inputs=(InputSpec(name="x", shape=("batch", 3, 48, "width")),),
            outputs=(OutputSpec(name="y"),),
        ),
        dims={"width": DimSpec(lo=16, hi=1640)},
        workload=WorkloadSpec(
            arrivals=ArrivalSource(file="arrivals.csv", time="t"), shapes=ShapeSource(dims={"width": "width"})
        ),
        sla=Sla(metric="p95", bound_ms=60.0, deadline_ms=2000.0),
        envelope=Assumptions(cores=(0, 1), driver_core=0, memory_gib=2.0),
        baseline=TODAY,
        owners={"compiler": "A. Compiler", "runtime": "B. Runtime", "observability": "C. Observer"},
    )


def cell(metric: str, role: str, status: str, change: float, lo: float, hi: float, **more: object) -> MatrixCell:
    base = {"slice": "held-out", "condition": "as recorded", "floor": 0.06, "samples": 3312}
    values = base | more
    name = f"{values['slice']}.{values['condition']}.{metric}"
    return MatrixCell(
        id=name,
        metric=metric,
        role=role,
        status=status,
        change=change,
        interval=Interval(lo=lo, hi=hi),
        **values,  # type: ignore[arg-type]
    )


def cells() -> tuple[MatrixCell, ...]:
    return (
        cell("p95", "primary", "pass", -0.43, -0.48, -0.38, baseline=72.4, candidate=41.2),
        cell("p99", "guard", "pass", -0.44, -0.52, -0.33, baseline=118.0, candidate=66.0, floor=0.09, margin=0.1),
        cell("p50", "guard", "pass", -0.15, -0.18, -0.12, baseline=9.9, candidate=8.4, floor=0.03, margin=0.25),
        cell("p95", "informative", "pass", -0.51, -0.57, -0.44, slice="width 512..960"),
        cell("p95", "informative", "inconclusive", -0.05, -0.12, 0.03, slice="stream client-3"),
        cell("p95", "informative", "fail", 0.12, 0.08, 0.19, condition="cold start"),
        cell("p95", "informative", "not-run", 0.0, 0.0, 0.0, condition="busy neighbour"),
    )


def move(plan: Plan = REFIT) -> Move:
    return Move(
        kind="entries",
        sentence="Add padded entries 160, 288, 512 and 960, and warm each at start.",
        owner="compiler",
        plan=plan,
        size=304,
        compile_s=3.9,
        memory_mib=118.0,
    )


def proposal() -> Proposal:
    return Proposal(
        move=move(),
        baseline="today",
        expected=figure("retune.simulated.refit-4", -0.47, "share", -0.51, -0.42, scope="tune"),
        measured=figure("retune.measured.refit-4", -0.43, "share", -0.48, -0.38),
        rollback="Serve plan today again when p95 exceeds 66 ms in two windows.",
        rejected=(
            Rejected(
                plan="warm-32",
                sentence="Warm 32 widths, no new entry.",
                reason="worse than refit-4 on the same arrivals",
                figure=figure("retune.measured.warm-32", -0.21, "share", -0.27, -0.15, scope="tune"),
            ),
            Rejected(
                plan="batch-4",
                sentence="Batch up to 4 and hold at most 2 ms.",
                reason="its simulated gain lies within the spread of replicas",
                figure=figure("retune.simulated.batch-4", 0.02, "share", -0.06, 0.11, scope="tune"),
            ),
            Rejected(
                plan="onnxruntime",
                sentence="Compile with onnxruntime instead of openvino.",
                reason="no gain in simulation",
                figure=figure("retune.simulated.onnxruntime", 1.86, "share", 1.7, 2.0, scope="tune"),
            ),
            Rejected(plan="int8", sentence="Compile in int8.", reason="unsupported: needs calibration data"),
        ),
    )


def verdict(decision: str = "ship", reason: str = "") -> Verdict:
    return Verdict(
        decision=decision,  # type: ignore[arg-type]
        reason=reason,  # type: ignore[arg-type]
        sentence="Ship: the primary cell and all guards pass.",
        deciding=("held-out.as recorded.p95",),
        cells=cells(),
        scope=("held-out traffic of the recorded day", "openvino 2026.3.0 on two cores"),
        not_covered=("a cold start", "widths above 960 px"),
        risks=("padding costs 12 % of the run time",),
    )


def envelope() -> Envelope:
    return Envelope(
        host="invented",
        kernel="Linux 6.12.41",
        cpu_model="Invented CPU with AMX",
        cpu_flags=("avx512f", "amx_bf16"),
        cores_online=2,
        cores_allowed=(0, 1),
        microcode="0x2b000603",
        firmware="",
        governor="",
        power_profile="",
        virtualisation="kvm",
        quota_cores=None,
        cgroup="v1",
        memory_bytes=8 * 2**30,
        memory_limit_bytes=None,
        huge_pages="madvise",
        clock_source="tsc",
        compiler="gcc 14",
        python="3.11.2",
        versions={"openvino": "2026.3.0", "onnxruntime": "1.23.0"},
        pace=(Pace(core=1, compute_ns=412_000, stream_ns=231_000, runs=240),),
    )


def checks() -> tuple[EnvelopeCheck, ...]:
    return (
        EnvelopeCheck(name="cores", assumed="0, 1", probed="0, 1", status="agrees"),
        EnvelopeCheck(name="memory_gib", assumed="2", probed="8.0", status="agrees"),
        EnvelopeCheck(name="governor", assumed="performance", probed="", status="unknown"),
        EnvelopeCheck(name="virtual", assumed="no", probed="kvm", status="differs"),
    )


def profile(plan: str, entry: str, width: int, ms: float) -> CompileProfile:
    ops = (
        Operator(
            name="conv1",
            kind="Convolution",
            kernel="brgemm_avx512_amx_bf16",
            precision="bf16",
            ns=900_000,
            fused=("bn1", "relu1"),
        ),
        Operator(name="matmul", kind="MatMul", kernel="brgemm_avx512_amx_bf16", precision="bf16", ns=400_000),
        Operator(name="softmax", kind="Softmax", kernel="jit_avx512_f32", precision="f32", ns=200_000),
    )
    warm = tuple(round(ms * 1e6 * f) for f in (1.0, 1.02, 0.99, 1.05, 1.01))
    return CompileProfile(
        plan=plan,
        entry=entry,
        backend="openvino",
        versions={"openvino": "2026.3.0"},
        options=CompileOptions(),
        compile_ns=1_310_000_000,
        memory_bytes=48 * 2**20,
        peak_bytes=71 * 2**20,
        inspection=Inspection(executed=(1, width), operators=ops, operators_before=214),
        timings=(ShapeTiming(executed=(1, width), first_ns=round(ms * 4.2e6), wall_ns=warm, cpu_ns=warm),),
    )


def run(id: str, plan: str, part: str = "held-out") -> RunInfo:  # noqa: A002
    return RunInfo(
        id=id,
        plan=plan,
        slice=part,
        source="measured",
        workload_sha256="8f3c" + "0" * 60,
        envelope_sha256="e21a" + "0" * 60,
        start_state="fresh workers, the plan's own warm list, empty queue",
        seed=3,
        workers=1,
        cores=(1,),
        driver_core=0,
        versions={"openvino": "2026.3.0"},
        driver_cpu_share=0.31,
    )


def _with(found: Findings, figures: tuple[Figure, ...], extra: tuple[Series, ...]) -> Findings:
    return replace(found, figures=(*found.figures, *figures), series=(*found.series, *extra))


def ship() -> Record:
    """Everything there is, and a change that helps."""
    return Record(
        study=study(),
        findings={
            "workload": workload(),
            "compile": compiled(),
            "replay": replay(),
            "attribute": attributed(),
            "score": score(),
            "retune": _with(retuned(), (), (sweep(),)),
            "validate": _with(validate(), *padding()),
            "decide": decided(),
        },
        envelope=envelope(),
        checks=checks(),
        plans=(TODAY, REFIT),
        profiles=(
            profile("today", "any-width", 192, 3.1),
            profile("refit-4", "to-160", 160, 2.5),
            profile("refit-4", "to-288", 288, 4.2),
            profile("refit-4", "to-512", 512, 7.4),
        ),
        failures=(CompileFailure(entry="to-960", kind="timeout", message="no answer in 60 s", plan="refit-4"),),
        runs=(
            *(run(f"tune-today-{k}", "today", "tune") for k in (1, 2, 3)),
            *(run(f"held-out-{plan}-{k}", plan) for k in (1, 2, 3) for plan in ("today", "refit-4")),
        ),
        proposal=proposal(),
        verdict=verdict(),
        manifest=Manifest(
            kind="evidence",
            trimtab="0.1.0",
            created="2026-11-30T10:00:00Z",
            files=(ManifestFile(path="replay.json", sha256="ab" * 32, bytes=1234),),
        ),
    )


def crowded() -> Record:
    """Eight new entries, most of them narrow."""
    record = ship()
    assert record.proposal is not None
    ends = (132, 201, 266, 337, 428, 557, 752, 1010)
    added = tuple(Entry(id=f"to-{end}", kind="bucket", lo=(16,), hi=(end,)) for end in ends)
    spec = replace(REFIT.compile, entries=(*added, *TODAY.compile.entries))
    plan = replace(REFIT, id="refit-8", compile=spec)
    return replace(record, proposal=replace(record.proposal, move=replace(move(plan), peak_mib=812.0)))


def hold(reason: str = "no-benefit") -> Record:
    """The change does not leave the noise floor."""
    record = ship()
    base = verdict("hold", reason)
    flat = cell("p95", "primary", "inconclusive", -0.02, -0.07, 0.04, baseline=72.4, candidate=71.0)
    sentence = "Hold: no benefit above the floor."
    return replace(record, verdict=replace(base, cells=(flat, *base.cells[1:]), sentence=sentence))


def rollback() -> Record:
    """A guard fails on what is running."""
    record = ship()
    base = verdict("rollback", "guard-failed")
    worse = cell("p99", "guard", "fail", 0.31, 0.19, 0.44, baseline=118.0, candidate=155.0, floor=0.09, margin=0.1)
    back = replace(record.proposal.move, sentence="Return to plan today.")  # type: ignore[union-attr]
    return replace(
        record,
        proposal=replace(record.proposal, move=back),  # type: ignore[type-var]
        verdict=replace(base, cells=(base.cells[0], worse, *base.cells[2:])),
    )


def minimal() -> Record:
    """A packet whose run has just begun."""
    return Record(study=study(), findings={})


def failing() -> Record:
    """Requests failed: p99 lies among them."""
    found = replay()
    figures = tuple(replace(f, value=math.inf, interval=None) if f.id == "replay.p99" else f for f in found.figures)
    failures = series("replay.failures", [{"run": "tune-today-1", "plan": "today", "kind": "crash", "requests": 41}])
    return Record(
        study=study(),
        findings={"replay": replace(found, figures=figures, series=(*found.series, failures))},
        runs=(run("tune-today-1", "today", "tune"),),
    )


def hostile() -> Record:
    """Every name that data can bring tries to be markup or a link."""
    record = ship()
    text = msgspec.json.encode(record).decode()
    quoted = msgspec.json.encode(HOSTILE).decode()[1:-1]
    for name in ("refit-4", "any-width", "to-160", "client-3", "ocr-receipts", "brgconv_avx512_amx_bf16", "refit-8"):
        text = text.replace(f'"{name}"', f'"{quoted}"').replace(name, quoted)
    text = text.replace("Plan today:", "</script><script>alert(1)</script>").replace("a cold start", HOSTILE_URL)
    return msgspec.json.decode(text, type=Record)
