"""Tables of a bench inside a page that people write: only what stands between two marks is replaced, never by hand.

A section is what lies between ``<!-- bench:NAME -->`` and ``<!-- /bench:NAME -->``, each on a line of its own.
"""

from __future__ import annotations

import datetime
import os
from pathlib import Path


def fill(path: Path, name: str, text: str) -> None:
    """Replace the section ``name`` of ``path`` by ``text``. SystemExit where the page has no such section, or two."""
    page = path.read_text(encoding="utf-8")
    begin, end = f"<!-- bench:{name} -->\n", f"<!-- /bench:{name} -->\n"
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(end) < page.index(begin):
        raise SystemExit(f"{path} has no section {name!r}: it wants one line {begin.strip()} and one {end.strip()}")
    before, _, rest = page.partition(begin)
    after = rest.partition(end)[2]
    path.write_text(f"{before}{begin}\n{text.strip()}\n\n{end}{after}", encoding="utf-8")


def told(text: str, name: str, page: Path | None) -> None:
    """Print what a bench found, and write it into ``page`` if there is one."""
    print(text, flush=True)
    if page is not None:
        fill(page, name, text)


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def stamp(command: str) -> str:
    """When, on what load of the machine and with which command figures were measured."""
    today = datetime.datetime.now(tz=datetime.UTC).date()
    return f"Measured on {today}, load {os.getloadavg()[0]:.1f} at the end of the run: `{command}`"


def percent(share: float, digits: int = 1) -> str:
    """A share with its sign, as it is printed in tables."""
    return f"{share:+.{digits}%}".replace("-", "−").replace("%", " %")
