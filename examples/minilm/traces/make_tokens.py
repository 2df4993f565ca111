"""Derives ``azure_*_tokens.csv.gz`` (arrival time, sequence length) from a published Azure LLM inference trace.

Usage: python make_tokens.py AzureLLMInferenceTrace_conv.csv.gz azure_conv_tokens.csv.gz
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
from pathlib import Path

LONGEST = 512
"""Positions that MiniLM has."""


def main(source: str, target: str) -> None:
    with gzip.open(source, "rt", newline="") as handle:
        rows = [(row["TIMESTAMP"], int(row["GeneratedTokens"])) for row in csv.DictReader(handle)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["TIMESTAMP", "tokens"])
    writer.writerows((time, min(tokens, LONGEST)) for time, tokens in rows)
    with Path(target).open("wb") as raw, gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed:
        packed.write(text.getvalue().encode())
    cut = sum(tokens > LONGEST for _, tokens in rows)
    print(f"{len(rows)} requests; {cut} cut to {LONGEST} tokens")


if __name__ == "__main__":
    main(*sys.argv[1:])
