"""Make ``loadgen_{trace,detail,summary}_{server,single}``: ``python make_loadgen.py server|single``, twice, then gzip.

One worker that sleeps 3 to 7 ms a sample; LoadGen's own thread shares the interpreter with it, so some samples are sent
late.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
from pathlib import Path

import mlperf_loadgen

SCENARIO = sys.argv[1]
waiting: queue.Queue = queue.Queue()


def work() -> None:
    while (sample := waiting.get()) is not None:
        time.sleep(0.003 + 0.002 * (sample.index % 3))
        mlperf_loadgen.QuerySamplesComplete([mlperf_loadgen.QuerySampleResponse(sample.id, 0, 0)])


settings = mlperf_loadgen.TestSettings()
settings.mode = mlperf_loadgen.TestMode.PerformanceOnly
settings.min_duration_ms = 1000
if SCENARIO == "server":
    settings.scenario = mlperf_loadgen.TestScenario.Server
    settings.server_target_qps, settings.server_target_latency_ns = 120, 100_000_000
else:
    settings.scenario = mlperf_loadgen.TestScenario.SingleStream
    settings.single_stream_expected_latency_ns = 5_000_000
settings.min_query_count = settings.max_query_count = 200 if SCENARIO == "server" else 150

Path(SCENARIO).mkdir()
output = mlperf_loadgen.LogOutputSettings()
output.outdir, output.copy_summary_to_stdout = SCENARIO, False
logs = mlperf_loadgen.LogSettings()
logs.log_output, logs.enable_trace = output, True

worker = threading.Thread(target=work)
worker.start()
sut = mlperf_loadgen.ConstructSUT(lambda samples: [waiting.put(one) for one in samples], lambda: None)
qsl = mlperf_loadgen.ConstructQSL(64, 64, lambda samples: None, lambda samples: None)
mlperf_loadgen.StartTestWithLogSettings(sut, qsl, settings, logs)
waiting.put(None)
worker.join()
