"""Events out of a file of any size: the same as a plain JSON reader finds, and a count of everything else."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spans_kit import SAMPLES, names, plain_events, read, whole, write_trace

from trimtab.domain.spans import Spans
from trimtab.errors import DataError
from trimtab.readers import _events, _file, _spans, _walk
from trimtab.readers._brackets import scan
from trimtab.readers._events import Events
from trimtab.readers._walk import Event

TRACES = sorted(path for path in SAMPLES.iterdir() if path.name.startswith(("kineto", "ort")))


def events(path: Path) -> list[Event]:
    return [event for piece in Events(path, Event).pieces() for event in piece]


def as_pairs(found: list[Event]) -> list[tuple[str, str, object]]:
    return [(event.ph, event.name, event.tid) for event in found]


@pytest.mark.parametrize("block", [997, 1 << 16, 1 << 20])
@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_pieces_hold_what_a_plain_reader_finds(path: Path, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_file, "BLOCK", block)
    expected = [(event["ph"], event["name"], event.get("tid")) for event in plain_events(path)]
    assert as_pairs(events(path)) == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
ANY_EVENT = st.fixed_dictionaries(
    {"name": st.text(max_size=12), "ph": st.sampled_from(["X", "i", "M"]), "ts": st.integers(0, 10**6)},
    optional={"args": JSON, "cat": st.sampled_from(['a"],[{', "\\", "}},{"])},
)


@settings(deadline=None, max_examples=150)
@given(st.lists(ANY_EVENT, max_size=12), st.integers(1, 64), st.sampled_from([None, 1]), st.booleans())
def test_any_cut_is_right(
    tmp_path_factory: pytest.TempPathFactory, given_: list[dict[str, Any]], block: int, indent: int | None, array: bool
) -> None:
    path = tmp_path_factory.mktemp("cut") / "t.json"
    body: Any = given_ if array else {"before": ["[", {"traceEvents": 1}], "traceEvents": given_, "after": "]}"}
    path.write_text(json.dumps(body, indent=indent, ensure_ascii=False))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_file, "BLOCK", block)
        reader = Events(path, Event)
        found = [event for piece in reader.pieces() for event in piece]
    assert [(event.ph, event.name, event.ts) for event in found] == [(e["ph"], e["name"], e["ts"]) for e in given_]
    assert (reader.complete, reader.behind, reader.dropped) == (True, False, {})
    assert array or set(reader.beside) == {"before", "traceEvents", "after"}


def top(data: bytes) -> tuple[list[bytes], bool, bool]:
    """The values at the top, whether the array is closed, whether a value is torn: one byte after the other."""
    values, depth, start, string, escaped = [], 0, 0, False, False
    for at, sign in enumerate(data):
        quote = sign == ord('"') and not escaped
        escaped = sign == ord("\\") and not escaped
        if string or quote:
            string = string != quote
        elif sign in b"{[":
            start, depth = (at if depth == 0 else start), depth + 1
        elif sign in b"}]" and depth:
            depth -= 1
            values += [data[start : at + 1]] if depth == 0 else []
        elif sign == ord("]"):
            return values, True, False
    return values, False, depth > 0


@settings(deadline=None, max_examples=300)
@given(st.text('{}[]"\\\\,a ', max_size=30))
def test_brackets_are_told_from_strings(text: str) -> None:
    data = text.encode()
    found = scan(data)
    values = [data[start:end] for start, end in zip(found.starts.tolist(), found.ends.tolist(), strict=True)]
    assert (values, found.closed, found.torn) == top(data)
    assert 0 <= found.done <= len(data)


@pytest.mark.parametrize(
    ("text", "expected", "dropped"),
    [
        ('[{"name": "a"}, {"name": "b"}', ["a", "b"], {}),
        ('[{"name": "a"}, {"name": "b"},', ["a", "b"], {}),
        ('{"traceEvents": [{"name": "a"}, {"name": "b', ["a"], {_events.TORN: 1}),
        ('[{"name": "a"}, 7, "x", [1], {"name": "b"}]', ["a", "b"], {_events.NO_OBJECT: 2}),
        ('[{"name": "a", "args": {"x": NaN, "y": -Infinity}}]', ["a"], {}),
        ('[{"name": "a\nb"}]', ["a b"], {}),
        ('[{"name": 5}, {"name": "b", "ts": "soon"}, {"name": "c"}]', ["c"], {_events.NO_EVENT: 2}),
        ('[{"name": "a", "ts": 1e999}, {"name": "c"}]', ["c"], {_events.NO_EVENT: 1}),
        ('[{"name": "<b>\\u001b[31m\\"}],[{", "x": [[{}]]}]', ['<b>\x1b[31m"}],[{'], {}),
        (
            '[{"name": "a"}, {"name": "b"}, {"name": "x"y"}, {"name": "c"}, {"name": "d"}]',
            ["a", "b", "c", "d"],
            {_events.NO_EVENT: 1},
        ),
        ('[{"name": "a"}}, {"name": "b"}]', ["a", "b"], {_events.NO_OBJECT: 1}),
    ],
)
def test_broken_events_are_counted(tmp_path: Path, text: str, expected: list[str], dropped: dict[str, int]) -> None:
    path = tmp_path / "t.json"
    path.write_text(text)
    reader = Events(path, Event)
    assert [event.name for piece in reader.pieces() for event in piece] == expected
    assert reader.dropped == dropped
    assert reader.seen == len(expected) + sum(dropped.values())


def test_bytes_that_are_no_utf8_are_mended(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(b'[{"name": "a\xff"}]')
    assert [event.name for event in events(path)] == ["a\ufffd"]


def test_an_event_nested_too_deep_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('[{"name": "a", "args": ' + "[" * 100_000 + "]" * 100_000 + '}, {"name": "b"}]')
    reader = Events(path, Event)
    assert [event.name for piece in reader.pieces() for event in piece] == ["b"]
    assert reader.dropped == {_events.NO_EVENT: 1}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "has no list of events"),
        ("   ", "has no list of events"),
        ("{}", "has no list of events"),
        ('{"traceEvents": {}}', "has no list of events"),
        ('{"a": "\\"traceEvents\\": ["}', "has no list of events"),
        ('[{"name": "' + "x" * 6_000_000 + '"}]', "one event is longer than 4 MiB"),
        ('[{"ts": ' + "1" * 6_000_000 + "}]", "one event is longer than 4 MiB"),
    ],
)
def test_what_is_no_trace(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(text)
    with pytest.raises(DataError, match=what):
        events(path)


def test_what_follows_the_list_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps([whole("a", 0, 1, ph="X")]) + json.dumps([whole("b", 0, 1)]))
    _, report = read(path)
    assert (report.used, "something follows the list of events that is no part of it; it was not read") == (
        1, report.notes[0],
    )  # fmt: skip


def test_a_gzip_bomb_is_refused_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_file, "HARMLESS", 1 << 20)
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(b"[" + b'{"ph": "X", "name": "a", "ts": 1, "dur": 1},' * 300_000))
    with pytest.raises(DataError, match="unpacks to more than 200 times its size"):
        read(path)


def test_a_packed_file_needs_no_gz_in_its_name(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(gzip.compress(json.dumps([whole("a", 0, 1)]).encode()))
    assert read(path)[1].used == 1


def spans_of(tmp_path: Path, *given_: dict[str, Any]) -> Spans:
    return read(write_trace(tmp_path / "t.json", given_))[0]


def test_begins_and_ends_are_matched_by_thread(tmp_path: Path) -> None:
    a, b = {"pid": 1, "tid": 1}, {"pid": 1, "tid": "x"}
    spans = spans_of(
        tmp_path,
        {"ph": "B", "name": "outer", "ts": 0.5, **a},
        {"ph": "B", "name": "inner", "ts": 1, **a},
        {"ph": "B", "name": "other", "ts": 2, **b},
        {"ph": "E", "ts": 3, **a},
        {"ph": "E", "name": "outer", "ts": 10.25, **a},
        {"ph": "E", "ts": 4, **b},
    )
    columns = (spans.table[name].tolist() for name in ("name", "start", "end"))
    found = [(spans.names[name], start, end) for name, start, end in zip(*columns, strict=True)]
    assert found == [("outer", 0, 9750), ("inner", 500, 2500), ("other", 1500, 3500)]
    assert spans.lanes[:2] == ("thread 1 of process 1", "thread x of process 1")


def test_what_is_no_span_is_counted_by_what_it_is(tmp_path: Path) -> None:
    marks = [{"ph": phase, "name": "m", "ts": 0, "pid": 1, "tid": 1} for phase in "sfiCbeM?"]
    ends = [{"ph": "E", "ts": 1, "pid": 9, "tid": 9}, {"ph": "B", "name": "b", "ts": 1, "pid": 8, "tid": 8}]
    bad = [whole("back", 5, -1), whole("late", 9e15, 1), {"ph": "X", "name": "no time", "pid": 1, "tid": 1}]
    _, report = read(write_trace(tmp_path / "t.json", [*marks, *ends, *bad, whole("a", 0, 1)]))
    assert sorted(report.ignored) == [
        "1 counters", "1 instants", "1 names of lanes", "1 of no known phase", "2 asynchronous", "2 flows",
    ]  # fmt: skip
    assert report.dropped == {
        _spans.OUT_OF_RANGE: 2, _spans.BACKWARDS: 1, _walk.NO_BEGIN: 1, _walk.NO_END: 1,
    }  # fmt: skip
    assert (report.rows, report.used) == (14, 1)


def test_strict_reading_refuses_what_would_be_left_out(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.json", [whole("a", 0, 1), whole("b", 0, -1)])
    with pytest.raises(DataError, match="1 events left out: it ends before it starts"):
        read(path, strict=True)


@pytest.mark.parametrize(
    ("us", "ns"),
    [
        ([0, 0.001, 1.5, 2.0004], [0, 1, 1500, 2000]),
        ([4203669604595.407, -3.25], [4203669604595407, -3250]),
        ([1695835542481129.0], [1695835542481129000]),
    ],
)
def test_microseconds_become_exact_nanoseconds(us: list[float], ns: list[int]) -> None:
    found, known = _spans.us_to_ns(us)
    assert (found.tolist(), known.all()) == (ns, True)


def test_ids_of_any_kind() -> None:
    assert _spans.ids([1, "22", 3.0, None, "x", 2**70, 2.5]).tolist() == [1, 22, 3, -1, -1, -1, -1]


def test_a_file_of_different_names_cannot_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_spans, "MOST_CODES", 3)
    path = write_trace(tmp_path / "t.json", [whole(f"n{k}", k, 1) for k in range(6)])
    spans, report = read(path)
    assert names(spans, "other") == ["n0", "n1", "n2", "(other names)", "(other names)", "(other names)"]
    assert "too many different names: 3 spans share one" in report.notes


@pytest.mark.parametrize("threads", [1, 10_001])
def test_begins_without_ends_cannot_fill_the_memory(tmp_path: Path, threads: int) -> None:
    many = [{"ph": "B", "name": "b", "ts": 1, "tid": k % threads} for k in range(10_001)]
    with pytest.raises(DataError, match="10000 spans are open at once"):
        read(write_trace(tmp_path / "t.json", many))
