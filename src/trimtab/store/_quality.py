"""What a study's quality section must hold: a floor that its metric can take, and a function where one is needed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import inf

from trimtab.domain.study import ERRORS, FUNCTIONS, QualityMetric, QualitySpec
from trimtab.store._strict import Fault

_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


def quality_faults(spec: QualitySpec) -> Iterator[Fault]:
    """Every broken rule of the section."""
    asked = spec.metric in FUNCTIONS
    if asked and not _NAME.fullmatch(spec.function):
        text = f"metric {spec.metric} needs a function, got {spec.function!r}"
        yield Fault(("quality", "function"), text, "write it as module:name, a module beside the study or installed")
    if spec.function and not asked:
        text = f"metric {spec.metric} calls no function"
        yield Fault(("quality", "function"), text, f"set metric to {' or '.join(FUNCTIONS)}, or remove it")
    least, most = _range(spec.metric)
    if not least <= spec.floor <= most:
        text = f"{spec.floor:g} is no value that {spec.metric} can take"
        fix = f"use one from {least:g} on" if most == inf else f"use one from {least:g} to {most:g}"
        yield Fault(("quality", "floor"), text, fix)


def _range(metric: QualityMetric) -> tuple[float, float]:
    if metric in ERRORS:
        return 0.0, inf
    return (-1.0 if metric == "cosine" else 0.0), 1.0
