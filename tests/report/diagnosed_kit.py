"""Pages of diagnosed files, out of real samples and of tables that are made here."""

from __future__ import annotations

import random
from pathlib import Path

from trimtab.loop.verbs.arrivals import describe_file
from trimtab.loop.verbs.files import diagnose_files
from trimtab.loop.verbs.pages import diagnosis_page
from trimtab.loop.verbs.tables import parse_sla
from trimtab.report import traffic
from trimtab.report.page import Page

SAMPLES = Path(__file__).parents[1] / "readers" / "samples"
HOSTILE = "<img src=x onerror=alert(1)>"


def page(*files: Path | str, sla: str | None = None, baseline: Path | None = None) -> Page:
    """The page of these files; names are those of samples."""
    paths = [SAMPLES / file if isinstance(file, str) else file for file in files]
    answers = diagnose_files(paths, sla=sla, baseline=baseline)
    return diagnosis_page(answers, None if sla is None else parse_sla(sla))


def requests(folder: Path, name: str = "requests.csv", hostile: str = "") -> Path:
    """900 requests at one worker: padded widths, new shapes that compile, three streams, a few failures."""
    draw, free, at, rows, seen = random.Random(4), 0.0, 0.0, [], set()
    for k in range(900):
        at += draw.expovariate(20)
        width = draw.randint(1, 300)
        executed = -(-width // 64) * 64
        compile_ms = 0.0 if executed in seen else 120.0
        seen.add(executed)
        begin = max(at, free)
        run_ms = 8 + executed / 20 + compile_ms
        free = begin + run_ms / 1e3
        rows.append(
            f"{at:.6f},{(free - at) * 1e3:.4f},{width},{executed},{hostile}client-{k % 3},{(begin - at) * 1e3:.4f},"
            f"{run_ms:.4f},{compile_ms},{'oom' if k % 300 == 7 else 'true'}"
        )
    head = "start_s,latency_ms,shape.width,executed.width,stream,queue_ms,compute_ms,compile_ms,ok"
    path = folder / name
    path.write_text("\n".join([head, *rows]))
    return path


def arrivals(folder: Path, name: str = "arrivals.csv", hostile: str = "") -> Path:
    """Arrivals that crowd for a while, sizes that grow, five clients."""
    draw, at, rows = random.Random(9), 0.0, []
    for k in range(3000):
        at += draw.expovariate(200 if 1000 < k < 2000 else 20)
        rows.append(f"{at:.6f},{int(draw.gauss(300 + k / 10, 40))},{hostile}client-{draw.randint(0, 4)}")
    path = folder / name
    path.write_text("\n".join(["start_s,shape.width,stream", *rows]))
    return path


def traffic_page(path: Path) -> Page:
    """The page of one table of arrivals."""
    found = describe_file(path)
    return traffic.view(found.found, found.read)
