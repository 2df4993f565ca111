"""What users of other systems ran into, as tables of requests: the class that their thread settled on is reached.

Figures in the comments are the published ones; what else a table needs is said beside it. docs/field-cases.md lists all
cases, and those that cannot be written as a table.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fieldcases_kit import apart, classes, first, from_quantiles, jitter, seconds, table

from trimtab.loop.verbs.tables import diagnose_table


def test_01_exhaustive_search_at_every_new_shape(tmp_path: Path) -> None:
    # 16 new shapes cost 10141 ms in all, 1348 at most; 0.593 ms in steady state. Each shape is called 15 times.
    n = 16 * 15
    shape = np.tile(np.arange(16) * 32 + 32, 15)
    cost = np.where(np.arange(n) < 16, (10141 - 1348) / 15, 0.593 * jitter(n))
    cost[3] = 1348
    path = table(tmp_path, "ocr", {"start_s": apart(cost), "latency_ms": cost, "shape.width": shape})
    answer = diagnose_table(path)
    assert classes(answer) == ["cold-shape"]
    assert "100.0 % of the slowest batches, 0.0 % of the faster" in answer.diagnosis.classes[0].evidence[0]


@pytest.mark.parametrize(("alone", "cycling"), [(434, 1271), (568, 789)])
def test_02_tuned_again_at_every_change_of_shape(tmp_path: Path, alone: float, cycling: float) -> None:
    # 434 ms on one shape, 1271 cycling eight; with the default search 568 and 789.
    n = 160
    same, mixed = alone * jitter(n), cycling * jitter(n)
    text = np.arange(8) * 16 + 16
    before = table(
        tmp_path, "same", {"start_s": apart(same), "latency_ms": same, "shape.text": np.repeat(text, n // 8)}
    )
    path = table(tmp_path, "mixed", {"start_s": apart(mixed), "latency_ms": mixed, "shape.text": np.tile(text, n // 8)})
    assert first(path, baseline=before) == "cold-shape"


def test_03_one_set_of_tactics_for_all_widths(tmp_path: Path) -> None:
    # Widths 10 to 1200 in one profile: slower than eager, 9 ms at width 100 where eager takes 3; a fixed shape takes
    # 2.9. Here it is as fast as fixed at the width of 200 that it was tuned for, and time is linear in the distance
    # from there; eager grows by 1 ms per 100. Most lines of text are short.
    n = 240
    width = 10 + 10 * (np.arange(n) * 7 % 29)
    eager = (2 + width / 100) * jitter(n)
    tuned = (2.9 / 3 + np.clip((200 - width) / 100, 0, None) * (3 - 2.9 / 3)) * eager
    columns = {"shape.width": width}
    before = table(tmp_path, "eager", {"start_s": apart(eager), "latency_ms": eager, "compute_ms": eager} | columns)
    path = table(tmp_path, "tuned", {"start_s": apart(tuned), "latency_ms": tuned, "compute_ms": tuned} | columns)
    answer = diagnose_table(path, baseline=before)
    assert classes(answer)[0] == "mapping-fallback"


def test_04_an_upgrade_moved_every_percentile_alike(tmp_path: Path) -> None:
    # p50 12.86 -> 37.35, p95 16.6 -> 49.9, p99 19.2 -> 56.8 ms.
    then = from_quantiles(600, {0: 10, 0.5: 12.86, 0.95: 16.6, 0.99: 19.2, 1: 20})
    now = from_quantiles(600, {0: 29, 0.5: 37.35, 0.95: 49.9, 0.99: 56.8, 1: 60})
    before = table(tmp_path, "before", {"start_s": apart(then), "latency_ms": then})
    path = table(tmp_path, "after", {"start_s": apart(now), "latency_ms": now})
    answer = diagnose_table(path, baseline=before)
    assert classes(answer) == ["whole-shift"]
    assert answer.diagnosis.classes[0].evidence == (
        "p50 moved by x2.90 and p99 by x2.96: the whole distribution moved",
    )


def test_05_a_batch_of_nine_runs_as_sixteen(tmp_path: Path) -> None:
    # 55 ms a token at 16, 44 with a size of its own.
    n = 200
    padded, own = 55 * jitter(n), 44 * jitter(n)
    columns = {"shape.batch": np.full(n, 9)}
    before = table(
        tmp_path,
        "own",
        {"start_s": apart(own), "latency_ms": own, "compute_ms": own, "executed.batch": [9] * n} | columns,
    )
    path = table(
        tmp_path,
        "padded",
        {"start_s": apart(padded), "latency_ms": padded, "compute_ms": padded, "executed.batch": [16] * n} | columns,
    )
    answer = diagnose_table(path, baseline=before)
    assert classes(answer)[0] == "padding-waste"
    assert answer.diagnosis.classes[0].evidence == ("executed dims are 1.78 times the true ones",)


def test_06_sizes_every_64(tmp_path: Path) -> None:
    # Finer sizes are up to 1.3 to 1.5 times as fast. No absolute time is published: 10 and 15 ms here. Batches of 65 to
    # 72 run as 128, those of 9 to 16 as 64.
    n = 240
    batch = np.where(np.arange(n) % 3 == 0, 9, 65) + np.arange(n) % 8
    size = np.where(batch > 64, 128, 64)
    coarse = np.where(size == 128, 15, 10) * jitter(n)
    columns = {"start_s": apart(coarse), "latency_ms": coarse, "compute_ms": coarse}
    path = table(tmp_path, "every64", columns | {"shape.batch": batch, "executed.batch": size})
    assert first(path, sla="p95=12ms") == "padding-waste"


def test_07_requests_of_different_shape_never_share_a_batch(tmp_path: Path) -> None:
    # A delay of 500000 us. The run time is not published: 5 ms here.
    n = 200
    run, queue = 5 * jitter(n), np.full(n, 500.0)
    start = seconds(np.arange(n) * 40.0)
    path = table(
        tmp_path,
        "delay",
        {"start_s": start, "latency_ms": run + queue, "queue_ms": queue, "compute_ms": run, "batch": range(n),
         "shape.length": np.arange(n) % 50 + 1},
    )  # fmt: skip
    answer = diagnose_table(path, facts=["max_batch=8"])
    assert classes(answer)[0] == "batch-policy"
    assert "batches hold 1 of 8 requests" in answer.diagnosis.classes[0].evidence[0]


def test_08_the_load_generator_is_late(tmp_path: Path) -> None:
    # 24 requests/s asked for, 18.5 achieved, 993 of 997 issued late; queued for 102 us. Run time: 40 ms here.
    n = 997
    due, issued = np.arange(n) / 24, np.arange(n) / 18.5
    issued[:4] = due[:4]
    columns = {"queue_ms": np.full(n, 0.102), "compute_ms": 40 * jitter(n)}
    latency = columns["queue_ms"] + columns["compute_ms"] + (issued - due) * 1e3
    path = table(tmp_path, "late", {"start_s": due, "issued_s": issued, "latency_ms": latency} | columns)
    answer = diagnose_table(path)
    assert classes(answer) == ["invalid-measurement"]
    assert answer.diagnosis.classes[0].evidence[0].startswith("issue rate 77.1 % of the offered one")


def test_08_told_by_the_rate_alone(tmp_path: Path) -> None:
    run = 40 * jitter(997)
    path = table(tmp_path, "late", {"start_s": np.arange(997) / 18.5, "latency_ms": run})
    assert first(path, "offered_rate=24") == "invalid-measurement"
    assert first(path, "offered_rate=18.5") == "healthy"


def test_10_idle_threads_spin(tmp_path: Path) -> None:
    # Preprocessing takes 3.4 ms alone and 98 beside an idle session with 88 threads at 930 % CPU.
    n = 200
    alone, beside = 3.4 * jitter(n), 98 * jitter(n)
    before = table(tmp_path, "alone", {"start_s": apart(alone), "latency_ms": alone, "compute_ms": alone})
    path = table(tmp_path, "beside", {"start_s": apart(beside), "latency_ms": beside, "compute_ms": beside})
    assert first(path, "threads=88", "idle_cpu=9.3", baseline=before) == "oversubscription"
    assert first(path, baseline=before) == "whole-shift"  # the times alone say no more


def _quota(n: int) -> tuple[np.ndarray, np.ndarray]:
    """(on core, wall) ms of threads that run for 10 ms and then wait for 90: work of 4 to 34 ms."""
    work = 4 + (np.arange(n) * 7.3) % 30
    return work, np.floor(work / 10) * 100 + work % 10


def test_11_a_quota_stops_forty_threads(tmp_path: Path) -> None:
    # 40 cores, a limit of 4: threads run for 10 ms, then wait for 90.
    work, wall = _quota(200)
    columns = {"start_s": apart(wall), "latency_ms": wall, "compute_ms": wall}
    seen = table(tmp_path, "seen", columns | {"on_core_ms": work, "runqueue_ms": [0] * 200})
    blind = table(tmp_path, "blind", columns)
    assert first(seen) == "envelope"
    assert first(blind, "threads=40", "cores=40", "quota_cores=4") == "envelope"
    assert first(blind, "threads=40", "cores=40", "throttled=0.9") == "envelope"
    answer = diagnose_table(blind)
    assert classes(answer) == ["insufficient-evidence"]
    assert "cpu.stat" in answer.diagnosis.next_measurement


def test_12_fusion_that_buys_memory_and_no_time(tmp_path: Path) -> None:
    # Fused 7.721 ms, peak 8.886 GB; unfused 7.749 ms, 4.591 GB.
    n = 200
    fused, plain = 7.721 * jitter(n), 7.749 * jitter(n)
    before = table(tmp_path, "plain", {"start_s": apart(plain), "latency_ms": plain, "peak_mb": [4591] * n})
    path = table(tmp_path, "fused", {"start_s": apart(fused), "latency_ms": fused, "peak_mb": [8886] * n})
    answer = diagnose_table(path, baseline=before)
    assert classes(answer) == ["memory-burst"]
    seen = "peak memory is 1.94 times the baseline's, for 0.4 % of run time saved"
    assert answer.diagnosis.classes[0].evidence == (seen,)


def test_13_an_int8_model_that_runs_in_fp32(tmp_path: Path) -> None:
    # At fp32 speed; the time itself is not published: 100 ms here.
    run = 100 * jitter(200)
    path = table(tmp_path, "int8", {"start_s": apart(run), "latency_ms": run, "compute_ms": run})
    assert first(path, "declared=int8", "executed=fp32") == "precision-fallback"
    assert first(path, "declared=int8", "executed=int8") == "healthy"


def test_14_latency_counted_from_the_issue(tmp_path: Path) -> None:
    # 10 requests/s, one at a time: p99 of 507 ms as reported, of 3330 ms from the schedule.
    n = 500
    own = np.where(np.arange(n) % 50 == 7, 507.0, 98.3)
    due, issued, free = np.arange(n) * 100.0, np.zeros(n), 0.0
    for i in range(n):
        issued[i] = max(due[i], free)
        free = issued[i] + own[i]
    path = table(tmp_path, "omitted", {"start_s": seconds(due), "issued_s": seconds(issued), "latency_ms": own})
    answer = diagnose_table(path)
    assert classes(answer) == ["invalid-measurement"]
    p99 = answer.tail.figure("diagnose.p99")
    assert p99 is not None
    assert p99.value == pytest.approx(3330, rel=0.05)
    assert np.quantile(own, 0.99, method="inverted_cdf") == 507


def test_15_two_pools_of_sixteen_threads(tmp_path: Path) -> None:
    # 31 ms alone, 46 with a second session; time on the core does not change. Cores: 16.
    n = 200
    one, two = 31 * jitter(n), 46 * jitter(n)
    before = table(tmp_path, "one", {"start_s": apart(one), "latency_ms": one, "compute_ms": one, "on_core_ms": one})
    columns = {"start_s": apart(two), "latency_ms": two, "compute_ms": two}
    path = table(tmp_path, "two", columns | {"on_core_ms": two - 15, "runqueue_ms": [15] * n})
    assert first(path, "threads=32", "cores=16", baseline=before) == "oversubscription"
    assert first(path, "threads=32", "cores=16", "throttled=0.3", baseline=before) == "envelope"


def test_16_a_static_model_that_is_slower_than_the_dynamic_one(tmp_path: Path) -> None:
    # Not settled, and without figures: a handful of calls decides nothing, whatever they say.
    static, dynamic = 12 * jitter(20), 10 * jitter(20)
    before = table(tmp_path, "dynamic", {"start_s": apart(dynamic), "latency_ms": dynamic})
    path = table(tmp_path, "static", {"start_s": apart(static), "latency_ms": static})
    assert first(path, baseline=before) == "insufficient-evidence"


# --- decoys ---------------------------------------------------------------------------------------------------


def _served(arrive: np.ndarray, run: np.ndarray) -> dict[str, np.ndarray | list[str]]:
    """One worker, first come, first served; ms."""
    free, queue = 0.0, np.zeros(run.size)
    for i in range(run.size):
        queue[i] = max(free - arrive[i], 0.0)
        free = arrive[i] + queue[i] + run[i]
    return {"start_s": seconds(arrive), "latency_ms": queue + run, "queue_ms": queue, "compute_ms": run}


def test_recompilation_per_batch_size_is_not_oversubscription(tmp_path: Path) -> None:
    n = 600
    size = 1 + (np.arange(n) * 7) % 64
    compiling = np.where(np.arange(n) < 64, 120.0, 0.0)
    run = (2 + 0.1 * size) * jitter(n) + compiling
    columns = _served(np.arange(n) * 60.0, run)
    more = {"compile_ms": compiling, "on_core_ms": run, "runqueue_ms": run * 0.001, "shape.batch": size}
    answer = diagnose_table(table(tmp_path, "sizes", columns | more), facts=["threads=16", "cores=4"])
    assert classes(answer) == ["cold-shape"]
    assert any(line.startswith("oversubscription: ") for line in answer.diagnosis.classes[0].ruled_out)


def test_a_quota_is_not_a_slow_kernel(tmp_path: Path) -> None:
    n = 600
    throttled = np.where(np.arange(n) % 5 == 0, 90.0, 0.0)
    run = 8 * jitter(n) + throttled
    columns = _served(np.arange(n) * 150.0, run) | {"shape.width": 10 + np.arange(n) % 9}
    path = table(tmp_path, "quota", columns | {"throttled_ms": throttled, "on_core_ms": run - throttled})
    assert first(path, "threads=40", "cores=40") == "envelope"


def test_a_late_generator_is_not_a_fast_server(tmp_path: Path) -> None:
    n = 600
    due, issued, run = np.arange(n) * 10.0, np.arange(n) * 13.0, 12 * jitter(n)
    columns = {"start_s": seconds(due), "issued_s": seconds(issued), "latency_ms": run, "compute_ms": run}
    assert first(table(tmp_path, "late", columns), sla="p95=20ms") == "invalid-measurement"


@pytest.mark.parametrize("facts", [[], ["workers=4"]])
def test_a_queue_that_grows_while_workers_idle_is_not_want_of_capacity(tmp_path: Path, facts: list[str]) -> None:
    n = 600
    run, queue = 5 * jitter(n), np.linspace(0, 600, n)
    columns = {"start_s": seconds(np.arange(n) * 50.0), "latency_ms": run + queue, "queue_ms": queue}
    path = table(tmp_path, "idle", columns | {"compute_ms": run, "shape.width": [8] * n})
    answer = diagnose_table(path, facts=facts)
    assert classes(answer) == ["batch-policy"]
    ruled_out = answer.diagnosis.classes[0].ruled_out
    assert any(line.startswith("capacity-queueing: eligible workers were idle") for line in ruled_out)


# --- what no table may be made to say, and classes that no field case has ---------------------------------------


def test_overload_is_named_by_arithmetic(tmp_path: Path) -> None:
    run = 12 * jitter(600)
    path = table(tmp_path, "overload", _served(np.arange(600) * 10.0, run) | {"shape.width": [8] * 600})
    answer = diagnose_table(path, sla="p95=50ms")
    assert classes(answer) == ["capacity-queueing"]
    assert "1.20 times the workers' time" in answer.diagnosis.classes[0].evidence[0]


def test_healthy_is_called_healthy(tmp_path: Path) -> None:
    run = (3 + np.arange(600) % 7) * jitter(600)
    path = table(tmp_path, "healthy", _served(np.arange(600) * 20.0, run) | {"shape.width": np.arange(600) % 7 + 1})
    assert first(path) == "healthy"
    assert first(path, sla="p95=20ms") == "healthy"


def test_eight_samples_have_no_p99(tmp_path: Path) -> None:
    run = 5 * jitter(8)
    answer = diagnose_table(table(tmp_path, "eight", {"start_s": apart(run), "latency_ms": run}), sla="p99=10ms")
    assert classes(answer) == ["insufficient-evidence"]
    assert answer.diagnosis.next_measurement == "replay at least 459 requests"
    p99 = answer.tail.figure("diagnose.p99")
    assert p99 is not None
    assert p99.value is None


def test_a_run_that_failed_has_no_latency_of_zero(tmp_path: Path) -> None:
    columns = {"start_s": np.arange(200) * 0.1, "latency_ms": [""] * 200, "ok": ["false"] * 200}
    answer = diagnose_table(table(tmp_path, "failed", columns), sla="p95=10ms")
    assert classes(answer) == ["insufficient-evidence"]
    p95 = answer.tail.figure("diagnose.p95")
    assert p95 is not None
    assert p95.value == float("inf")
    assert "200 failed" in p95.note


def test_requests_that_ran_out_of_memory(tmp_path: Path) -> None:
    run = 5 * jitter(200)
    failed = np.arange(200) % 8 == 0
    path = table(tmp_path, "oom", {"start_s": apart(run), "latency_ms": run, "ok": np.where(failed, "oom", "true")})
    assert first(path, sla="p95=10ms") == "memory-limit"


def test_time_of_no_stage_is_a_remainder_and_no_class(tmp_path: Path) -> None:
    run = 5 * jitter(600)
    columns = _served(np.arange(600) * 20.0, run)
    latency = run + np.where(np.arange(600) % 10 == 0, 300.0, 1.0)
    answer = diagnose_table(table(tmp_path, "lost", columns | {"latency_ms": latency}), sla="p95=50ms")
    assert classes(answer) == ["insufficient-evidence"]
    remainder = answer.tail.figure("diagnose.stage.remainder")
    assert remainder is not None
    assert remainder.value == pytest.approx(300, abs=1)
    assert "no recorded stage" in answer.diagnosis.next_measurement


def test_launches_own_the_time_of_small_shapes(tmp_path: Path) -> None:
    n = 600
    width = 1 + np.arange(n) % 10
    run = (4 + 0.2 * width) * jitter(n)
    path = table(tmp_path, "calls", {"start_s": apart(run), "latency_ms": run, "compute_ms": run, "shape.width": width})
    assert first(path, "launches=400", "launch_us=8", sla="p95=4ms") == "launch-overhead"
    assert first(path, "launches=10", "launch_us=8", sla="p95=4ms") != "launch-overhead"


def test_work_near_the_ceiling_is_compute_bound(tmp_path: Path) -> None:
    run = 40 * jitter(600)
    columns = {"start_s": apart(run), "latency_ms": run, "compute_ms": run, "shape.width": [64] * 600}
    path = table(tmp_path, "bound", columns)
    assert first(path, "ceiling=0.85", sla="p95=20ms") == "compute-bound"
    assert first(path, "ceiling=0.3", sla="p95=20ms") == "insufficient-evidence"
    assert "ceiling" in diagnose_table(path, sla="p95=20ms").diagnosis.next_measurement


def test_aggressive_fusion_saves_launches_and_bursts_at_large_shapes(tmp_path: Path) -> None:
    n = 600
    width = 1 + (np.arange(n) * 7) % 100
    plain = (2 + 0.1 * width) * jitter(n)
    fused = np.where(width > 70, plain * 1.5, plain - 0.5)
    arrive = np.arange(n) * 40.0
    before = table(tmp_path, "plain", _served(arrive, plain) | {"shape.width": width, "peak_mb": [900] * n})
    path = table(tmp_path, "fused", _served(arrive, fused) | {"shape.width": width, "peak_mb": [1800] * n})
    assert first(path, baseline=before) == "memory-burst"


def test_a_backlog_belongs_to_the_stalls_that_made_it(tmp_path: Path) -> None:
    n = 1200
    width = np.where(np.arange(n) % 60 == 30, 11 + np.arange(n) // 60, np.where(np.arange(n) % 2, 10, 40))
    run = np.where(np.arange(n) % 60 == 30, 200.0, 5 * jitter(n))
    path = table(tmp_path, "stall", _served(np.arange(n) * 10.0, run) | {"shape.width": width})
    answer = diagnose_table(path, sla="p95=50ms")
    assert classes(answer)[0] == "cold-shape"
    share = answer.diagnosis.classes[0].share
    assert share is not None
    assert share > 0.9


def test_one_stream_that_floods_its_worker_is_imbalance(tmp_path: Path) -> None:
    n = 1200
    worker = (np.arange(n) % 10 == 0).astype(int)  # nine of ten requests go to worker 0
    run = 8 * jitter(n)
    arrive = np.cumsum(np.where(np.arange(n) % 40 < 16, 4.0, 12.0))  # bursts of 16
    queue, free = np.zeros(n), [0.0, 0.0]
    for i in range(n):
        queue[i] = max(free[worker[i]] - arrive[i], 0.0)
        free[worker[i]] = arrive[i] + queue[i] + run[i]
    columns = {"start_s": seconds(arrive), "latency_ms": queue + run, "queue_ms": queue, "compute_ms": run}
    path = table(tmp_path, "pinned", columns | {"worker": worker, "shape.width": [8] * n})
    assert first(path, sla="p95=30ms") == "core-imbalance"
