"""Invented findings of the stages compile, attribute and retune, for the report's tests."""

from __future__ import annotations

from math import sin

from sample_findings import figure, series
from sample_requests import slow_requests

from trimtab.domain.figure import Cell, Finding, Findings


def compiled() -> Findings:
    entries: list[dict[str, Cell]] = []
    shapes: list[dict[str, Cell]] = []
    kernels: list[dict[str, Cell]] = []
    precision: list[dict[str, Cell]] = []
    named = [
        ("today", "any-width", 1640),
        *(("refit-4", f"to-{w}", w) for w in (160, 288, 512)),
        ("refit-8", "to-96", 96),
    ]
    for plan, entry, width in named:
        entries.append(
            {"plan": plan, "entry": entry, "backend": "openvino", "optimisation": "default", "declared": "default",
             "executed": "bf16", "executed_share": 0.87, "time": 640.0 + width, "memory": 48.0, "peak": 71.0,
             "scratch": 9.5,
             "operators_before": 214, "operators": 96, "fusions": 118, "warm": 0.6 + 0.0131 * min(width, 400),
             "first_excess": 17.5}
        )  # fmt: skip
        precision += [
            {"plan": plan, "entry": entry, "precision": name, "share": part}
            for name, part in (("bf16", 0.87), ("f32", 0.13))
        ]
        kernels += [
            {"plan": plan, "entry": entry, "kind": "Convolution", "kernel": name, "precision": "bf16", "operators": 30,
             "share": 0.4} for name in ("brgconv_avx512_amx_bf16", "jit_avx512_f32")
        ]  # fmt: skip
    for k in range(16):
        warm = 0.6 + 0.0131 * (48 + 60 * k)
        shapes.append(
            {"plan": "today", "entry": "any-width", "executed": f"1x{48 + 60 * k}", "warm": warm, "lo": warm * 0.98,
             "hi": warm * 1.03, "p95": warm * 1.2, "on_core": warm, "first": warm + 15 + 0.5 * k,
             "first_excess": 15 + 0.5 * k, "n": 12}
        )  # fmt: skip
    failed: list[dict[str, Cell]] = [
        {"plan": "refit-4", "entry": "to-960", "kind": "timeout", "message": "no answer in 60 s"}
    ]
    texts = (
        "5 entries of 3 plans compiled in 6.1 s and 240 MiB; 1 failed.",
        "today.any-width does not execute f32, which the study declares: 87.0 % in bf16 of profiled time.",
        "today.any-width: the first run of a shape takes 17.5 ms more than a warm one (5.2 ms), in the median.",
    )
    return Findings(
        stage="compile",
        headline=texts[0],
        findings=tuple(Finding(text=text, owner="compiler") for text in texts),
        series=(
            series("compile.quality", [_quality("today", 0.99, 0.94, "bf16 87%, f32 13%")], "quality"),
            series("compile.quality_parts", _parts("today"), "quality"),
            series("compile.memory", [_memory("today", 412.0, 36.0, 84.0), _memory("refit-4", 530.0, 41.0, None)]),
            series("compile.growth", _growth("today", 300.0) + _growth("refit-4", 420.0)),
            series("compile.entries", entries), series("compile.shapes", shapes), series("compile.kernels", kernels),
            series("compile.precision", precision), series("compile.failures", failed),
        ),
    )  # fmt: skip


def _quality(plan: str, value: float, worst: float, executed: str) -> dict[str, Cell]:
    return {
        "plan": plan, "metric": "argmax-agreement", "value": value, "floor": 0.97,
        "status": "pass" if value >= 0.97 else "fail", "worst": worst, "worst_width": 913,
        "worst_band": "width 16-140", "worst_entry": "any-width", "worst_padding": None,
        "worst_batched": None if plan == "today" else "in batches",
        "worst_batched_value": None if plan == "today" else 0.8,
        "worst_band_value": value - 0.01, "worst_entry_value": value, "worst_padding_value": None, "samples": 24,
        "payloads": "rendered", "time": 5.2, "baseline_time": 6.4, "executed": executed,
    }  # fmt: skip


def _parts(plan: str) -> list[dict[str, Cell]]:
    return [
        {"plan": plan, "kind": kind, "part": name, "metric": "argmax-agreement", "value": value, "worst": 0.94,
         "floor": 0.97, "status": status, "samples": 8, "time": 5.2, "baseline_time": 5.2, "payloads": "rendered",
         "executed": "bf16 87%, f32 13%"}
        for kind, name, value, status in (
            ("all", "all shapes", 0.99, "pass"), ("band", "width 16-140", 0.98, "pass"),
            ("entry", "any-width", None, "inconclusive"), ("padding", "to-160", 0.95, "fail"),
        )
    ]  # fmt: skip


def _memory(plan: str, peak: float, scratch: float, growth: float | None) -> dict[str, Cell]:
    return {
        "plan": plan, "entries": 1, "workers": 1, "memory": 48.0, "peak": peak, "scratch": scratch, "growth": growth,
        "growth_late": growth and growth / 2, "shapes": 424, "limit": 2048.0, "share": peak / 2048.0,
    }  # fmt: skip


def _growth(plan: str, held: float) -> list[dict[str, Cell]]:
    return [
        {"plan": plan, "entry": "any-width", "shapes": 24 + 50 * k, "resident": held + 12.0 * k**0.5} for k in range(9)
    ]


def retuned() -> Findings:
    def row(
        plan: str, sentence: str, status: str, sim: float | None, mea: float | None, reason: str
    ) -> dict[str, Cell]:
        return {
            "plan": plan, "sentence": sentence, "kind": "entries", "owner": "compiler", "size": 300, "status": status,
            "simulated": sim, "simulated_lo": None if sim is None else sim - 0.05,
            "simulated_hi": None if sim is None else sim + 0.05, "replicas": 5, "measured": mea,
            "measured_lo": None if mea is None else mea - 0.05, "measured_hi": None if mea is None else mea + 0.05,
            "judged_on": "p95", "floor": 0.06, "compile_s": 3.9, "memory_mib": 118.0, "reason": reason,
            "peak_mib": 530.0, "quality": None if mea is None else 0.99, "quality_metric": "argmax-agreement",
            "quality_status": None if mea is None else "pass", "payloads": "rendered", "executed": "bf16 87%",
        }  # fmt: skip

    candidates = [
        row("today", "No change.", "baseline", 0.0, None, "refit-4 gains more than the floor"),
        row("refit-4", "Add padded entries 160, 288, 512 and 960, and warm each at start.", "chosen", -0.47, -0.43,
            "the smallest that is not worse"),
        row("refit-8", "Add eight padded entries and warm each at start.", "rejected", -0.49, -0.44,
            "not better than refit-4, which changes less"),
        row("warm-32", "Warm the 32 most frequent widths.", "rejected", -0.25, -0.21,
            "worse than refit-4 on the same arrivals"),
        row("batch-4", "Batch up to 4 and hold at most 2 ms.", "rejected", 0.02, None,
            "its simulated gain lies within the spread"),
        row("onnxruntime", "Compile with onnxruntime instead of openvino.", "rejected", 1.86, None,
            "no gain in simulation"),
        row("int8", "Compile in int8.", "refused", None, None, "needs calibration data"),
    ]  # fmt: skip
    cores: list[dict[str, Cell]] = [
        {
            "cores": n,
            "value": 82.0 / n**1.4,
            "miss": 0.09 / n**2,
            "utilisation": 0.71 / n,
            "met": n > 1,
            "extrapolated": n > 1,
        }
        for n in (1, 2, 3, 4)
    ]
    buckets: list[dict[str, Cell]] = [
        {
            "family": family,
            "count": n,
            "mean_ms": 3.2 + worse / n,
            "total_ms": 1e4,
            "padding": 0.4 / n,
            "boundaries": "",
        }
        for family, worse in (("fitted", 3.0), ("linear", 4.4), ("powers-of-two", 5.1))
        for n in (1, 2, 3, 4, 6, 8, 12)
    ]
    more = {"artifact": "retune.json", "scope": "tune", "samples": 0}
    figures = (
        figure("retune.cores_needed", 2.0, "cores", **more),
        figure("retune.cores_margin", 0.48, "share", **more),
        figure("retune.load_limit", 1.71, "x", **more),
        figure("retune.simulated.refit-4", -0.47, "share", -0.52, -0.42, **more),
    )
    return Findings(
        stage="retune",
        headline="Add padded entries 160, 288, 512 and 960, and warm each at start: p95 −43 % on the tune slice.",
        figures=figures,
        series=(
            series("retune.quality", [_quality("int8", 0.83, 0.41, "int8 100%")], "quality"),
            series("retune.candidates", candidates), series("retune.buckets", buckets),
            series("retune.cores", cores, scope="tune", note="more cores than were replayed are extrapolated"),
        ),
    )  # fmt: skip


CAUSES = {
    "cold": (9.1, 31.6, 0.2), "capacity": (0.0, 21.0, 2.6), "useful": (6.2, 0.0, 4.1), "interference": (1.9, 4.2, 0.3),
    "off_core": (0.8, 2.9, 0.1), "premium": (0.4, 1.3, 0.2), "dispatch": (0.2, 0.6, 0.2), "unmodelled": (0.0, 1.1, 0.0),
    "completion": (0.1, 0.0, 0.1),
}  # fmt: skip


def attributed() -> Findings:
    total = sum(own + inherited for own, inherited, _ in CAUSES.values())
    rows: list[dict[str, Cell]] = []
    for name, (own, inherited, typical) in CAUSES.items():
        gain = None if name in ("useful", "capacity", "unmodelled") else 0.82 * (own + inherited)
        rows.append(
            {"cause": name, "own": own, "inherited": inherited, "typical": typical, "share": (own + inherited) / total,
             "gain": gain, "gain_lo": None if gain is None else gain * 0.8 - 1.5,
             "gain_hi": None if gain is None else gain * 1.2 + 1.5}
        )  # fmt: skip
    waiting: list[dict[str, Cell]] = [
        {"t": 0.22 * k, "waiting": round(6 + 5 * sin(k / 9) + k / 25)} for k in range(200)
    ]
    cores: list[dict[str, Cell]] = [
        {"t": 0.22 * k, "worker": 0, "cause": name, "busy": part}
        for k in range(200)
        for name, part in (
            ("useful", 0.42 + 0.1 * sin(k / 5)), ("interference", 0.06), ("cold", max(0.0, 0.22 * (k / 200)))
        )
        if part
    ]  # fmt: skip
    streams: list[dict[str, Cell]] = [
        {"stream": f"client-{k}", "requests": 400, "in_tail": 20, "p95": 50.0 + 9 * k, "cause": "cold", "own": 1.0,
         "inherited": 2.0, "share": 0.4} for k in range(5)
    ]  # fmt: skip
    found: list[dict[str, Cell]] = [
        {"class": "cold-shape", "share": 0.62, "lo": 0.51, "hi": 0.7, "owner": "compiler lead",
         "evidence": "first runs inside 71 % of the slow batches, 3 % of the others", "ruled_out": "mapping-fallback"},
        {"class": "capacity-queueing", "share": 0.21, "lo": 0.12, "hi": 0.3, "owner": "runtime lead",
         "evidence": "all eligible workers busy", "ruled_out": ""},
    ]  # fmt: skip
    more = {"artifact": "accounts/today-1.parquet", "scope": "this run"}
    figures = (
        figure("tail.p95.total", total, "ms", **more),
        figure("tail.p95.bound", 72.4, "ms", **more),
        figure("tail.p95.requests", 166.0, "requests", **more),
        figure("tail.p95.modelled", 0.98, "ratio", **more),
        figure("tail.p95.cold.share", 0.5, "share", 0.44, 0.55, **more),
    )
    text = "Cold runs owns 50.0 % of the p95 set (9.1 ms own, 31.6 ms inherited through the queue)."
    artifact = "accounts/today-1.parquet"
    return Findings(
        stage="attribute",
        headline=text,
        findings=(Finding(text=text, owner="compiler"),),
        figures=figures,
        series=(
            series("tail.p95.waterfall", rows, artifact), series("queue.waiting", waiting, artifact),
            series("cores.timeline", cores, artifact), series("attribute.classes", found, artifact),
            series("tail.p95.by_stream", streams, artifact), *slow_requests(),
        ),
    )  # fmt: skip
