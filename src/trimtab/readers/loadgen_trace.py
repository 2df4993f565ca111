"""The trace of MLPerf LoadGen (``mlperf_log_trace.json``, with ``enable_trace``): every sample that it sent.

It is read line by line: since version 1 LoadGen puts quotes into quotes (``"key":""loadgen_version""``), so the whole
is no JSON, but each sample stands on a line of its own. A sample is an asynchronous event that begins when it was due;
``issue_start_ns`` and ``complete_ns`` count from there. It is written when the sample is complete, so one that never
ended is not in the file.

Single Stream and Multi Stream send a query when the one before has ended, Offline all at once: such a sample is due
when it is sent, so nothing tells how late the generator was, or what arrivals of their own would have met.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np

from trimtab.domain.imported import Imported, ReadReport
from trimtab.errors import DataError
from trimtab.readers._file import byte_lines, open_bytes
from trimtab.readers._format import Format
from trimtab.readers._requests import LATEST, MOST_REQUESTS, requests
from trimtab.readers._spans import report, us_to_ns

NAME = "MLPerf LoadGen trace"
NO_SAMPLE = "a sample without its times"
BACKWARDS = "it ended before it was due"
UNPACED = "each sample was due when it was sent: no arrivals of their own, so no tail that arrivals make"
_SAMPLE = re.compile(rb'"name"\s*:\s*"Sample"')
_BEGIN = re.compile(rb'"ph"\s*:\s*"b"')
_DUE = re.compile(rb'"ts"\s*:\s*(-?\d{1,16}(?:\.\d{1,9})?)\s*[,}]')
_ISSUED = re.compile(rb'"issue_start_ns"\s*:\s*(-?\d{1,18})\s*[,}]')
_ENDED = re.compile(rb'"complete_ns"\s*:\s*(-?\d{1,18})\s*[,}]')


def read(path: Path, strict: bool) -> tuple[Imported, ReadReport]:
    """The samples of ``path`` as requests, and how they were read. DataError for what is no such trace."""
    samples, dropped, others = _samples(path)
    start, known = us_to_ns([due for due, _, _ in samples])
    issued, ended = (np.array([one[k] for one in samples], dtype=np.int64) for k in (1, 2))
    known &= (np.abs(issued) < LATEST) & (np.abs(ended) < LATEST)
    forward = (ended >= 0) & (issued >= 0)
    keep = known & forward
    rows = len(samples) + dropped[NO_SAMPLE]
    dropped[NO_SAMPLE] += int((~known).sum())
    dropped[BACKWARDS] += int((known & ~forward).sum())
    start, issued, ended = start[keep], issued[keep], ended[keep]
    paced = bool(np.any(issued > 0))
    told = report(
        path, NAME, rows=rows, used=int(keep.sum()), unit="samples", dropped=dropped, strict=strict,
        ignored=(f"{others} lines of LoadGen's own work",) if others else (), notes=() if paced else (UNPACED,),
    )  # fmt: skip
    return requests(told, start, start + ended, issued=start + issued if paced else None, paced=paced), told


def _samples(path: Path) -> tuple[list[tuple[float, int, int]], Counter[str], int]:
    """(due in us, issued and complete in ns from there) of each sample; what is none; lines of anything else."""
    samples: list[tuple[float, int, int]] = []
    dropped, others = Counter[str](), 0
    with open_bytes(path) as file:
        for line in byte_lines(path, file):
            if _SAMPLE.search(line) is None:
                others += 1
                continue
            if _BEGIN.search(line) is None:
                continue
            due, issued, ended = _DUE.search(line), _ISSUED.search(line), _ENDED.search(line)
            if due is None or issued is None or ended is None:
                dropped[NO_SAMPLE] += 1
                continue
            if len(samples) == MOST_REQUESTS:
                raise DataError(
                    f"{path.name} holds more than {MOST_REQUESTS} samples", where=str(path),
                    fix="give a shorter stretch of it",
                )  # fmt: skip
            samples.append((float(due[1]), int(issued[1]), int(ended[1])))
    return samples, dropped, others


def holds(head: bytes) -> bool:
    """LoadGen's own names of events."""
    names = (b'"name":"Sample"', b'"name":"LogDetail"', b'"name":"IssueQuery"', b'"name":"IOThreadLoop"')
    return b'"traceEvents"' in head[:64] and sum(name in head for name in names) >= 2


FORMAT = Format(NAME, holds, read)
