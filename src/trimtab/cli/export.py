"""The verb ``export``: a run for other tools."""

from __future__ import annotations

from pathlib import Path

from trimtab.cli import show


def export(
    packet: Path, *, run: str | None = None, out: Path | None = None, force: bool = False, json: bool = False
) -> int:
    """Write one run as a timeline that ui.perfetto.dev and chrome://tracing open: cores, streams, and who rode where.

    Parameters
    ----------
    packet
        The packet's folder.
    run
        Which of its runs, such as held-out-today-1. Default: the last one that the verdict rests on.
    out
        The file to write, over an earlier export only. Default: <run>.trace.json in the working directory.
    force
        Write over any file.
    json
        Print the result as JSON.
    """
    from trimtab.loop.verbs.exporting import export_run

    path, events = export_run(packet, run, out, force=force)
    if json:
        show.raw_json({"file": str(path), "events": events})
    else:
        show.lines([f"{path}: {events:,} events; open it at ui.perfetto.dev"])
    return 0
