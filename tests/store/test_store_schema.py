"""The schema that editors read is the one that the code has."""

from __future__ import annotations

from pathlib import Path

import msgspec

from trimtab.store.study import schema

PAGE = Path(__file__).parents[2] / "docs" / "study.schema.json"


def test_the_page_is_current() -> None:
    """`trimtab schema > docs/study.schema.json` makes it."""
    assert msgspec.json.decode(PAGE.read_bytes()) == msgspec.json.decode(msgspec.json.encode(schema()))
