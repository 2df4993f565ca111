"""Makes shift_lines.csv.gz: recorded line widths, the narrower half of them first, then the wider half.

    python examples/shift/traces/make_shift.py

Arrivals have a file of their own (examples/ocr/traces/azure_conv.csv.gz); the study joins both row by row.
"""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
LINES = HERE.parents[1] / "ocr" / "traces" / "sroie_lines.csv.gz"
NARROW, WIDE = 300, 3700
"""Requests of each part: the study replays the first 16 s of them, with the shift in their middle."""
LOW, HIGH = 16, 1640


def main() -> None:
    with gzip.open(LINES, "rt", newline="") as file:
        widths = np.array([int(row["width"]) for row in csv.DictReader(file)])
    widths = np.clip(widths, LOW, HIGH)
    rng, middle = np.random.default_rng(0), np.median(widths)
    taken = [rng.choice(widths[widths <= middle], NARROW), rng.choice(widths[widths > middle], WIDE)]
    text = io.StringIO()
    text.write("width\n")
    text.writelines(f"{width}\n" for width in np.concatenate(taken))
    (HERE / "shift_lines.csv.gz").write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


if __name__ == "__main__":
    main()
