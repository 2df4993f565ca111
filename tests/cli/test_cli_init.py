"""What ``trimtab init`` prints: what is left to fill in, and what comes next."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from trimtab.cli.app import main
from trimtab.loop.verbs import draft
from trimtab.loop.verbs.draft import Drafted

WHOLE = Drafted(
    study="s.toml",
    backend="openvino",
    fill_in=(),
    traffic="the trace holds 1,500 requests, 40/s over 37.5 s; tokens 4 to 77",
    measured="measured on openvino, core 0: a request takes 2 ms on average and 4 ms at the 95th percentile of sizes",
    fault="",
)
OPEN = replace(WHOLE, fill_in=("workload.arrivals.time: columns: a",), traffic="", measured="")


def init(monkeypatch: pytest.MonkeyPatch, found: Drafted, *options: str) -> int:
    monkeypatch.setattr(draft, "write_draft", lambda *_, **__: found)
    return main(["init", "net.onnx", "--trace", "t.csv", "--out", "s.toml", *options])


def test_a_study_that_runs_is_told_with_what_it_was_taken_from(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert init(monkeypatch, WHOLE) == 0
    assert capfd.readouterr().out.splitlines() == [
        "s.toml: written; look at every line marked GUESS or CHOOSE",
        WHOLE.traffic,
        WHOLE.measured,
        "next: trimtab run s.toml",
    ]


def test_what_is_left_to_fill_in_comes_before_the_run(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert init(monkeypatch, OPEN) == 0
    assert capfd.readouterr().out.splitlines()[1:] == [
        "fill in workload.arrivals.time: columns: a",
        "next: fill these in, then trimtab run s.toml",
    ]


def test_a_network_that_does_not_run_is_to_be_corrected_first(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert init(monkeypatch, replace(WHOLE, measured="", fault="compiler-error: at (1, 999): no such row")) == 0
    assert capfd.readouterr().out.splitlines()[2:] == [
        "the network does not run, so rate and bound are not taken from it: compiler-error: at (1, 999): no such row",
        "next: correct what keeps it from running (the sizes, mostly), then trimtab run s.toml",
    ]


def test_the_json(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    assert init(monkeypatch, WHOLE, "--json") == 0
    assert list(json.loads(capfd.readouterr().out)) == ["study", "backend", "fill_in", "traffic", "measured", "fault"]


def test_a_network_that_is_not_there(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["init", str(tmp_path / "net.onnx"), "--trace", "t.csv", "--out", str(tmp_path / "s.toml")]) == 5
    assert "there is no model file" in capfd.readouterr().err
