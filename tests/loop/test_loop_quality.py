"""Quality in the loop: real payloads through real workers of the null backend, whose outputs are sums of their inputs.

A pad value that is not 0 therefore changes answers, a bank's minus infinity is the network's own, and a payload of nan
has no reference answer. What is claimed of answers is tested on real runtimes; here it is who is asked, and judged.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from loop_kit import STUDY, Silent, need_two_cores, write_study
from msgspec.structs import replace

from trimtab.domain.figure import Series
from trimtab.domain.plan import BatchPolicy, CompileSpec, Entry, Plan, ServePolicy
from trimtab.domain.study import QualitySpec
from trimtab.errors import StudyError
from trimtab.loop import answers, quality, stages
from trimtab.loop.context import Context
from trimtab.runtime import probe
from trimtab.store.packet import Packet, load_record, verify
from trimtab.store.study import load_study

PADDED = Plan(
    id="padded",
    compile=CompileSpec(
        backend="null",
        entries=(
            Entry(id="to-50", kind="bucket", lo=(1,), hi=(50,)),
            Entry(id="any", kind="dynamic", lo=(1,), hi=(100,)),
        ),
        fallback="any",
    ),
)
ERROR = QualitySpec(precision="default", metric="max-error", floor=0.5, reference="null", samples=6, samples_each=2)


@pytest.fixture(autouse=True)
def _two_cores() -> None:
    need_two_cores()


def fed(folder: Path, text: str, **payload: object) -> Path:
    """The study ``text`` with real payloads: widths 1 to 100, one each, of ones unless ``payload`` says more."""
    kind = '\n[workload.payload]\nkind = "real"\nbank = "bank.npz"\n'
    pad = f"pad = {payload.get('pad', 0.0)}\n\n[[model.outputs]]"
    rows = {f"x/{width:03}": np.ones((1, width), np.float32) for width in range(1, 101)}
    for width in payload.get("masked", ()):
        rows[f"x/{width:03}"][0, 0] = -np.inf
    for width in payload.get("broken", ()):
        rows[f"x/{width:03}"][0, 0] = np.nan
    np.savez(folder / "bank.npz", **rows)
    return write_study(folder, text.replace("[[model.outputs]]", pad, 1) + kind, 400)


def context(folder: Path, spec: QualitySpec = ERROR, **payload: object) -> Context:
    """A run whose workload and whose machine have been read."""
    study = replace(load_study(fed(folder, STUDY, **payload)), quality=spec)
    ctx = Context(study=study, folder=folder, packet=Packet(folder / "packet"), budget_s=60, progress=Silent())
    stages.workload(ctx)
    ctx.packet.write_envelope(probe.probe(), ())
    return ctx


def statuses(ctx: Context, plan: Plan = PADDED) -> dict[str, str]:
    return {cell.id.removeprefix("guard/quality/"): cell.status for cell in quality.cells(ctx, plan, "decide")}


def test_bands_entries_and_padding_are_judged_and_a_harmless_pad_passes(tmp_path: Path) -> None:
    ctx = context(tmp_path)
    assert statuses(ctx) == dict.fromkeys(
        ("all-shapes", "padded-shapes", "worst-band", "worst-entry", "padding-alone"), "pass"
    )
    found = quality.judge(ctx, PADDED, "decide")
    assert found is not None
    entries = list(found.columns["entry"])
    assert min(entries.count("to-50"), entries.count("any")) >= 2
    assert len(set(found.columns["band"])) == 3
    assert (tmp_path / "packet" / "quality" / "padded.json").is_file()


def test_padding_that_changes_answers_fails_where_it_pads_and_nowhere_else(tmp_path: Path) -> None:
    ctx = context(tmp_path, pad=1.0)
    found = {cell.id.removeprefix("guard/quality/"): cell for cell in quality.cells(ctx, PADDED, "decide")}
    assert {name: cell.status for name, cell in found.items()} == dict.fromkeys(
        ("all-shapes", "padded-shapes", "worst-band", "worst-entry", "padding-alone"), "fail"
    )
    assert found["worst-entry"].slice == "worst entry, to-50"
    assert found["padding-alone"].note.endswith("its own answers without padding")
    judged = quality.judge(ctx, PADDED, "decide")
    assert judged is not None
    wide = [
        value for value, entry in zip(judged.columns["value"], judged.columns["entry"], strict=True) if entry == "any"
    ]
    assert wide == [0.0] * len(wide)
    assert statuses(ctx, ctx.study.baseline) == dict.fromkeys(("all-shapes", "worst-band", "worst-entry"), "pass")


def test_where_the_plan_cannot_run_unpadded_the_padded_cell_says_so(tmp_path: Path) -> None:
    options = {"fail_compile": "no dynamic shapes"}
    ctx = context(tmp_path)

    def twin(ctx: Context, plan: Plan) -> Plan:
        return replace(real(ctx, plan), compile=replace(real(ctx, plan).compile, options=options))

    real = answers.twin
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answers, "twin", twin)
        found = {cell.id.removeprefix("guard/quality/"): cell for cell in quality.cells(ctx, PADDED, "decide")}
    assert "padding-alone" not in found
    assert found["padded-shapes"].status == "pass"
    assert "padding alone is not judged" in found["padded-shapes"].note
    assert "padding alone" not in found["all-shapes"].note


def test_a_plan_that_batches_is_asked_in_batches_and_their_padding_is_seen(tmp_path: Path) -> None:
    (dynamic,) = [entry for entry in PADDED.compile.entries if entry.kind == "dynamic"]
    spec = replace(PADDED.compile, entries=(replace(dynamic, batch=(1, 4)),))
    plan = Plan(id="batching", compile=spec, serve=ServePolicy(batch=BatchPolicy(kind="size-hold", max_size=4)))
    found = statuses(context(tmp_path, pad=1.0), plan)
    assert found == {"all-shapes": "pass", "in-batches": "fail", "worst-band": "pass", "worst-entry": "pass"}


def test_without_a_reference_answer_the_cell_stays_open_and_says_so(tmp_path: Path) -> None:
    ctx = context(tmp_path, broken=range(40, 101))
    cells = {cell.id.removeprefix("guard/quality/"): cell for cell in quality.cells(ctx, PADDED, "decide")}
    assert cells["all-shapes"].status == "inconclusive"
    assert cells["all-shapes"].candidate is None
    assert "requests have no reference answer" in cells["all-shapes"].note
    assert "no reference: output 'y' holds nan" in cells["all-shapes"].note
    assert quality.holds(ctx, PADDED, "decide") is False


def test_the_reference_teaches_which_infinities_are_answers(tmp_path: Path) -> None:
    ctx = context(tmp_path, masked=(100,))
    assert answers.infinities(ctx, "compile") == {"y": "-"}
    assert set(statuses(ctx).values()) == {"pass"}
    plain = tmp_path / "plain"
    plain.mkdir()
    assert answers.infinities(context(plain), "compile") == {"y": ""}


def test_quality_is_judged_again_when_the_network_is_fed_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def compare(ctx: Context, plan: Plan, stage: str) -> Series:
        asked.append(plan.id)
        return Series(id="quality.padded", columns={})

    monkeypatch.setattr(quality, "_compare", compare)
    ctx = context(tmp_path)
    for _ in range(2):
        quality.judge(ctx, PADDED, "decide")
    assert asked == ["padded"]
    study = ctx.study
    (padded,) = study.model.inputs
    changes = {
        "padding": {"model": replace(study.model, inputs=(replace(padded, pad=2.0),))},
        "scale": {"workload": replace(study.workload, payload=replace(study.workload.payload, scale=2.0))},
        "seed": {"seeds": replace(study.seeds, payload=9)},
        "floor": {"quality": replace(study.quality, floor=0.4)},
    }
    for number, change in enumerate(changes.values(), start=2):
        again = Context(
            study=replace(study, **change), folder=tmp_path, packet=ctx.packet, budget_s=60, progress=Silent()
        )
        quality.judge(again, PADDED, "decide")
        assert asked == ["padded"] * number


def test_a_users_function_judges_and_a_change_of_its_file_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "nearness.py"
    file.write_text("def near(reference, outputs):\n    return abs(float((reference['y'] - outputs['y']).max()))\n")
    spec = replace(ERROR, metric="error-function", function="nearness:near", samples=2, samples_each=1)
    ctx = context(tmp_path, spec)
    before = answers.asked_of(ctx)
    cells = quality.cells(ctx, PADDED, "decide")
    assert {cell.status for cell in cells} == {"pass"}
    assert "function nearness:near" in cells[0].note
    file.write_text("def near(reference, outputs):\n    return -1\n")
    assert answers.asked_of(ctx) != before
    with pytest.raises(StudyError, match="an error is a number from 0, not -1"):
        quality.cells(ctx, PADDED, "decide")


def test_random_payloads_judge_nothing(tmp_path: Path) -> None:
    study = load_study(write_study(tmp_path))
    ctx = Context(study=study, folder=tmp_path, packet=Packet(tmp_path / "packet"), budget_s=60, progress=Silent())
    stages.workload(ctx)
    assert quality.judge(ctx, PADDED, "decide") is None
    assert quality.cells(ctx, PADDED, "decide") == ()
    assert quality.holds(ctx, PADDED, "decide") is None
    assert answers.infinities(ctx, "compile") is None


@pytest.mark.slow
def test_a_whole_run_sets_quality_memory_and_speed_in_one_row(tmp_path: Path) -> None:
    text = STUDY.replace("warm_shapes = [20]", "").replace("replays = 2", "replays = 1")
    text = text.replace('reference = "null"', 'precision = "default"\nreference = "null"\nmetric = "max-error"')
    path, out = fed(tmp_path, text.replace("replay_s = 1.2", "replay_s = 1.0")), tmp_path / "packet"
    done = subprocess.run(
        [sys.executable, "-m", "trimtab", "run", str(path), "--out", str(out)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    record = load_record(out)
    candidates = record.findings["retune"].table("retune.candidates")
    assert candidates is not None
    row = {name: column[candidates.columns["plan"].index("refit-2")] for name, column in candidates.columns.items()}
    assert isinstance(row["peak_mib"], float)
    assert (row["quality"], row["quality_status"], row["payloads"]) == (0.0, "pass", "real")
    parts = record.findings["compile"].table("compile.quality_parts")
    assert parts is not None
    assert set(parts.columns["kind"]) == {"all", "band", "entry"}
    assert set(parts.columns["status"]) == {"pass"}
    assert all(isinstance(time, float) for time in parts.columns["time"])
    memory = record.findings["compile"].table("compile.memory")
    assert memory is not None
    assert memory.columns["plan"][0] == "today"
    assert verify(out) == []
