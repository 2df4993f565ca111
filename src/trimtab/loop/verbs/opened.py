"""A packet in the hands of a program: its figures, its columns, and its analysis once more."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from trimtab.domain.figure import Figure, Findings, Series
from trimtab.domain.packet import Record
from trimtab.domain.trace import Table, Trace
from trimtab.errors import PacketError
from trimtab.loop import analysing
from trimtab.loop.context import Context
from trimtab.store.packet import Packet, Problem, load_record, verify
from trimtab.store.study import seconds

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

    from trimtab.evidence.analysis import Analysis


class OpenPacket:
    """Read only. Everything is read when it is first asked for.

    ``record`` holds all that is no column: study, plans, profiles, findings, verdict. Nothing is checked against the
    manifest until :meth:`problems` is asked.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.record: Record = load_record(self.folder)
        self._packet = Packet(self.folder)

    def problems(self) -> list[Problem]:
        """What is missing, altered or extra against the packet's manifests; empty = intact."""
        return verify(self.folder)

    @cached_property
    def figures(self) -> dict[str, Figure]:
        """Every stored figure by its id, such as ``tail.p95.cold.share``."""
        return {figure.id: figure for found in self._findings for figure in found.figures}

    @cached_property
    def series(self) -> dict[str, Series]:
        """Every stored series by its id, such as ``tail.p95.waterfall``."""
        return {each.id: each for found in self._findings for each in found.series}

    @property
    def _findings(self) -> tuple[Findings, ...]:
        return tuple(self.record.findings.values())

    @property
    def runs(self) -> tuple[str, ...]:
        """The ids of the recorded runs."""
        return tuple(info.id for info in self.record.runs)

    def trace(self, run: str) -> Trace:
        """One run as numpy columns: requests, batches, marks, samples. Times are int64 ns."""
        self._known(run)
        return self._packet.read_trace(run)

    def account(self, run: str) -> Table:
        """The tail account of a run that was analysed, as numpy columns; rows as in its requests."""
        return self._packet.read_account(run)

    @property
    def tables(self) -> tuple[str, ...]:
        """The names that :meth:`relation` takes: ``workload``, ``requests/<run>``, ``batches/<run>``, ..."""
        from trimtab.store.relations import tables

        return tuple(tables(self.folder))

    def relation(self, table: str, database: DuckDBPyConnection | None = None) -> DuckDBPyRelation:
        """One table as a DuckDB relation, codes as words; ``.to_arrow_table()`` makes it Arrow where pyarrow is."""
        from trimtab.store.relations import relation

        return relation(self.folder, table, database)

    def analyse(self, run: str) -> Analysis:
        """Account, tail, score and diagnosis of one run, worked out again by this version of trimtab."""
        self._known(run)
        study = self.record.study
        ctx = Context(
            study=study,
            folder=self.folder,
            packet=self._packet,
            budget_s=seconds(study.budget.time, "budget.time"),
            progress=_Unwatched(),
        )
        return analysing.stored(ctx, run)

    def _known(self, run: str) -> None:
        if run not in self.runs:
            raise PacketError(
                f"there is no run {run!r}", where=str(self.folder), fix=f"known: {', '.join(self.runs) or 'none'}"
            )


class _Unwatched:
    def step(self, stage: str, done: float, total: float | None, note: str = "") -> None:
        """Nobody looks."""


def open_packet(folder: str | Path) -> OpenPacket:
    """Open a packet that ``trimtab run`` made. Raises PacketError if there is none, or if a part of it is broken."""
    return OpenPacket(folder)
