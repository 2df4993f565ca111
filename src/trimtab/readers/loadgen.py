"""The summary and the detail log of MLPerf LoadGen: percentiles, rates, whether the run counts; no requests.

A summary is lines ``name : value``. A detail log has the same behind a prefix with pid, tid and ts (before version 1),
or lines ``:::MLLOG {json}`` with keys of their own. Before version 1 only the summary holds results; the log then says
what was asked for.

How many samples a summary rests on is not written before the detail log of version 1; what is known is that
``min_query_count`` was reached, where it says so.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import msgspec

from trimtab.domain.imported import ReadReport
from trimtab.domain.noun import NEVER
from trimtab.domain.summary import Point, Summary
from trimtab.readers._events import text_of
from trimtab.readers._file import byte_lines, open_bytes
from trimtab.readers._format import Format
from trimtab.readers._spans import report
from trimtab.readers._summed import count, duration, number

NAME = "MLPerf LoadGen log"
LONGEST_TEXT = 1 << 14
MOST_ERRORS = 3
NO_JSON = "no JSON behind :::MLLOG"
_LINE = re.compile(rb'"pid": *\d+, *"tid": *\d+, *"ts": *\d+ns *: ?(?P<told>.*)')
_MLLOG = b":::MLLOG "
_PAIR = re.compile(r"(?P<name>[A-Za-z0-9_.()/ ]{2,80}?)\s*:\s*(?P<value>\S.*)?$")
_QUERIES = re.compile(r'"queries" : (?P<queries>\d+), .*"duration" : (?P<ns>\d+)')
_PERCENTILE = re.compile(r"(?:result_)?(\d\d?\.\d+)[ _]percentile[ _]latency[ _]\(?ns\)?")
_NAMES = {
    "scenario": ("Scenario", "effective_scenario"),
    "validity": ("Result is", "result_validity"),
    "offered": ("Scheduled samples per second", "result_scheduled_samples_per_sec"),
    "achieved": ("Completed samples per second", "result_completed_samples_per_sec", "Samples per second",
                 "result_samples_per_second", "QPS w/o loadgen overhead", "result_qps_without_loadgen_overhead"),
    "count": ("result_query_count",),
    "least": ("min_query_count", "effective_min_query_count"),
    "reached": ("Min queries satisfied", "result_min_queries_met"),
    "lasted": ("Min duration satisfied", "result_min_duration_met"),
    "early": ("Early stopping satisfied", "early_stopping_met"),
    "min": ("Min latency (ns)", "result_min_latency_ns"),
    "mean": ("Mean latency (ns)", "result_mean_latency_ns"),
    "max": ("Max latency (ns)", "result_max_latency_ns"),
    "target": ("target_latency (ns)", "effective_target_latency_ns"),
    "share": ("target_latency_percentile", "effective_target_latency_percentile"),
    "asked": ("target_qps", "effective_target_qps"),
    "version": ("version", "loadgen_version"),
}  # fmt: skip
_ROLE = {name: role for role, names in _NAMES.items() for name in names}
_ERRORS = ("error_runtime", "error_invalid_config", "error_invalid_test_settings")
_NO = ("no", "false")
_SHORT = {
    "lasted": "it is shorter than its least duration",
    "reached": "it has fewer queries than asked for",
    "early": "early stopping asks for more queries",
}


class _Line(msgspec.Struct, gc=False):
    key: str = ""
    value: msgspec.Raw = msgspec.Raw(b"null")


class _Log:
    """What the lines so far have told. The first of a kind counts: effective settings stand before requested ones."""

    def __init__(self) -> None:
        self.told: dict[str, str] = {}
        self.percentiles: dict[str, str] = {}
        self.errors: list[str] = []
        self.queries: tuple[int, int] | None = None

    def take(self, name: str, value: str) -> bool:
        """Note one pair; whether it means anything here."""
        percentile = _PERCENTILE.fullmatch(name)
        if percentile is not None:
            self.percentiles.setdefault(f"p{float(percentile[1]):g}", value)
            return True
        if name in _ERRORS:
            self.errors.append(value[:200])
            return True
        role = _ROLE.get(name)
        if role is None:
            return False
        self.told.setdefault(role, value)
        return True


def read(path: Path, strict: bool) -> tuple[Summary, ReadReport]:
    """What ``path`` tells of its run. DataError where it tells nothing."""
    log, dropped = _Log(), Counter[str]()
    lines = used = 0
    decoder = msgspec.json.Decoder(_Line)
    with open_bytes(path) as file:
        for raw in byte_lines(path, file):
            line = raw.strip()
            if not line.strip(b"="):
                continue
            lines += 1
            if not line.startswith(_MLLOG):
                used += _plain(log, line)
                continue
            try:
                told = decoder.decode(line[len(_MLLOG) :])
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                dropped[NO_JSON] += 1
                continue
            used += log.take(told.key, _value(told.value))
    others = lines - used - sum(dropped.values())
    found = report(
        path, NAME, rows=lines, used=used, unit="lines", dropped=dropped, strict=strict,
        ignored=(f"{others} lines of settings and LoadGen's own work",) if others else (),
    )  # fmt: skip
    return _summary(log), found


def _plain(log: _Log, line: bytes) -> bool:
    prefix = _LINE.match(line)
    text = (line if prefix is None else prefix["told"])[:LONGEST_TEXT].decode(errors="replace")
    queries = _QUERIES.search(text)
    if queries is not None and len(queries["queries"] + queries["ns"]) < 36:
        log.queries = (int(queries["queries"]), int(queries["ns"]))
        return True
    pair = _PAIR.match(text)
    return pair is not None and log.take(pair["name"].strip(), (pair["value"] or "").strip())


def _value(raw: msgspec.Raw) -> str:
    plain = bytes(raw)
    return plain.decode() if plain in (b"true", b"false") else text_of(raw)


def _summary(log: _Log) -> Summary:
    told, scenario = log.told, log.told.get("scenario", "")
    latency = {name: duration(told.get(name), 1) for name in ("min", "mean")}
    latency |= {name: duration(value, 1) for name, value in log.percentiles.items()}
    latency["max"] = duration(told.get("max"), 1)
    latency = {name: took for name, took in latency.items() if took != NEVER}
    server = scenario.replace(" ", "").lower() == "server"
    point = Point(
        name=scenario or "(scenario not said)",
        count=_count(log),
        offered=_offered(log) if server else None,
        achieved=number(told.get("achieved")),
        latency=latency,
    )
    return Summary(
        tool=NAME,
        points=(point,),
        paced=server if scenario else None,
        bound=_bound(log) if server else None,
        short=tuple(why for role, why in _SHORT.items() if told.get(role, "").lower() in _NO),
        facts=_facts(log),
        instead="the trace of such a run (enable_trace, mlperf_log_trace.json): every sample, and how late it was sent"
        if latency
        else "the summary of the same run (mlperf_log_summary.txt), or its trace: this log holds no latency",
    )


def _count(log: _Log) -> int | None:
    """Samples: as counted, or at least as many as asked for where these were reached."""
    known = count(log.told.get("count"))
    if known is not None:
        return known
    if log.told.get("reached", "").lower() in ("yes", "true"):
        return count(log.told.get("least"))
    return None


def _offered(log: _Log) -> float | None:
    """Samples a second that were scheduled; of the schedule itself where no result says so."""
    rate = number(log.told.get("offered"))
    if rate is not None or log.queries is None or not log.queries[1]:
        return rate
    return log.queries[0] / log.queries[1] * 1e9


def _bound(log: _Log) -> tuple[str, int] | None:
    most, share = duration(log.told.get("target"), 1), number(log.told.get("share"))
    if most <= 0 or share is None or not 0.5 <= share < 1:
        return None
    return f"p{share * 100:g}", most


def _facts(log: _Log) -> dict[str, str]:
    facts = {name: log.told[role] for name, role in FACTS.items() if log.told.get(role)}
    most = duration(log.told.get("target"), 1)
    if most > 0 and "share" not in log.told:
        facts["target latency"] = f"{most / 1e6:g} ms, at a percentile that this file does not say"
    if _count(log) is not None and "count" not in log.told:
        facts["samples"] = f"at least {_count(log)} (min_query_count, which was reached)"
    if log.errors:
        facts["errors"] = "; ".join(dict.fromkeys(log.errors[:MOST_ERRORS]))
    return facts


FACTS = {"scenario": "scenario", "result": "validity", "target rate": "asked", "version": "version"}


def holds(head: bytes) -> bool:
    """A heading of a summary, the first line of an old log, or a key of a new one."""
    start = head[:4096]
    if b"MLPerf Results Summary" in start or b':::MLLOG {"key": "loadgen_' in start:
        return True
    return b'"ts": ' in start and b"LoadgenVersionInfo" in start


FORMAT = Format(NAME, holds, read)
