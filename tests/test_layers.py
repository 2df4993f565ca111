"""The house rules, held by reading imports: who may import whom, and what the pure core may not touch."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src" / "trimtab"

MAY_IMPORT: dict[str, set[str]] = {
    "domain": set(),
    "mapping": {"domain"},
    "serving": {"domain", "mapping"},
    "evidence": {"domain", "mapping", "serving"},
    "retuning": {"domain", "mapping", "serving", "evidence"},
    "backends": {"domain"},
    "readers": {"domain"},
    "store": {"domain"},
    "runtime": {"domain", "mapping", "serving"},
    "report": {"domain"},
    "loop": {
        "domain", "mapping", "serving", "evidence", "retuning", "backends", "readers", "store",
        "runtime", "report",
    },
    "cli": {"domain", "loop", "report", "store"},
}  # fmt: skip
PURE = ("domain", "mapping", "serving", "evidence", "retuning")
IMPURE_MODULES = {
    "time", "datetime", "os", "io", "pathlib", "shutil", "tempfile", "threading", "multiprocessing", "subprocess",
    "logging", "random", "socket", "sys", "asyncio", "signal", "duckdb", "psutil",
}  # fmt: skip
IMPURE_NAMES = {"open", "print", "input", "eval", "exec", "__import__"}
GLOBAL_RANDOM = {
    "rand",
    "randn",
    "randint",
    "random",
    "seed",
    "choice",
    "shuffle",
    "normal",
    "uniform",
    "exponential",
}

MODULES = sorted(SRC.rglob("*.py"))


def room_of(path: Path) -> str | None:
    parts = path.relative_to(SRC).parts
    return parts[0] if len(parts) > 1 else None


def imported(tree: ast.AST) -> list[str]:
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the room they come from"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def our_rooms(tree: ast.AST) -> set[str]:
    rooms = set()
    for name in imported(tree):
        head, _, rest = name.partition(".")
        if head == "trimtab" and rest.split(".")[0] in MAY_IMPORT:
            rooms.add(rest.split(".")[0])
    return rooms


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SRC)))
def test_imports_follow_the_layer_table(path: Path) -> None:
    room = room_of(path)
    if room is None:
        return
    assert room in MAY_IMPORT, f"{room} is not in the layer table"
    extra = our_rooms(ast.parse(path.read_text())) - MAY_IMPORT[room] - {room}
    assert not extra, f"{room} may not import {sorted(extra)}"


@pytest.mark.parametrize("path", [p for p in MODULES if room_of(p) in PURE], ids=lambda p: str(p.relative_to(SRC)))
def test_the_pure_core_touches_nothing_outside(path: Path) -> None:
    tree = ast.parse(path.read_text())
    names = imported(tree)
    assert not {name.split(".")[0] for name in names} & IMPURE_MODULES
    assert "trimtab.child" not in names
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in IMPURE_NAMES, f"line {node.lineno}: {node.func.id}()"
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute) and node.value.attr == "random":
            assert node.attr not in GLOBAL_RANDOM, f"line {node.lineno}: global random numbers"


def test_every_room_says_what_it_is() -> None:
    for room in MAY_IMPORT:
        init = SRC / room / "__init__.py"
        assert ast.get_docstring(ast.parse(init.read_text())), f"{room} has no opening docstring"
