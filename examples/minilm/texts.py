"""Cuts real text to the lengths that the traffic has: ``data/conversation.npz``, ``data/code.npz`` (kind: real).

Conversation: the reference pages of the Python language, which ``help()`` prints. Code: the sources of the standard
library. Both are read from the Python that runs this (PSF licence), so nothing of them is copied into this project, and
another version of Python gives a few other texts.

The tokenizer is the model's own. A text begins with a paragraph that a seed draws, and is cut where the length of its
request ends; [CLS] and [SEP] count.
"""

from __future__ import annotations

import csv
import gzip
import re
import sysconfig
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from pydoc_data.topics import topics
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).parent
SEED = 20
CALIBRATION_SEED = 21
EACH = 4
"""Different texts of one length, at most."""
CALIBRATION = range(16, 513, 16)
"""Lengths of the texts that show a quantiser which values to expect."""


class Vocabulary(NamedTuple):
    """``encode``: texts -> token ids of each, without marks. ``first`` and ``last``: the ids that enclose a text."""

    encode: Callable[[Sequence[str]], list[list[int]]]
    first: int
    last: int


class Corpus(NamedTuple):
    """One long row of token ids, and where its paragraphs begin."""

    ids: NDArray[np.uint16]
    starts: NDArray[np.int64]


def prose() -> list[str]:
    """Paragraphs of the language reference."""
    return _paragraphs("\n\n".join(topics[name] for name in sorted(topics)))


def code() -> list[str]:
    """Blocks of the standard library's modules, as they are separated by empty lines."""
    paths = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    return _paragraphs("\n\n".join(path.read_text(encoding="utf-8") for path in paths))


def _paragraphs(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]


def corpus(paragraphs: Sequence[str], vocabulary: Vocabulary) -> Corpus:
    rows = [row for row in vocabulary.encode(paragraphs) if row]
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    return Corpus(np.concatenate([np.array(row, dtype=np.uint16) for row in rows]), np.cumsum(lengths) - lengths)


def bank(
    lengths: Iterable[int], found: Corpus, vocabulary: Vocabulary, seed: int = SEED
) -> dict[str, NDArray[np.unsignedinteger]]:
    """``input_ids/<key>`` and ``attention_mask/<key>`` for every length, as often as it occurs, but ``EACH`` times at
    most."""
    rng = np.random.default_rng(seed)
    arrays: dict[str, NDArray[np.unsignedinteger]] = {}
    for tokens, count in sorted(Counter(lengths).items()):
        inside = tokens - 2
        room = found.starts[found.starts + inside <= found.ids.size]
        for number, start in enumerate(rng.choice(room, size=min(count, EACH), replace=False)):
            key = f"{tokens:03d}-{number}"
            text = found.ids[start : start + inside]
            arrays[f"input_ids/{key}"] = np.concatenate([[vocabulary.first], text, [vocabulary.last]]).astype(np.uint16)
            arrays[f"attention_mask/{key}"] = np.ones(tokens, dtype=np.uint8)
    return arrays


def lengths_of(trace: Path) -> list[int]:
    with gzip.open(trace, "rt", newline="") as handle:
        return [int(row["tokens"]) for row in csv.DictReader(handle)]


def minilm() -> Vocabulary:
    """The tokenizer that the model's package ships."""
    from network import packaged
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(packaged("model/tokenizer.json")))
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def encode(texts: Sequence[str]) -> list[list[int]]:
        return [row.ids for row in tokenizer.encode_batch(list(texts), add_special_tokens=False)]

    return Vocabulary(encode, tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]"))


def main() -> None:
    vocabulary = minilm()
    (HERE / "data").mkdir(exist_ok=True)
    spoken, written = corpus(prose(), vocabulary), corpus(code(), vocabulary)
    conversation, coding = (lengths_of(HERE / "traces" / f"azure_{name}_tokens.csv.gz") for name in ("conv", "code"))
    for name, arrays in (
        ("conversation", bank(conversation, spoken, vocabulary)),
        ("code", bank(coding, written, vocabulary)),
        ("calibration", bank(CALIBRATION, spoken, vocabulary, CALIBRATION_SEED)),
    ):
        np.savez_compressed(HERE / "data" / f"{name}.npz", **arrays)
        print(f"{name}.npz: {len(arrays) // 2} texts")


if __name__ == "__main__":
    main()
