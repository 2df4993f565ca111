"""Comparing: two packets at the gate, from their stored traces alone."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from trimtab.domain.comparison import Gate
from trimtab.domain.packet import Record
from trimtab.domain.plan import Plan
from trimtab.domain.trace import REAL_TIME, Trace
from trimtab.errors import PacketError
from trimtab.loop.context import TUNE
from trimtab.retuning import arms
from trimtab.retuning.compare import Side, compare
from trimtab.store.packet import Packet, load_record, verify


def compare_packets(old: Path, new: Path) -> Gate:
    """Whether what runs today got worse from ``old`` to ``new``. PacketError if one of them is not as it was sealed."""
    then, now = sealed_record(old), sealed_record(new)
    part = _common_part((then, now))
    return compare(_side(old, then, part), _side(new, now, part), now.study.seeds.bootstrap)


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
    """The complete replays of ``plan`` on held-out traffic as recorded; without any, those on the tune slice."""
    runs = _runs(record, plan, arms.HELD_OUT) or _runs(record, plan, TUNE)
    return tuple(Packet(folder).read_trace(run) for run in runs)


def _runs(record: Record, plan: str, part: str) -> tuple[str, ...]:
    """The ids of the complete replays of ``plan`` on slice ``part``, as recorded: no other condition is named so."""
    name = re.compile(rf"{part}-{re.escape(plan)}-\d+")
    found = (run.id for run in record.runs if name.fullmatch(run.id) and run.source in REAL_TIME and run.complete)
    return tuple(sorted(found))


def _serving(record: Record) -> Plan:
    """What runs today: the study's baseline, or the shipped change that this packet judges."""
    if record.verdict is not None and record.verdict.running is not None and record.proposal is not None:
        return record.proposal.move.plan
    return record.study.baseline


def _common_part(records: Iterable[Record]) -> str:
    """The slice on which both packets have replayed what runs today; without a proposal only the tune slice."""
    has = all(_runs(record, _serving(record).id, arms.HELD_OUT) for record in records)
    return arms.HELD_OUT if has else TUNE


def _side(folder: Path, record: Record, part: str) -> Side:
    if record.envelope is None:
        raise PacketError("this packet has no envelope", where=str(folder), fix="run the study to its end")
    study, plan = record.study, _serving(record)
    return Side(
        name=f"{study.name} ({record.manifest.created[:16] if record.manifest else 'not sealed'})",
        sla=study.sla,
        guards=study.guards,
        dim_names=study.dim_names,
        envelope=record.envelope,
        plan=plan,
        traces=tuple(Packet(folder).read_trace(run) for run in _runs(record, plan.id, part)),
        decision=record.verdict.decision if record.verdict else "",
        target=study.workload.target,
    )
