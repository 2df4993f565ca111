"""``trimtab workload FILE``: traffic without a study, for people and as JSON; what belongs to studies is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trimtab.cli.app import main
from trimtab.cli.arrivals import LEVELS, LINE, sparkline


def table(tmp_path: Path) -> str:
    path = tmp_path / "t.csv"
    rows = [f"{k / 10},{k % 3},{100 + k % 7},{1 + k % 5}" for k in range(120)]
    path.write_text("\n".join(["t_s,client,input_tokens,output_tokens", *rows, "x,0,1,1"]))
    return str(path)


def test_what_people_read(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["workload", table(tmp_path)]) == 0
    found = " ".join(capfd.readouterr().out.split())
    for line in (
        "read as: ServeGen requests",
        "120 requests at 10/s over 11.9 s",
        "Sizes drift:",
        "input tokens.p50 103 size",
        "0 30 10.08 ██████████",
        "120 of 121 rows used",
        "left out: 1, no time",
    ):
        assert line in found
    assert "slice" not in found


def test_the_json(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["workload", table(tmp_path), "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["read"]["dropped"] == {"no time": 1}
    assert {one["id"] for one in found["series"]} == {
        "workload.arrivals", "workload.input_tokens", "workload.output_tokens", "workload.streams", "workload.windows",
    }  # fmt: skip
    assert {one["artifact"] for one in (*found["series"], *found["figures"])} == {"t.csv"}


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["t.csv", "--out", "x"], "--out is for a study"),
        (["t.csv", "--fresh"], "--fresh is for a study"),
        (["t.csv", "--executor", "ray"], "--executor is for a study"),
        (["s.toml", "--column", "start_s=t"], "--column is for a table of arrivals"),
        (["s.toml", "--strict"], "--strict is for a table of arrivals"),
    ],
)
def test_options_of_the_other_kind_are_refused(
    arguments: list[str], what: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["workload", *arguments]) == 2
    assert what in capfd.readouterr().err


@pytest.mark.parametrize(
    ("cells", "line"),
    [
        ([1, 2, 4, 8], "▂▃▅█"),
        ([0, 5, None, 5.0], " █ █"),
        ([0, 0], "  "),
        ([], ""),
        ([1] * 95 + [8], "▂" * 47 + "█"),
        (list(range(1, 97)), None),
    ],
)
def test_small_charts_of_the_terminal(cells: list[float | None], line: str | None) -> None:
    found = sparkline(cells)
    assert len(found) <= LINE
    assert found == line if line is not None else list(found) == sorted(found, key=LEVELS.index)


def test_arrivals_and_sizes_are_drawn_in_a_line_each(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["workload", table(tmp_path)]) == 0
    lines = [" ".join(line.split()) for line in capfd.readouterr().out.splitlines()]
    drawn = [line for line in lines if line.endswith(("of each stretch", "requests by size"))]
    assert drawn == [
        "arrivals ████████████ 0 to 11 s, 1/s: the busiest second of each stretch",
        "input tokens ███████ 100 to 106: requests by size",
        "output tokens █████ 1 to 5: requests by size",
    ]
