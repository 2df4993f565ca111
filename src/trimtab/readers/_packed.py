"""Columns of a table that are not text yet: each value becomes text only where somebody asks for it.

Most values of a large table are plain numbers. As text objects they would take ten times the time and the memory that
reading them takes where they lie (:mod:`._plain`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from trimtab.readers._rows import Text

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Packed(Sequence[Text]):
    """Texts that are made when asked for. ``_text`` makes one, ``_texts`` all of them."""

    @abstractmethod
    def _text(self, k: int) -> Text: ...

    @abstractmethod
    def _texts(self) -> list[Text]: ...

    @cached_property
    def _made(self) -> list[Text]:
        return self._texts()

    @overload
    def __getitem__(self, at: int) -> Text: ...

    @overload
    def __getitem__(self, at: slice) -> list[Text]: ...

    def __getitem__(self, at: int | slice) -> Text | list[Text]:
        return self._made[at] if isinstance(at, slice) else self._text(at)

    def __iter__(self) -> Iterator[Text]:
        return iter(self._made)


class Cut(Packed):
    """UTF-8 text in ``data`` from ``begin`` to ``end``, int64[n] each; ``missing`` bool[n] = there is no value."""

    def __init__(self, data: bytes, begin: Ints, end: Ints, missing: Bools) -> None:
        self.data, self.begin, self.end, self.missing = data, begin, end, missing

    @classmethod
    def joined(cls, values: Sequence[Text]) -> Cut:
        """The same values side by side; a sign that is not ASCII becomes a question mark, which no number holds."""
        texts = [value or "" for value in values]
        end = np.cumsum(np.fromiter(map(len, texts), dtype=np.int64, count=len(texts)))
        begin = np.concatenate((np.zeros(1, dtype=np.int64), end[:-1]))[: end.size]
        missing = np.fromiter((value is None for value in values), dtype=np.bool_, count=len(texts))
        return cls("".join(texts).encode("ascii", "replace"), begin, end, missing)

    def __len__(self) -> int:
        return self.begin.size

    def _text(self, k: int) -> Text:
        return self.data[self.begin[k] : self.end[k]].decode().strip() or None

    def _texts(self) -> list[Text]:
        ends = zip(self.begin.tolist(), self.end.tolist(), strict=True)
        if not self.data.isascii():
            return [self.data[begin:end].decode().strip() or None for begin, end in ends]
        text = self.data.decode()
        return [text[begin:end].strip() or None for begin, end in ends]


class Stored(Packed):
    """Numbers as a file stores them: ``numbers`` int64[n] or float64[n], ``missing`` bool[n] = there is no value.

    The text of a float64 is the shortest one that stands for it.
    """

    def __init__(self, numbers: NDArray[Any], missing: Bools) -> None:
        self.numbers, self.missing = numbers, missing

    @property
    def nothing(self) -> Bools:
        """Where there is no value, or one that is not a number."""
        return np.asarray(self.missing | np.isnan(self.numbers), dtype=np.bool_)

    def part(self, begin: int, end: int) -> Stored:
        """The values from ``begin`` to ``end``."""
        return Stored(self.numbers[begin:end], self.missing[begin:end])

    def __len__(self) -> int:
        return self.numbers.size

    def _text(self, k: int) -> Text:
        return None if self.missing[k] else repr(self.numbers[k].item())

    def _texts(self) -> list[Text]:
        values = zip(self.numbers.tolist(), self.missing.tolist(), strict=True)
        return [None if missing else repr(number) for number, missing in values]
