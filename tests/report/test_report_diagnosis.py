"""The page of diagnosed files and that of traffic: which sections, which sentences, and nothing that is not there."""

from __future__ import annotations

import json
from pathlib import Path

import diagnosed_kit as kit
import pytest

from trimtab.report import html
from trimtab.report.page import Block, Page


def sections(page: Page) -> dict[str, str]:
    return {one.id: one.heading for one in page.sections}


def charts(page: Page) -> set[str]:
    return {chart.id for chart in html.charts_of(page)}


def words_of(blocks: tuple[Block, ...]) -> str:
    """Everything that the blocks say, as one text."""
    return json.dumps([str(block) for block in blocks])


def test_a_table_of_requests(tmp_path: Path) -> None:
    page = kit.page(kit.requests(tmp_path), sla="p95=40ms")
    assert page.title == "requests.csv: trimtab diagnose"
    assert (page.first, page.kind) == ("Diagnosis", "diagnose")
    opening = page.opening
    assert opening is not None
    assert (opening.status, opening.word) == ("fail", "Padding-waste:")
    assert opening.sentence.startswith("executed dims are ")
    assert [answer.label for answer in opening.answers] == [
        "Tail, p99", "What explains it", "Missing to say more", "Read",
    ]  # fmt: skip
    found = sections(page)
    assert list(found) == ["tail", "classes", "time", "sizes", "streams", "missing", "read", "figures"]
    assert ", above its bound of 40\u00a0ms; the median is " in found["tail"]
    assert charts(page) == {"curve", "cloud", "sizes", "padding"}


@pytest.mark.parametrize(
    ("file", "expected", "drawn"),
    [
        ("kineto_alexnet.json.gz", ["classes", "device", "launches", "names", "missing", "read", "figures"],
         {"window", "gaps"}),
        ("kineto_torch_2_13_cpu.json.gz",
         ["tail", "classes", "time", "sizes", "names", "runs", "missing", "read", "figures"],
         {"curve", "cloud", "sizes", "runs"}),
        ("ort_5shapes.json.gz", ["classes", "names", "runs", "missing", "read", "figures"], {"runs"}),
        ("torch_trace_rank3.log.gz", ["classes", "compiles", "missing", "read", "figures"], {"compiles"}),
        ("loadgen_trace_hailo8.json.gz", ["tail", "classes", "time", "missing", "read", "figures"], {"curve", "cloud"}),
        ("loadgen_summary_tpuv3.txt", ["tail", "classes", "points", "missing", "read", "figures"], set()),
        ("perf_analyzer_inception.csv", ["classes", "points", "missing", "read"], set()),
        ("trtexec_profile_mobilenet.json", ["classes", "layers", "missing", "read"], set()),
        ("openvino_counters_pcseq.csv", ["classes", "layers", "missing", "read", "figures"], set()),
    ],
)  # fmt: skip
def test_every_kind_of_file_has_its_sections(file: str, expected: list[str], drawn: set[str]) -> None:
    page = kit.page(file)
    assert list(sections(page)) == expected
    assert charts(page) == drawn
    text = html.render(page)
    assert '<meta name="generator" content="trimtab diagnose">' in text
    assert html.render(page) == text


def test_known_sentences_stand_on_the_page() -> None:
    page = kit.page("kineto_alexnet.json.gz")
    found = sections(page)
    assert found["launches"] == "79\u00a0kernels; half of them start within 0.441\u00a0ms of their launch."
    assert found["device"].endswith("long driver calls, 97\u00a0%.")
    assert page.opening is not None
    assert page.opening.status == "open"
    assert page.opening.pending.startswith("Next measurement: a recording after warm-up")
    compiles = sections(kit.page("torch_trace_rank3.log.gz"))["compiles"]
    assert compiles == "Seven compiles; 6 of code that had been compiled, 235\u00a0ms together."


def test_several_files_have_sections_of_their_own_and_the_first_screen_tells_of_what_is_proven() -> None:
    page = kit.page("ort_5shapes.json.gz", "torch_trace_rank3.log.gz")
    assert page.opening is not None
    assert page.opening.word == "Cold-shape:"
    assert "In torch_trace_rank3.log.gz" not in page.opening.text  # a log has no percentile
    assert "ort_5shapes.json.gz: insufficient-evidence." in page.opening.text
    found = sections(page)
    assert {"runs-1", "compiles-2", "read-1", "read-2"} <= set(found)
    assert len(found) == len(page.sections)
    assert charts(page) == {"runs-1", "compiles-2"}
    assert page.sections[0].eyebrow == "ort_5shapes.json.gz · Classification"


def test_ranks_of_one_job_stand_side_by_side_behind_their_own_files() -> None:
    page = kit.page("kineto_ranks_0.json.gz", "kineto_ranks_1.json.gz")
    assert page.title == "two files: trimtab diagnose"
    assert page.opening is not None
    assert (page.opening.word, page.opening.answers[-1].value) == ("Core-imbalance:", "Two files")
    found = sections(page)
    assert found["ranks-3"] == "Own work of the ranks differs by 16\u00a0% of the time of their steps."
    assert charts(page) == {"runs-1", "runs-2", "steps-3"}


def test_what_was_left_out_is_counted_on_the_page(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("start_s,latency_ms,colour\n0,1,x\n1,,x\n2,2,x\n")
    page = kit.page(path)
    [read] = [one for one in page.sections if one.id == "read"]
    assert read.heading == "One piece left out, counted here."
    said = words_of(read.blocks)
    assert "no latency, and not marked as failed" in said
    assert "colour" in said


def test_a_baseline_is_drawn_beside_it_and_read_beside_it(tmp_path: Path) -> None:
    before = tmp_path / "before"
    before.mkdir()
    page = kit.page(kit.requests(tmp_path), baseline=kit.requests(before))
    [tail] = [one for one in page.sections if one.id == "tail"]
    assert "baseline requests.csv" in words_of(tail.blocks)
    [read] = [one for one in page.sections if one.id == "read"]
    assert len(read.blocks) == 2


def test_a_file_of_traffic(tmp_path: Path) -> None:
    page = kit.traffic_page(kit.arrivals(tmp_path))
    assert (page.title, page.kind, page.opening) == ("arrivals.csv: traffic", "workload", None)
    found = sections(page)
    assert list(found) == ["arrivals", "bursts", "shapes", "drift", "streams", "read", "figures"]
    assert found["arrivals"].startswith("3000 requests at ")
    assert found["bursts"].startswith("Counts vary most in windows of ")
    assert found["drift"].startswith("Sizes drift: width of window ")
    assert {"arrivals", "bursts", "dim-0", "window-0"} <= charts(page)
    html.render(page)


def test_traffic_that_is_known_by_rates_only(tmp_path: Path) -> None:
    path = tmp_path / "rates.csv"
    rows = [f"{client},{600 * k}.0,{client + k / 4},1,Gamma" for client in range(1, 4) for k in range(6)]
    path.write_text("\n".join(["client,window_start_s,rate_rps,cv,pattern", *rows]))
    page = kit.traffic_page(path)
    assert list(sections(page)) == ["arrivals", "drift", "streams", "read", "figures"]
    html.render(page)


def test_one_request_has_a_page(tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    path.write_text("start_s,latency_ms,shape.width\n0,1,5\n")
    html.render(kit.page(path))
    html.render(kit.traffic_page(path))
