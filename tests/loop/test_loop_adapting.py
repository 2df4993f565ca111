"""Static and adapted replays of a study that asks for them. Null backend: plumbing only."""

from __future__ import annotations

from pathlib import Path

import pytest
from loop_kit import STUDY, need_two_cores, trimtab, write_study

from trimtab.loop.schedule import plan_time
from trimtab.store.packet import Packet

ASKED = STUDY.replace("replays = 2", "replays = 1") + "\n[adapt]\nreplay = true\nspare = 1\n"


def test_replays_under_the_controller_take_their_share_of_the_budget() -> None:
    assert plan_time(600, 3, 4, None).tune_s == pytest.approx((600 - 30 - 4 - 12 * 3.5) / (6 + 6 * 1.5))
    assert plan_time(600, 3, 4, None, adapting=6).tune_s == pytest.approx((600 - 30 - 4 - 18 * 3.5) / (12 + 6 * 1.5))


@pytest.mark.slow
def test_static_and_adapted_replays_are_kept_and_compared(tmp_path: Path) -> None:
    need_two_cores()
    out = tmp_path / "packet"
    done = trimtab("score", write_study(tmp_path, ASKED), "--out", out)
    assert done.returncode == 0, done.stderr
    packet = Packet(out)
    static, adapted = (packet.read_trace(f"adapting-{plan}-1") for plan in ("today", "today-adapted"))
    assert (static.run.source, adapted.run.source) == ("measured", "measured")
    assert (static.run.plan, adapted.run.plan) == ("today", "today-adapted")
    assert static.requests["scheduled"].tolist() == adapted.requests["scheduled"].tolist()
    assert (adapted.requests["error"] == 0).all()
    found = packet.read_findings("score")
    gain, table = found.figure("score.measured_gain"), found.table("score.measured")
    assert gain is not None
    assert gain.value is not None
    assert table is not None
    assert table.columns["run"][:2] == ("static", "adapted")
    assert table.columns["source"][:2] == ("measured", "measured")
