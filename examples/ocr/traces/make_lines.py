"""Derives ``sroie_lines.csv.gz`` (width at height 48, client) from the published SROIE line geometry.

Usage: python make_lines.py sroie_line_geometry.csv.gz sroie_lines.csv.gz
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import sys
from pathlib import Path

HEIGHT = 48
NARROWEST = 16
CLIENTS = 4


def line_width(row: dict[str, str]) -> int:
    """Width in pixels after a line's box is resized to the recogniser's height; 0 for a degenerate box."""
    x = [int(row[f"x{i}"]) for i in range(1, 5)]
    y = [int(row[f"y{i}"]) for i in range(1, 5)]
    across = math.dist((x[0], y[0]), (x[1], y[1]))
    down = math.dist((x[0], y[0]), (x[3], y[3]))
    return math.ceil(HEIGHT * across / down) if down else 0


def main(source: str, target: str) -> None:
    with gzip.open(source, "rt", newline="") as handle:
        rows = [(line_width(row), int(row["image"]) % CLIENTS) for row in csv.DictReader(handle)]
    kept = [(width, client) for width, client in rows if width >= NARROWEST]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["width", "client"])
    writer.writerows((width, f"client-{client + 1}") for width, client in kept)
    with Path(target).open("wb") as raw, gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed:
        packed.write(text.getvalue().encode())
    print(f"{len(kept)} lines kept, {len(rows) - len(kept)} narrower than {NARROWEST} px dropped")


if __name__ == "__main__":
    main(*sys.argv[1:])
