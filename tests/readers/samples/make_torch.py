"""Makes torch_2_13_*: a small network behind torch.compile, batch sizes that change, recorded three ways at once.

TORCH_LOGS="recompiles,graph_breaks" TORCH_TRACE=trace python serve.py 2> log.txt
"""

import torch
from torch.profiler import ProfilerActivity, profile, schedule

torch._dynamo.config.automatic_dynamic_shapes = False
network = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).eval()


@torch.compile(backend="eager")
def answer(x: torch.Tensor) -> torch.Tensor:
    scores = network(x)
    torch._dynamo.graph_break()
    return scores.softmax(-1)


steps = profile(
    activities=[ProfilerActivity.CPU],
    record_shapes=True,
    schedule=schedule(wait=0, warmup=2, active=110),
    on_trace_ready=lambda done: done.export_chrome_trace("steps.json"),
)
with steps, torch.no_grad():
    for k in range(112):
        answer(torch.zeros(1 + k % 10, 64))
        steps.step()
