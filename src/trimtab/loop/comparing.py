"""Comparing: two packets at the gate, from their stored traces alone."""

from __future__ import annotations

import re
from pathlib import Path

from trimtab.domain.comparison import Gate
from trimtab.domain.packet import Record
from trimtab.domain.trace import Trace
from trimtab.errors import PacketError
from trimtab.retuning import arms
from trimtab.retuning.compare import Side, compare
from trimtab.store.packet import Packet, load_record, verify


def compare_packets(old: Path, new: Path) -> Gate:
    """Whether what runs today got worse from ``old`` to ``new``. PacketError if one of them is not as it was sealed."""
    sides = [_side(folder) for folder in (old, new)]
    return compare(sides[0], sides[1], load_record(new).study.seeds.bootstrap)


def sealed_record(folder: Path) -> Record:
    """The record of a packet that is exactly what its manifest says. PacketError for any other."""
    problems = verify(folder)
    if problems:
        raise PacketError(
            f"this packet is not what was sealed: {problems[0]}",
            where=str(folder),
            fix="`trimtab verify` lists everything that differs; take an unaltered copy",
        )
    return load_record(folder)


def replays_of(folder: Path, record: Record, plan: str) -> tuple[Trace, ...]:
    """The complete replays of ``plan`` on held-out traffic as recorded; where there are none, those on the tune
    slice."""
    for part in (arms.HELD_OUT, "tune"):
        name = re.compile(rf"{part}-{re.escape(plan)}-\d+")
        runs = [run for run in record.runs if name.fullmatch(run.id) and run.source == "measured" and run.complete]
        if runs:
            return tuple(Packet(folder).read_trace(run.id) for run in sorted(runs, key=lambda run: run.id))
    return ()


def _side(folder: Path) -> Side:
    record = sealed_record(folder)
    if record.envelope is None:
        raise PacketError("this packet has no envelope", where=str(folder), fix="run the study to its end")
    study = record.study
    return Side(
        name=f"{study.name} ({record.manifest.created[:16] if record.manifest else 'not sealed'})",
        sla=study.sla,
        guards=study.guards,
        dim_names=study.dim_names,
        envelope=record.envelope,
        plan=study.baseline,
        traces=replays_of(folder, record, study.baseline.id),
        decision=record.verdict.decision if record.verdict else "",
    )
