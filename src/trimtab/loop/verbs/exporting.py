"""One run of a packet as a file for Perfetto, streamed: a long run has millions of events."""

from __future__ import annotations

from pathlib import Path

import msgspec

from trimtab.domain.trace import REAL_TIME
from trimtab.errors import UsageError, did_you_mean
from trimtab.report import perfetto
from trimtab.store.packet import Packet, load_record, replace_file

BEGIN = b'{"displayTimeUnit":"ms","traceEvents":['
"""How an export begins, and is known again."""


def export_run(folder: Path, run: str | None, out: Path | None, *, force: bool = False) -> tuple[Path, int]:
    """Write the run named ``run`` (None: the last one that the verdict rests on) to ``out`` (None: ``<run>.trace.json``
    in the current folder). The file, and how many events it holds.

    Raises UsageError for a run that the packet does not have, and, without ``force``, for a file that is there and is
    no earlier export.
    """
    known = [info.id for info in load_record(folder).runs if info.source in REAL_TIME]
    chosen = _chosen(known, run, folder)
    path = out or Path(f"{chosen}.trace.json")
    if path.exists() and not force:
        _require_export(path)
    trace = Packet(folder).read_trace(chosen)
    count = 0

    def fill(temporary: Path) -> None:
        nonlocal count
        with temporary.open("wb") as file:
            file.write(BEGIN)
            for item in perfetto.events(trace):
                file.write((b",\n" if count else b"\n") + msgspec.json.encode(item))
                count += 1
            file.write(b"\n]}\n")

    replace_file(path, fill)
    return path, count


def _require_export(path: Path) -> None:
    if path.is_dir():
        raise UsageError(f"{path} is a folder", where="--out", fix="name a file in it, such as run.trace.json")
    with path.open("rb") as file:
        if file.read(len(BEGIN)) != BEGIN:
            fix = "name another file, or add --force"
            raise UsageError(f"{path} is there already, and is no earlier export", where="--out", fix=fix)


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
