"""The text that torch.compile logs: recompiles and their reasons (TORCH_LOGS="recompiles"), graph breaks, the limit.

It stands between other output of the program, behind prefixes that have changed over the versions; a line is known by
its words. The limit has two names: ``cache_size_limit``, and ``recompile_limit`` since 2.6; both can be accumulated.
How long a compile took is not in this text.
"""

from __future__ import annotations

import datetime
import re
from pathlib import Path

from trimtab.domain.imported import ReadReport
from trimtab.domain.noun import NEVER, Ns
from trimtab.domain.spans import Compilation, Spans
from trimtab.errors import DataError
from trimtab.readers._file import byte_lines, open_bytes
from trimtab.readers._format import Format
from trimtab.readers._spans import report, table
from trimtab.readers.torch_trace import LONGEST_REASON, MOST_COMPILES, MOST_REASONS

NAME = "torch.compile log"
LONGEST_TEXT = 1 << 14
_WORDS = re.compile(
    r"Recompiling function (?P<function>\S+) in (?P<place>.+)"
    r"|hit config\.(?P<limit>(?:accumulated_)?(?:cache_size|recompile)_limit \(\d+\))"
    r"|\bfunction: '(?P<stopped>[^']*)' \((?P<stopped_at>[^)]*)\)"
    r"|\blast reason: (?P<last>.+)"
    r"|Graph break(?: \([^)]*\))?(?: in user code at (?P<break_at>\S+)|: (?P<break_why>.+))"
    r"|(?:Graph Break )?Reason: (?P<reason>.+)"
    r"|WON'T CONVERT (?P<failed>\S+) (?P<failed_at>.+)"
    r"|(?P<trigger>triggered by the following guard failure)"
    r"|(?:^|\])\s+- (?P<guard>.+)"
)
_SURE = re.compile(
    rb"Recompiling function \S+ in |hit config\.(?:accumulated_)?(?:cache_size|recompile)_limit \(\d+\)"
    rb"|\[__graph_breaks\]|WON'T CONVERT "
)
_ID = re.compile(r"\[(!?\d+(?:/\d+)+)(?:_\d+)?\]")
_RANK = re.compile(r"\[rank(\d{1,6})\]")
_GLOG = re.compile(r"[VIWEC](\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{3,6})")
_DATED = re.compile(r"\[(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d),(\d{3})\]")
_ANY_YEAR = 2000  # a leap year: the prefix has month and day only


class _Draft:
    """One compile while its lines are read."""

    def __init__(self, id: str, rank: int, at: Ns) -> None:  # noqa: A002 - the word of the noun
        self.id, self.rank, self.at = id, rank, at
        self.code = ""
        self.again = False
        self.reasons: list[str] = []
        self.breaks: list[str] = []
        self.limit = ""
        self.failure = ""


class _Log:
    """What the lines so far have told."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.drafts: list[_Draft] = []
        self.named: dict[tuple[int, str], _Draft] = {}
        self.last: dict[int, _Draft] = {}
        self._near = False

    def take(self, line: str) -> bool:
        """Note one line; whether it says anything."""
        words = _WORDS.search(line)
        told = words is not None and self._take(line, words)
        self._near = told
        return told

    def _take(self, line: str, words: re.Match[str]) -> bool:
        rank = int(found[1]) if (found := _RANK.search(line)) else NEVER
        told = words.lastgroup or ""
        if told in ("place", "limit", "break_at", "break_why", "failed_at"):
            self._start(told, words, self._draft(line, rank))
            return True
        draft = self.last.get(rank)
        loose = told in ("guard", "reason") and not self._near and "[__" not in line
        if draft is None or loose:  # anybody may write a list, or a reason
            return False
        text = words[told].strip()[:LONGEST_REASON]
        if told == "stopped_at":
            draft.code = _code(words["stopped"], words["stopped_at"])
        elif told == "reason":
            draft.breaks[-1:] = [f"{draft.breaks[-1]}: {text}" if draft.breaks else text]
        elif told != "trigger" and len(draft.reasons) < MOST_REASONS and text not in draft.reasons:
            draft.reasons.append(text)
        return True

    def _start(self, told: str, words: re.Match[str], draft: _Draft) -> None:
        """A line that begins what the next lines go on with."""
        if told == "place":
            draft.code, draft.again = _code(words["function"], words["place"]), True
        elif told == "limit":
            draft.limit, draft.again = words["limit"], True
        elif told == "failed_at":
            draft.code = draft.code or _code(words["failed"], words["failed_at"])
            draft.failure = "not converted"
        elif len(draft.breaks) < MOST_REASONS:
            draft.breaks.append((words["break_at"] or words["break_why"])[:LONGEST_REASON])

    def _draft(self, line: str, rank: int) -> _Draft:
        """The compile that the line names; a new one where it names none, or one that was not seen."""
        found = _ID.search(line)
        name = found[1] if found else ""
        draft = self.named.get((rank, name)) if name else None
        if draft is None:
            if len(self.drafts) == MOST_COMPILES:
                raise DataError(
                    f"{self.path.name} holds more than {MOST_COMPILES} compiles", where=str(self.path),
                    fix="give a shorter stretch of it",
                )  # fmt: skip
            draft = _Draft(name, rank, _time(line))
            draft.again = name.rpartition("/")[2] not in ("", "0")
            self.drafts.append(draft)
            if name:
                self.named[rank, name] = draft
        self.last[rank] = draft
        return draft


def read(path: Path, strict: bool) -> tuple[Spans, ReadReport]:
    """The compiles of ``path``, and how they were read. DataError where no line tells of one."""
    log, lines, used = _Log(path), 0, 0
    with open_bytes(path) as file:
        for line in byte_lines(path, file):
            lines += 1
            used += log.take(line[:LONGEST_TEXT].decode(errors="replace").rstrip())
    others = [f"{lines - used} lines of other output"] if lines > used else []
    read = report(
        path, NAME, rows=lines, used=used, unit="lines", dropped={}, strict=strict,
        ignored=others, notes=[f"{len(log.drafts)} compiles; this text does not say how long they took"],
    )  # fmt: skip
    first = min((draft.at for draft in log.drafts if draft.at != NEVER), default=0)
    compiles = tuple(
        Compilation(
            id=draft.id, code=draft.code or "(unknown)", rank=draft.rank, again=draft.again, limit=draft.limit,
            start=draft.at if draft.at == NEVER else draft.at - first, reasons=tuple(draft.reasons),
            breaks=tuple(draft.breaks), failure=draft.failure,
        )
        for draft in log.drafts
    )  # fmt: skip
    return Spans(tool=NAME, table=table({}, 0), compiles=compiles), read


def _code(name: str, place: str) -> str:
    return f"{name} ({place.strip()})"[:LONGEST_REASON]


def _time(line: str) -> Ns:
    """The time in a line's prefix, ns; NEVER where it has none."""
    found = _GLOG.search(line)
    year, parts = (_ANY_YEAR, found.groups()) if found else (0, ())
    if found is None:
        dated = _DATED.search(line)
        if dated is None:
            return NEVER
        year, parts = int(dated[1]), dated.groups()[1:]
    month, day, hour, minute, second, part = (str(one) for one in parts)
    try:
        moment = datetime.datetime(
            year, int(month), int(day), int(hour), int(minute), int(second), tzinfo=datetime.UTC
        )  # fmt: skip
    except ValueError:
        return NEVER
    return int(moment.timestamp()) * 10**9 + int(part.ljust(9, "0"))


def holds(head: bytes) -> bool:
    """Any line that only this log has."""
    return _SURE.search(head) is not None


FORMAT = Format(NAME, holds, read)
