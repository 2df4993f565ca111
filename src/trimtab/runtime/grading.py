"""A user's own quality function: found by name, called in a worker process and nowhere else.

``module:name`` is a module beside the study (``module.py``, or a package folder), else one of an installed package. The
function takes the reference's outputs and the plan's outputs of one request, each a dict of arrays by output name
(batch axis of length 1, cropped to the request's true dims), and returns one number. Whatever it raises is told, with
its name; it is never taken for an answer.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trimtab.errors import said
from trimtab.runtime import wire

Function = Callable[[dict[str, Any], dict[str, Any]], float]


def beside(function: str, folder: Path) -> Path | None:
    """The file beside the study that holds ``module:name``; None where the module must be an installed one."""
    path = folder.joinpath(*function.partition(":")[0].split("."))
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


class Grader:
    """Functions by name, each imported once."""

    def __init__(self) -> None:
        self._known: dict[str, Function] = {}

    def grade(self, order: wire.Grade) -> wire.Graded:
        """What the function says of one request."""
        given, reference = ({n: wire.unpack(t) for n, t in side.items()} for side in (order.outputs, order.reference))
        try:
            if order.function not in self._known:
                self._known[order.function] = find(order.function, Path(order.folder))
            return wire.Graded(float(self._known[order.function](reference, given)))
        except Exception as error:
            return wire.Graded(float("nan"), f"{order.function}: {said(error)}")


def find(function: str, folder: Path) -> Function:
    """Import ``module:name``. Raises whatever the import raises, TypeError for what cannot be called."""
    module, _, name = function.partition(":")
    if beside(function, folder) is not None and str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    found: Function = getattr(importlib.import_module(module), name)
    if not callable(found):
        raise TypeError(f"{name} is not a function")
    return found
