"""trimtab: how well a compiled network's mapping fits live shapes, and the smallest change that helps.

The public names. They are imported when they are first asked for, so that starting the command line costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trimtab.domain.figure import Figure, Findings, Series
    from trimtab.domain.packet import Record
    from trimtab.domain.plan import Plan
    from trimtab.domain.study import Study
    from trimtab.domain.trace import Table, Trace
    from trimtab.domain.verdict import Verdict
    from trimtab.errors import TrimtabError
    from trimtab.evidence.analysis import Analysis
    from trimtab.loop.loop import run_until
    from trimtab.loop.verbs.opened import OpenPacket, open_packet
    from trimtab.store.study import load_study

__version__ = "0.1.0"

_HOMES = {
    "Analysis": "trimtab.evidence.analysis",
    "Figure": "trimtab.domain.figure",
    "Findings": "trimtab.domain.figure",
    "OpenPacket": "trimtab.loop.verbs.opened",
    "Plan": "trimtab.domain.plan",
    "Record": "trimtab.domain.packet",
    "Series": "trimtab.domain.figure",
    "Study": "trimtab.domain.study",
    "Table": "trimtab.domain.trace",
    "Trace": "trimtab.domain.trace",
    "TrimtabError": "trimtab.errors",
    "Verdict": "trimtab.domain.verdict",
    "load_study": "trimtab.store.study",
    "open_packet": "trimtab.loop.verbs.opened",
    "run_until": "trimtab.loop.loop",
}

__all__ = [
    "Analysis",
    "Figure",
    "Findings",
    "OpenPacket",
    "Plan",
    "Record",
    "Series",
    "Study",
    "Table",
    "Trace",
    "TrimtabError",
    "Verdict",
    "__version__",
    "load_study",
    "open_packet",
    "run_until",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return list(__all__)
