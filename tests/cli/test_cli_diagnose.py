"""``trimtab diagnose``: the JSON's agreed shape, what people read, and mistakes on the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from trimtab.cli.app import main
from trimtab.errors import UsageError
from trimtab.loop.verbs.tables import parse_sla

COLD = "start_s,total,shape.width\n" + "".join(
    f"{i / 10},{60 if i < 20 else 5 + i % 3 / 100},{i % 20 + 1}\n" for i in range(300)
)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "calls.csv"
    path.write_text(COLD)
    return path


def test_the_json(table: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(table), "--column", "latency_ms=total", "--sla", "p95=20ms", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert list(found) == ["classes", "missing", "next_measurement", "failures", "tail", "read"]
    assert {one["id"]: one["value"] for one in found["tail"]}["diagnose.p95"] == 60.0
    assert found["failures"] == ""
    assert list(found["classes"][0]) == ["class", "share", "interval", "owner", "evidence", "ruled_out"]
    assert found["classes"][0]["class"] == "cold-shape"
    assert (found["read"]["used"], found["read"]["columns"]["latency"]) == (300, "total")
    assert "uses the recorded stages, not a re-run" in found["read"]["notes"]


def test_what_people_read(table: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(table), "--column", "latency_ms=total", "--baseline", str(table)]) == 0
    out = capfd.readouterr().out
    for line in ("tail, over all requests", "needs at least 459 requests", "class: ", "(compiler lead)", "missing",
                 "next measurement: ", "uses the recorded stages, not a re-run", "300 of 300 rows used"):  # fmt: skip
        assert line in out
    assert "mean latency" not in out


def test_a_percentile_among_the_failed_says_what_failed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "lossy.csv"
    rows = [f"{i / 10},5,{'oom' if i % 10 == 0 else 'crash' if i % 50 == 1 else 'ok'}" for i in range(300)]
    path.write_text("\n".join(["start_s,latency_ms,ok", *rows]))
    assert main(["diagnose", str(path), "--sla", "p95=20ms"]) == 0
    out = " ".join(capfd.readouterr().out.split())
    assert not re.search(r"\binf\b", out)
    assert "failures: 36 of 300 requests failed (12.0 %): 30 out-of-memory (at 0 to 29 s), 6 crash (at 0.1 to " in out
    assert "p95 among the failed p95 falls among 36 failed requests (30 out-of-memory, 6 crash)" in out
    assert main(["diagnose", str(path), "--sla", "p95=20ms", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["failures"].startswith("36 of 300 requests failed (12.0 %)")
    assert [one["class"] for one in found["classes"]] == ["memory-limit"]


@pytest.mark.parametrize(
    ("options", "code", "what"),
    [
        ([], 4, "has no column for the latency of a request"),
        (["--column", "latency_ms=totl"], 4, "did you mean `total`"),
        (["--column", "latency=total"], 2, "say the unit"),
        (["--column", "total"], 2, "is not name=value"),
        (["--column", "latency_ms=total", "--fact", "thread=4"], 2, "did you mean `threads`"),
        (["--column", "latency_ms=total", "--fact", "threads=many"], 2, "not 'many'"),
        (["--column", "latency_ms=total", "--fact", "throttled=3"], 2, "from 0 to 1"),
        (["--column", "latency_ms=total", "--sla", "mean=5ms"], 2, "an average never decides"),
    ],
)
def test_mistakes(table: Path, capfd: pytest.CaptureFixture[str], options: list[str], code: int, what: str) -> None:
    assert main(["diagnose", str(table), *options]) == code
    assert what in " ".join(capfd.readouterr().err.split())


@pytest.mark.parametrize(
    ("text", "metric", "bound_ms", "goodput"),
    [("p95=100ms", "p95", 100, 0.99), ("p99=1.5s", "p99", 1500, 0.99), ("p50=250us", "p50", 0.25, 0.99),
     ("goodput=0.95@20ms", "goodput", 20, 0.95), ("goodput=95%@20ms", "goodput", 20, 0.95)],
)  # fmt: skip
def test_an_sla(text: str, metric: str, bound_ms: float, goodput: float) -> None:
    found = parse_sla(text)
    assert (found.metric, found.bound_ms, found.goodput) == (metric, bound_ms, goodput)


@pytest.mark.parametrize(
    "text", ["p95", "p95=100", "p42=1ms", "p95=0ms", "goodput=20ms", "p95=0.9@20ms", "goodput=2@1ms"]
)
def test_no_sla(text: str) -> None:
    with pytest.raises(UsageError):
        parse_sla(text)
