"""One run of a packet as a file for Perfetto, streamed: a long run has millions of events."""

from __future__ import annotations

from pathlib import Path

import msgspec

from trimtab.domain.trace import REAL_TIME
from trimtab.errors import UsageError, did_you_mean
from trimtab.report import perfetto
from trimtab.store.packet import Packet, load_record, replace_file


def export_run(folder: Path, run: str | None, out: Path | None) -> tuple[Path, int]:
    """Write the run named ``run`` (None: the last one that the verdict rests on) to ``out`` (None: ``<run>.trace.json``
    in the current folder). The file, and how many events it holds.

    Raises UsageError for a run that the packet does not have.
    """
    known = [info.id for info in load_record(folder).runs if info.source in REAL_TIME]
    chosen = _chosen(known, run, folder)
    trace = Packet(folder).read_trace(chosen)
    path = out or Path(f"{chosen}.trace.json")
    count = 0

    def fill(temporary: Path) -> None:
        nonlocal count
        with temporary.open("wb") as file:
            file.write(b'{"displayTimeUnit":"ms","traceEvents":[')
            for item in perfetto.events(trace):
                file.write((b",\n" if count else b"\n") + msgspec.json.encode(item))
                count += 1
            file.write(b"\n]}\n")

    replace_file(path, fill)
    return path, count


def _chosen(known: list[str], run: str | None, folder: Path) -> str:
    if not known:
        raise UsageError("this packet has no measured run", where=str(folder), fix="run `trimtab replay STUDY` first")
    if run is None:
        judged = [name for name in known if name.startswith("held-out-")]
        return (judged or known)[-1]
    if run not in known:
        fix = f"{did_you_mean(run, known)} known: {', '.join(known)}".strip()
        raise UsageError(f"there is no run {run!r}", where=str(folder), fix=fix)
    return run
