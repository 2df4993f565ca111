"""``--report`` of ``diagnose`` and ``workload``: a page beside the answer, over nothing that is not such a page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trimtab.cli.app import main
from trimtab.loop.verbs import pages

SAMPLES = Path(__file__).parents[1] / "readers" / "samples"
LOG = str(SAMPLES / "torch_trace_rank3.log.gz")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["start_s,shape.width,latency_ms", *(f"{k / 10},{100 + k % 7},5" for k in range(200))]))
    return path


def test_a_diagnosis_as_a_page(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "out.html"
    assert main(["diagnose", LOG, "--report", str(out)]) == 0
    assert f"report: {out}" in " ".join(capfd.readouterr().out.split("\n"))
    text = out.read_text()
    assert "Cold-shape:" in text
    assert '<meta name="generator" content="trimtab diagnose">' in text
    assert [path.name for path in out.parent.iterdir()] == ["out.html"]  # written whole, nothing beside it


def test_traffic_as_a_page(table: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.html"
    assert main(["workload", str(table), "--report", str(out), "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["headline"].startswith("200 requests")
    assert '<meta name="generator" content="trimtab workload">' in out.read_text()


def test_an_earlier_page_of_the_same_command_is_replaced_and_nothing_else(
    table: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out, other = tmp_path / "out.html", tmp_path / "mine.html"
    assert main(["diagnose", LOG, "--report", str(out)]) == 0
    first = out.read_text()
    assert main(["diagnose", str(table), "--report", str(out)]) == 0
    assert out.read_text() != first
    other.write_text("<html>mine</html>")
    for verb, target in (("workload", out), ("diagnose", other)):
        kept = target.read_text()
        assert main([verb, str(table), "--report", str(target)]) == 2
        assert "is there already, and is no earlier report of this command" in capfd.readouterr().err
        assert target.read_text() == kept
    assert main(["diagnose", str(table), "--report", str(other), "--force"]) == 0
    assert "trimtab diagnose" in other.read_text()


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["diagnose", "{table}", "--report", "{table}", "--force"], "is one of the files that are read"),
        (["diagnose", "{table}", "--baseline", "{table}", "--report", "{table}"], "is one of the files that are read"),
        (["workload", "{table}", "--report", "{table}", "--force"], "is one of the files that are read"),
        (["diagnose", "{table}", "--report", "{folder}"], "is a folder"),
        (["diagnose", "{table}", "--force"], "--force is for --report"),
        (["workload", "{table}", "--force"], "--force is for --report"),
        (["workload", "s.toml", "--report", "x.html"], "--report is for a table of arrivals"),
    ],
)
def test_mistakes(arguments: list[str], what: str, table: Path, capfd: pytest.CaptureFixture[str]) -> None:
    kept = table.read_text()
    given = [one.format(table=table, folder=table.parent) for one in arguments]
    assert main(given) == 2
    assert what in capfd.readouterr().err
    assert table.read_text() == kept


def test_a_report_that_cannot_be_written_leaves_the_earlier_one(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.html"
    assert main(["diagnose", LOG, "--report", str(out)]) == 0
    kept = out.read_text()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", str(out))

    monkeypatch.setattr(pages, "write_bytes", full)
    capfd.readouterr()
    assert main(["diagnose", str(table), "--report", str(out)]) == 7
    assert "No space left on device" in capfd.readouterr().err
    assert out.read_text() == kept


def test_a_place_that_cannot_be_written_is_named(table: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["workload", str(table), "--report", str(table / "out.html")]) == 7
    told = capfd.readouterr().err
    assert "out.html" in told
    assert "name another file with --report" in told
