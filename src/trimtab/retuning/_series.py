"""Rows as a series: rows of one table need not hold the same columns, and what is not a number is an empty cell."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from trimtab.domain.figure import Cell, Series

Row = Mapping[str, Cell]


def series(
    id_: str, rows: Sequence[Row], units: Mapping[str, str], scope: str, artifact: str, note: str = ""
) -> Series:
    """The series ``id_``, its columns in the order in which the rows first name them."""
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: tuple(_number(row.get(name)) for row in rows) for name in names}
    return Series(id=id_, columns=columns, units=dict(units), scope=scope, artifact=artifact, note=note)


def _number(cell: Cell) -> Cell:
    return None if isinstance(cell, float) and math.isnan(cell) else cell
