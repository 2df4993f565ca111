"""docs/diagnose-files.md shows what the command really prints: every line of every real diagnosis, from its sample."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trimtab.cli.app import main

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "tests" / "readers" / "samples"
TEXT = (ROOT / "docs" / "diagnose-files.md").read_text().partition("## Real diagnoses")[2].partition("\n## ")[0]
SHOWN = re.findall(r"\*\*(?P<title>[^*]+)\*\*(?P<said>[^*]*?)```\n(?P<block>.*?)```", TEXT, re.S)
KEPT = [(title, said, block) for title, said, block in SHOWN if "not kept here" not in said]


def arguments(said: str) -> list[str]:
    """The files that a paragraph names, and its options."""
    out: list[str] = []
    for quoted in re.findall(r"`([^`]+)`", said):
        for word in quoted.split():
            out += [str(SAMPLES / word)] if (SAMPLES / word).exists() else [word] if out and "=" in word else []
            out += [word] if word.startswith("--") else []
    return out


def test_there_are_at_least_five() -> None:
    assert len(KEPT) >= 5


@pytest.mark.parametrize(("title", "said", "block"), KEPT, ids=[title for title, _, _ in KEPT])
def test_it_is_what_the_command_prints(title: str, said: str, block: str, capfd: pytest.CaptureFixture[str]) -> None:
    given = arguments(said)
    assert given, f"{title} names no sample"
    assert main(["diagnose", *given]) == 0
    printed = " ".join(capfd.readouterr().out.split())
    for line in block.splitlines():
        if line.strip() != "...":
            assert " ".join(line.split()) in printed
