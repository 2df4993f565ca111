"""torch.compile's structured trace and its log text: known figures of real files, every prefix, both limits."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from spans_kit import SAMPLES, read, sample, unpacked

from trimtab.domain.noun import NEVER
from trimtab.errors import DataError
from trimtab.readers import torch_logs, torch_trace


def test_the_trace_of_rank_3() -> None:
    spans, report = sample("torch_trace_rank3.log.gz", strict=True)
    assert (report.format, len(spans.compiles)) == (torch_trace.NAME, 7)
    first, second = spans.compiles[:2]
    assert [one.took // 1_000_000 for one in spans.compiles] == [10283, 43, 46, 39, 32, 37, 36]
    assert (first.id, first.took, first.again, first.start) == ("0/0", 10_283_392_000, False, 0)
    assert first.code == "kernel (/Users/skarjala/Desktop/tlparse/tests/gen_many_frames.py:6)"
    assert (second.id, second.again) == ("0/1", True)
    assert second.reasons == ("0/0: tensor 'x' size mismatch at index 0. expected 2, actual 3",)
    assert [len(one.reasons) for one in spans.compiles] == [0, 1, 2, 3, 4, 5, 6]
    assert {one.cache for one in spans.compiles} == {"hit"}
    assert spans.origin == pytest.approx(1753139505.672653e9, abs=1e3)


@pytest.mark.parametrize(
    ("file", "took_us", "cache", "breaks", "failure"),
    [
        ("torch_trace_simple.log.gz", [1659332], ["miss"], 0, ""),
        ("torch_trace_artifacts.log.gz", [8903769], [""], 0, ""),
        ("torch_trace_comp_metrics.log.gz", [12439, 7198, 3394], ["", "", ""], 2, ""),
        ("torch_trace_comp_failure.log.gz", [157247], [""], 0,
         "BackendCompilerFailed: backend='broken_backend' raised: RuntimeError: broken backend"),
    ],
)  # fmt: skip
def test_known_files(file: str, took_us: list[int], cache: list[str], breaks: int, failure: str) -> None:
    compiles = sample(file, strict=True)[0].compiles
    assert [round(one.took / 1e3) for one in compiles] == took_us
    assert [one.cache for one in compiles] == cache
    assert sum(bool(one.breaks) for one in compiles) == breaks
    assert compiles[0].failure == failure


def test_a_trace_and_a_text_of_one_program_tell_the_same() -> None:
    trace, _ = sample("torch_trace_2_13.log.gz", strict=True)
    text, report = sample("torch_2_13_recompiles.txt.gz", strict=True)
    assert (report.format, len(trace.compiles), len(text.compiles)) == (torch_logs.NAME, 17, 16)
    told = {one.id: one for one in text.compiles}
    for one in trace.compiles:
        if one.again:
            assert (told[one.id].reasons, told[one.id].limit) == (one.reasons, one.limit)
            assert told[one.id].code == one.code
    last = [one for one in trace.compiles if one.limit]
    assert [(one.id, one.limit, one.failure) for one in last] == [("0/8", "recompile_limit (8)", "")]
    assert last[0].code == "answer (/tmp/serve/serve.py:13)"
    assert sum(bool(one.breaks) for one in trace.compiles) == 8


def test_one_bare_reason(tmp_path: Path) -> None:
    artifact = line(f'{{"artifact": {{"name": "recompile_reasons"}}, {FRAME}, "has_payload": "x"}}')
    [one] = read(torch_log(tmp_path, artifact, "\t0/0: x == 3\n"))[0].compiles
    assert one.reasons == ("0/0: x == 3",)


def line(json: str, prefix: str = "V0721 16:11:45.671000 98102 torch/_dynamo/utils.py:1900]") -> str:
    return f"{prefix} {json}\n"


FRAME = '"frame_id": 0, "frame_compile_id": 1, "attempt": 0'


def torch_log(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "t.log"
    path.write_text("".join(lines))
    return path


def test_a_compile_that_did_not_end(tmp_path: Path) -> None:
    spans, report = read(torch_log(tmp_path, line(f'{{"dynamo_start": {{"stack": []}}, {FRAME}}}')))
    assert [(one.id, one.took, one.start) for one in spans.compiles] == [("0/1", NEVER, NEVER)]
    assert (report.notes, spans.complete) == (("1 compiles", f"1 {torch_trace.UNFINISHED}"), False)


def test_ranks_are_kept_apart(tmp_path: Path) -> None:
    start = f'{{"dynamo_start": {{}}, {FRAME}'
    path = torch_log(
        tmp_path, line(start + ', "rank": 0}'), line(start + ', "rank": 5}'), "[rank7]:" + line(start + "}")
    )
    spans, _ = read(path)
    assert [one.rank for one in spans.compiles] == [0, 5, 7]
    assert spans.facts["ranks"] == "0, 5, 7"


def test_broken_lines_are_counted(tmp_path: Path) -> None:
    path = torch_log(
        tmp_path,
        line(f'{{"dynamo_start": {{}}, {FRAME}}}'),
        "a print of the program\n",
        line('{"artifact": {"name": "re'),
        line(f'{{"artifact": {{"name": "recompile_reasons"}}, {FRAME}, "has_payload": "x"}}'),
        "\t[1, 2]\n",
        line('{"compilation_metrics": [], "frame_id": "x"}'),
    )
    spans, report = read(path)
    assert report.dropped == {torch_trace.NO_LINE: 1, torch_trace.NO_JSON: 2, "reasons that are no list": 1}
    assert len(spans.compiles) == 1
    with pytest.raises(DataError, match="left out"):
        read(path, strict=True)


def test_a_trace_without_compiles_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="tells of no compile"):
        read(torch_log(tmp_path, line('{"str": ["/a.py", 0]}')))


def test_a_cut_trace_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "t.log"
    data = unpacked(SAMPLES / "torch_trace_rank3.log.gz")
    path.write_bytes(data[: len(data) // 2])
    spans, report = read(path)
    assert 1 <= len(spans.compiles) < 7
    assert sum(report.dropped.values()) <= 1


PLACE = "77 torch/_dynamo/guards.py:2791]"
NEW = f"""\
V0401 12:00:00.100000 {PLACE} [0/1] [__recompiles] Recompiling function fn in /a.py:5
V0401 12:00:00.100000 {PLACE} [0/1] [__recompiles]     triggered by the following guard failure(s):
V0401 12:00:00.100000 {PLACE} [0/1] [__recompiles]     - 0/0: tensor 'x' size mismatch at index 0. expected 3, actual 4
step 3 took 2 s
W0401 12:00:02.600000 {PLACE} [0/8] torch._dynamo hit config.{{limit}} (8)
W0401 12:00:02.600000 {PLACE} [0/8]    function: 'fn' (/a.py:5)
W0401 12:00:02.600000 {PLACE} [0/8]    last reason: 0/7: tensor 'x' size mismatch at index 0. expected 9, actual 8
W0401 12:00:02.600000 {PLACE} [0/8] To log all recompilation reasons, use TORCH_LOGS="recompiles".
"""
LOGGER = "[2023-11-06 14:54:08,549] torch._dynamo.guards.__recompiles: [DEBUG]"
OLD = f"""\
{LOGGER} Recompiling function fn in /a.py:5
{LOGGER}     triggered by the following guard failure(s):
{LOGGER}     - tensor 'L['x']' size mismatch at index 0. expected 20, actual 21
"""
BARE = """\
Recompiling function fn in /a.py:5
    triggered by the following guard failure(s):
    - 0/0: x == 3
some text
    - a list of the program
"""


@pytest.mark.parametrize("limit", ["recompile_limit", "cache_size_limit", "accumulated_recompile_limit"])
def test_log_text_with_every_name_of_the_limit(tmp_path: Path, limit: str) -> None:
    spans, report = read(torch_log(tmp_path, NEW.format(limit=limit)))
    first, last = spans.compiles
    assert (report.format, report.used, report.ignored) == (torch_logs.NAME, 6, ("2 lines of other output",))
    assert (first.id, first.code, first.again, first.limit, first.took) == ("0/1", "fn (/a.py:5)", True, "", NEVER)
    assert first.reasons == ("0/0: tensor 'x' size mismatch at index 0. expected 3, actual 4",)
    assert (last.id, last.code, last.limit) == ("0/8", "fn (/a.py:5)", f"{limit} (8)")
    assert last.reasons == ("0/7: tensor 'x' size mismatch at index 0. expected 9, actual 8",)
    assert (first.start, last.start) == (0, 2_500_000_000)


def test_log_text_of_older_versions_and_without_prefix(tmp_path: Path) -> None:
    spans, _ = read(torch_log(tmp_path, OLD, BARE))
    assert [(one.code, one.reasons) for one in spans.compiles] == [
        ("fn (/a.py:5)", ("tensor 'L['x']' size mismatch at index 0. expected 20, actual 21",)),
        ("fn (/a.py:5)", ("0/0: x == 3",)),
    ]


def test_log_text_of_several_ranks_at_once(tmp_path: Path) -> None:
    lines = NEW.format(limit="cache_size_limit").splitlines()[4:7]
    mixed = "".join(f"[rank{rank}]:{text}\n" for text in lines for rank in (3, 6))
    spans, _ = read(torch_log(tmp_path, mixed))
    assert [(one.rank, one.code, len(one.reasons)) for one in spans.compiles] == [
        (3, "fn (/a.py:5)", 1), (6, "fn (/a.py:5)", 1),
    ]  # fmt: skip


def test_graph_breaks_in_log_text(tmp_path: Path) -> None:
    prefix = "V0401 12:00:00.1000 77 torch/_dynamo/symbolic_convert.py:4] [2/0] [__graph_breaks]"
    path = torch_log(tmp_path, f"{prefix} Graph break in user code at /a.py:9\n{prefix} Reason: Unsupported: print\n")
    [one] = read(path)[0].compiles
    assert (one.id, one.again, one.breaks) == ("2/0", False, ("/a.py:9: Unsupported: print",))


def test_packed_log_text(tmp_path: Path) -> None:
    path = tmp_path / "out.txt.gz"
    path.write_bytes(gzip.compress(OLD.encode()))
    assert len(read(path)[0].compiles) == 1
