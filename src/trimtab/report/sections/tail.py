"""The tail: where it goes, own and inherited, and what removing each cause alone would buy."""

from __future__ import annotations

from trimtab.report.book import Book
from trimtab.report.page import Answer


def answer(book: Book) -> Answer | None:
    return None


def sentence(book: Book) -> str:
    return ""
