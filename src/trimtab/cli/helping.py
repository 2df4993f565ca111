"""Help as a terminal shows it: verbs by what they are for, paragraphs that break where the terminal ends."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from cyclopts import App, Group

STUDY = Group("A study", sort_key=1)
STAGES = Group("One stage of it, and those before it", sort_key=2)
PACKET = Group("A packet, which a run leaves", sort_key=3)
WITHOUT = Group("Without a study", sort_key=4)

Verb = Callable[..., int]


def add(app: App, group: Group, *verbs: Verb) -> None:
    """Put ``verbs`` into the command line, in this order."""
    for verb in verbs:
        verb.__doc__ = flowing(verb.__doc__ or "")
        app.command(verb, name=verb.__name__, group=group, sort_key=len(list(app)))


def flows(described: Any) -> Any:
    """A class whose docstring describes options, for help."""
    described.__doc__ = flowing(described.__doc__ or "")
    return described


def flowing(text: str) -> str:
    """A docstring with every paragraph on one line: the terminal breaks it, and not the source's width."""
    lines: list[str] = []
    for line in inspect.cleandoc(text).split("\n"):
        if lines and _same_paragraph(lines[-1], line):
            lines[-1] = f"{lines[-1]} {line.strip()}"
        else:
            lines.append(line)
    return "\n".join(lines)


def _same_paragraph(before: str, line: str) -> bool:
    if not before.strip() or not line.strip() or {*before} == {"-"} or {*line} == {"-"}:
        return False
    return _indent(before) == _indent(line)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
