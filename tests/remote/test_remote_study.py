"""A study that drives a server: what it must not hold, and what a target is."""

from __future__ import annotations

import pytest
from remote_kit import STUDY

from trimtab.domain.plan import THEIRS
from trimtab.domain.remote import Counters, Target, parse_target
from trimtab.errors import StudyError
from trimtab.store.study import parse_study

BASELINE = """
[baseline]
id = "today"

[baseline.compile]
backend = "null"
entries = [{ id = "any", kind = "dynamic", lo = [1], hi = [100] }]
"""


def refusal(text: str) -> str:
    with pytest.raises(StudyError) as refused:
        parse_study(text, "study.toml")
    return refused.value.what


def test_a_study_with_a_target_needs_no_plan_and_no_network() -> None:
    study = parse_study(STUDY)
    assert study.baseline == THEIRS
    assert study.workload.target == "kserve-v2://localhost:8001/twice"


def test_a_study_without_one_needs_both() -> None:
    assert "baseline: missing" in refusal(STUDY.replace("target = ", "# "))
    without = STUDY.replace("target = ", "# ").replace("cores = [0]", "cores = [0, 1]") + BASELINE
    assert refusal(without) == "model.path: the study names no network"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (BASELINE, "baseline: is for plans that trimtab serves; this study drives a server"),
        ("[space]\nbuckets = [2]\n", "space: is for plans that trimtab serves; this study drives a server"),
        ('[[conditions]]\nkind = "cold start"\n', "conditions: is for plans that trimtab serves"),
        ("[quality]\nsamples = 3\n", "quality: is for answers that are compared with a reference"),
    ],
)
def test_what_belongs_to_plans_of_ours_is_refused(more: str, said: str) -> None:
    assert said in refusal(STUDY + more)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('revision = "1"', 'revision = "1"\npath = "net.onnx"', "model.path: is for a network that trimtab compiles"),
        ("kserve-v2://localhost:8001/twice", "localhost:8001", "workload.target: 'localhost:8001' names no model"),
        ("kserve-v2://localhost:8001/twice", "kserve-v2://localhost/twice", "names no model of a server"),
        ("kserve-v2://localhost:8001/twice", "kserve-v2://localhost:99999/twice", "names no model of a server"),
        ('target = "kserve-v2://localhost:8001/twice"', 'target_trace = "t.json"', "baseline: missing"),
        ('/twice"', '/twice"\ndeadlines_ms = { a = 5.0 }', "workload.deadlines_ms: is for an order in which trimtab"),
        ('/twice"', '/twice"\nagainst = "there"', "workload.against: 'there' names no model of a server"),
        ('/twice"', '/twice"\nagainst = "kserve-v2://localhost:8001/twice"', "against: is workload.target itself"),
    ],
)
def test_a_wrong_target_is_refused(old: str, new: str, said: str) -> None:
    assert said in refusal(STUDY.replace(old, new))


def test_a_trace_of_no_server_is_refused() -> None:
    local = STUDY.replace('target = "kserve-v2://localhost:8001/twice"', 'target_trace = "t.json"')
    local = local.replace("cores = [0]", "cores = [0, 1]").replace('revision = "1"', 'revision = "1"\npath = "n.onnx"')
    assert refusal(local + BASELINE) == "workload.target_trace: there is no server to trace"


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("kserve-v2://h:1/m", Target(host="h", port=1, model="m")),
        ("kserve-v2://10.0.0.1:8001/net.v2/3", Target(host="10.0.0.1", port=8001, model="net.v2", version="3")),
        ("kserve-v2://[::1]:8001/m", Target(host="[::1]", port=8001, model="m")),
    ],
)
def test_targets_are_read_and_written_alike(text: str, target: Target) -> None:
    assert parse_target(text) == target
    assert str(target) == text


@pytest.mark.parametrize(
    "text", ["", "h:1/m", "http://h:1/m", "kserve-v2://h:0/m", "kserve-v2://h:1/m/x", "kserve-v2://h:1/"]
)
def test_what_is_no_target(text: str) -> None:
    assert parse_target(text) is None


def test_counters_that_went_back_are_of_another_server() -> None:
    before = Counters(requests=5, executions=5, failed=0, queued=5, queue_ns=50, computed=5, compute_ns=500)
    after = Counters(requests=9, executions=7, failed=1, queued=9, queue_ns=80, computed=9, compute_ns=900)
    assert after.since(before) == Counters(
        requests=4, executions=2, failed=1, queued=4, queue_ns=30, computed=4, compute_ns=400
    )
    assert before.since(after) is None
