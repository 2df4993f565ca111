"""The first study of a user: a commented TOML text from a network's axes and a trace's columns.

Every guess is marked as one. The text is a valid study whenever the trace has usable columns, so the loop runs with it
at once; the comments say what to decide before its verdict means anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trimtab.domain.noun import BATCH
from trimtab.errors import ModelError
from trimtab.store import _draft_lines as lines
from trimtab.store._axes import named
from trimtab.store._draft_lines import (
    BUDGET_MIN,
    FILL_IN,
    DraftInput,
    DraftModel,
    DraftOutput,
    DraftTrace,
    Facts,
    Guessed,
)
from trimtab.store._guess import Text, guess_sizes, guess_stream, guess_time

__all__ = [
    "BUDGET_MIN",
    "FILL_IN",
    "DraftInput",
    "DraftModel",
    "DraftOutput",
    "DraftTrace",
    "Facts",
    "draft_study",
]


def draft_study(
    name: str, model: DraftModel, trace: DraftTrace, cores: Sequence[int], backend: str, facts: Facts | None = None
) -> str:
    """A commented study. ``cores`` are those of this machine that may be used; the last becomes the driver's. Without
    ``facts`` the ranges are those of the values in ``trace``.

    ModelError for a network that has no dim besides its batch: a study is about shapes that change.
    """
    axes = named([spec.shape for spec in model.inputs], [out.shape for out in model.outputs])
    if not axes.dims:
        raise ModelError(
            "no size of this network changes besides its batch: there is no mapping to study",
            where=model.path,
            fix="export it with dynamic axes (named sizes instead of numbers), and give a trace of their sizes",
        )
    time = guess_time(trace.columns)
    sizes = guess_sizes(trace.columns, axes.dims, time)
    guessed = Guessed(time, sizes, guess_stream(trace.columns, {time, *sizes.values()}))
    known = facts or _peeked(trace, sizes)
    has_batch = all(BATCH in shape for shape in axes.inputs)
    return "\n".join(
        [
            *lines.opening(name),
            *lines.model(model),
            *lines.inputs(model.inputs, axes.inputs),
            *lines.outputs(model.outputs, axes.outputs),
            *lines.dims(known),
            *lines.workload(trace, guessed, known),
            *lines.sla(known),
            *lines.envelope(cores),
            *lines.baseline(backend, known.ranges),
            *lines.space(has_batch),
            *lines.rest(known.minutes),
        ]
    )


def _peeked(trace: DraftTrace, sizes: Mapping[str, str]) -> Facts:
    ranges = {dim: _range(trace.columns.get(column, ())) for dim, column in sizes.items()}
    return Facts(ranges, len(next(iter(trace.columns.values()), ())))


def _range(values: Sequence[Text]) -> tuple[int, int]:
    sizes = [int(float(value)) for value in values if value]
    return (min(sizes), max(sizes)) if sizes else (1, 1)
