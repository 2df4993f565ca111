"""Makes kineto_ranks_*: two processes that meet in an all-reduce each step, rank 1 with three times the work.

TORCH_TRACE=trace torchrun --nproc-per-node 2 make_ranks.py
"""

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile, schedule

torch.set_num_threads(1)
torch._dynamo.config.automatic_dynamic_shapes = False
dist.init_process_group("gloo")
rank = dist.get_rank()
network = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 16)).eval()


@torch.compile(backend="eager")
def answer(x: torch.Tensor) -> torch.Tensor:
    return network(x)


steps = profile(
    activities=[ProfilerActivity.CPU],
    schedule=schedule(wait=0, warmup=2, active=30),
    on_trace_ready=lambda done: done.export_chrome_trace(f"ranks_{rank}.json"),
)
with steps, torch.no_grad():
    for k in range(32):
        for _ in range(9 if rank else 3):
            scores = answer(torch.zeros(128 + 64 * (k // 12), 512))
        dist.all_reduce(scores.sum())
        steps.step()
dist.destroy_process_group()
