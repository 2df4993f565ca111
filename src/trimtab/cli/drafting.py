"""The verb ``init``: a first study, and what is left to decide in it."""

from __future__ import annotations

from pathlib import Path

from trimtab.cli import show


def init(model: Path, *, trace: Path, out: Path = Path("study.toml"), force: bool = False, json: bool = False) -> int:
    """Write a commented study from a network's open axes and a trace's columns; every guess in it is marked.

    The network runs a few of the trace's shapes for a few seconds; rate, bound and budget are taken from that.

    Parameters
    ----------
    model
        The network, an ONNX file.
    trace
        A table of requests: CSV, TSV, JSONL or Parquet, each also .gz, one row a request: when it came, and its sizes.
    out
        The study's file. Default: study.toml in the working directory.
    force
        Overwrite a file that is there.
    json
        Print the result as JSON.
    """
    from trimtab.cli.progress import progress
    from trimtab.loop.verbs.draft import write_draft

    with progress() as meter:
        drafted = write_draft(model, trace, out, force=force, progress=meter)
    if json:
        show.raw_json(drafted)
        return 0
    told = [f"{out}: written; look at every line marked GUESS or CHOOSE", drafted.traffic, drafted.measured]
    told += [f"fill in {what}" for what in drafted.fill_in]
    first = "fill these in, then " if drafted.fill_in else ""
    if drafted.fault:
        told.append(f"the network does not run, so rate and bound are not taken from it: {drafted.fault}")
        first = "correct what keeps it from running (the sizes, mostly), then "
    show.lines([*filter(None, told), f"next: {first}trimtab run {out}"])
    return 0
