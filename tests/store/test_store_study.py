"""Reading a study: every fault at once, each with its key, its line, and what was probably meant."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_examples import STUDY

from trimtab.domain.study import Study
from trimtab.errors import StudyError
from trimtab.store.study import load_study, parse_study, schema, seconds


def refusal(text: str) -> str:
    with pytest.raises(StudyError) as caught:
        parse_study(text, "study.toml")
    return str(caught.value)


def with_line(line: str, after: str) -> str:
    assert after in STUDY
    return STUDY.replace(after, f"{after}\n{line}", 1)


def test_a_study_is_read_into_nouns_and_integers_pass_for_numbers(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    study = load_study(path)
    assert study.sla.bound_ms == 150.0
    assert isinstance(study.sla.bound_ms, float)
    assert study.dim_names == ("width",)
    assert study.baseline.compile.entries[0].hi == (640,)


def test_an_unknown_key_is_named_with_its_whole_path_its_line_and_what_was_meant() -> None:
    assert refusal(with_line('tiem = "t"', 'file = "trace.csv"')) == (
        "workload.arrivals.tiem: unknown key\nwhere: study.toml, line 20\nfix: did you mean `time`?"
    )


def test_all_faults_are_reported_at_once_in_the_order_of_the_file() -> None:
    text = (
        STUDY.replace('"p95"', '"p96"')
        .replace("workers = 1", 'workers = "one"')
        .replace("cores = [0, 1]", 'cores = [0, "1"]')
        .replace('revision = "4"', "revison = 4")
        .replace('name = "Receipt lines"', "name = 1979-05-27")
    )
    assert (
        refusal(text + '\n[owners]\ncompilr = "Ann"\n')
        == """\
7 faults in the study:
  line 1: name: expected text, got date datetime.date(1979, 5, 27)
  line 3: model.revision: missing; add it: a value of type text
  line 5: model.revison: unknown key; did you mean `revision`?
  line 26: sla.metric: expected one of p50, p95, p99, goodput; got text 'p96'; did you mean `p99` or `p95`?
  line 30: envelope.cores[1]: expected an integer, got text '1'
  line 40: baseline.serve.workers: expected an integer, got text 'one'
  line 43: owners.compilr: unknown key; did you mean `compiler`?
where: study.toml
fix: correct each of them"""
    )


@pytest.mark.parametrize(
    ("bound", "said"),
    [
        ("inf", "expected a number <= 1000000000.0, got a number inf"),
        ("nan", "expected a number > 0.0, got a number nan"),
        ("-4", "expected a number > 0.0, got an integer -4"),
        ("true", "expected a number, got a boolean True"),
        ("'9'", "expected a number, got text '9'"),
        ("[9]", "expected a number, got an array [9]"),
        ("{ ms = 9 }", "expected a number, got a table {'ms': 9}"),
    ],
)
def test_a_wrong_value_is_told_what_was_expected(bound: str, said: str) -> None:
    assert refusal(STUDY.replace("bound_ms = 150", f"bound_ms = {bound}")) == (
        f"sla.bound_ms: {said}\nwhere: study.toml, line 27\nfix: correct this key"
    )


def test_an_empty_file_lacks_every_required_part() -> None:
    found = refusal("")
    for key in ("name", "model", "dims", "workload", "sla", "envelope", "baseline"):
        assert f"\n  {key}: missing" in found


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"width"]', '"widht"]', "model.inputs[0].shape[3]: there is no dim 'widht'"),
        ('"width"]', '"batch"]', "model.inputs[0].shape: 'batch' is named twice"),
        ("3, 48", "0, 48", "model.inputs[0].shape[1]: a size is at least 1, got 0"),
        (
            '"width"]',
            '"width"]\nrandom = [0, 1]',
            "model.inputs[0].random: is for inputs of integers, and this one is f32",
        ),
        (
            '"width"]',
            '"width"]\ndtype = "u8"\nrandom = [9, 256]',
            "model.inputs[0].random: [9, 256] is no range of u8",
        ),
        ("workers = 1", "threads = 99999999999999999999", "serve.threads: expected an integer of at most 64 bits"),
        ("bound_ms = 150", "bound_ms = 1e300", "sla.bound_ms: expected a number <= 1"),
        ('name = "y"', 'name = "y"\ncrop = [{ axis = 1, dim = "w" }]', "model.outputs[0].crop[0].dim: there is no dim"),
        ("lo = 16", "lo = 700", "dims.width.lo: lo 700 is above hi 640"),
        ("[dims.width]", "[dims.depth]\nlo = 1\nhi = 2\n[dims.width]", "dims.depth: no input has this dim"),
        ('{ width = "w" }', '{ wide = "w" }', "workload.shapes.dims.wide: there is no dim 'wide'"),
        ('{ width = "w" }', "{}", "workload.shapes.dims.width: no column gives the dim 'width'"),
        ("[dims.width]", "[dims.Width]\nlo = 1\nhi = 2\n[dims.width]", "dims: 'width' is named twice, capitals apart"),
        ("hi = [640]", "hi = [641]", "entries[0].hi: width: 16..641 is outside the range 16..640"),
        ("hi = [640]", "hi = [640, 1]", "entries[0].hi: has 2 sizes for 1 dims (width)"),
        ("lo = [16]", "lo = [18], batch = [2, 1]", "entries[0].batch: [2, 1] is not a range of batch sizes"),
        ('"dynamic"', '"static"', "entries[0].lo: a static entry has lo equal to hi"),
        ('id = "any"', 'id = "../any"', "entries[0].id: '../any' cannot be a file name"),
        ('id = "today"', 'id = "/etc/passwd"', "baseline.id: '/etc/passwd' cannot be a file name"),
        ('id = "today"', 'id = "a\\u0000b"', "baseline.id: 'a\\x00b' cannot be a file name"),
        ('backend = "null"', 'backend = "null"\nfallback = "eny"', "fallback: there is no entry 'eny'"),
        ("workers = 1", "workers = 0", "baseline.serve.workers: must be at least 1, got 0"),
        ("workers = 1", "threads = 0", "baseline.serve.threads: must be at least 1, got 0"),
        ("workers = 1", "workers = 2", "2 workers need a core each; beside the driver's there are 1"),
        ("workers = 1", "warm = [[1, 16], [1, 641]]", "baseline.serve.warm[1]: [1, 641] fits no entry"),
        ("workers = 1", "warm = [[2, 16]]", "baseline.serve.warm[0]: [2, 16] fits no entry"),
        ("workers = 1", "[baseline.serve.batch]\nhold_ms = -1", "batch.hold_ms: must be from 0 to 3600000, got -1.0"),
        ("cores = [0, 1]", "cores = [1]", "envelope.cores: the driver has core 1 and no core is left for a worker"),
        ("cores = [0, 1]", "cores = []", "envelope.cores: is empty"),
        ("cores = [0, 1]", "cores = [0, 0, 1]", "envelope.cores: '0' is listed twice"),
        ("cores = [0, 1]", "cores = [0, -1]", "envelope.cores: a core's number is 0 or above"),
        (
            "bound_ms = 150",
            "bound_ms = 150\ndeadline_ms = 100",
            "sla.deadline_ms: deadline 100.0 ms is below the bound",
        ),
        ("[sla]", '[workload.payload]\nkind = "real"\n[sla]', "workload.payload.bank: real payloads need it"),
        ("[sla]", '[workload.payload]\nbank = "b.npz"\n[sla]', "workload.payload.bank: random payloads use no bank"),
        (
            "[workload.arrivals]",
            "[workload]\ndeadlines_ms = { a = 5.0 }\n[workload.arrivals]",
            "workload.deadlines_ms: no column says which stream a request is of",
        ),
        ("[workload.arrivals]", "[workload]\ntune_share = 1\n[workload.arrivals]", "leaves the tune or the held-out"),
        ("[sla]", '[[workload.slices]]\nname = "tune"\n[sla]', "workload.slices: 'tune' is the name of two slices"),
        ("[sla]", '[[workload.slices]]\nname = "a/b"\n[sla]', "slices[0].name: 'a/b' cannot be a file name"),
        ("[sla]", '[[guards]]\nmetric = "p99"\nmargin = 0.1\nslice = "tun"\n[sla]', "there is no slice 'tun'"),
        (
            "[sla]",
            '[[guards]]\nmetric = "p99"\nmargin = 0.1\nslice = "tune"\n[sla]',
            "guards[0].slice: slice 'tune' ends before the held-out traffic begins, so its guard can never be decided",
        ),
        (
            "[sla]",
            '[[workload.slices]]\nname = "early"\nstop = 0.4\n'
            '[[guards]]\nmetric = "p99"\nmargin = 0.1\nslice = "early"\n[sla]',
            "guards[0].slice: slice 'early' ends before the held-out traffic begins, so its guard can never be decided",
        ),
        (
            "[sla]",
            '[[guards]]\nmetric = "p99"\nmargin = 0.1\ncondition = "cold strat"\n'
            '[[conditions]]\nkind = "cold start"\n[sla]',
            "guards[0].condition: there is no condition 'cold strat' in [[conditions]]",
        ),
        (
            "[sla]",
            '[[guards]]\nmetric = "p99"\nmargin = 0.1\ncondition = "cold start"\nslice = "late"\n'
            '[[workload.slices]]\nname = "late"\nstart = 0.5\n[[conditions]]\nkind = "cold start"\n[sla]',
            "guards[0].slice: under 'cold start' a guard is decided on all held-out traffic, not on 'late'",
        ),
        (
            "[sla]",
            '[[conditions]]\nkind = "cold start"\n' * 2 + "[sla]",
            "conditions: 'cold start' is listed twice",
        ),
        (
            "[sla]",
            '[[conditions]]\nkind = "second trace"\n[sla]',
            "conditions[0].arrivals: a second trace needs its own",
        ),
        (
            "[sla]",
            '[[conditions]]\nkind = "second trace"\narrivals = { file = "b.csv", time = "t" }\n'
            "shapes = { dims = {} }\n[sla]",
            "conditions[0].shapes.dims.width: no column gives the dim 'width'",
        ),
        (
            "[sla]",
            '[[conditions]]\nkind = "cold start"\narrivals = { file = "b.csv", time = "t" }\n[sla]',
            "conditions[0].arrivals: 'cold start' has no traffic of its own",
        ),
        ("[sla]", '[budget]\ntime = "soon"\n[sla]', "budget.time: 'soon' is not a length of time"),
        ('"Receipt lines"', '"../lines"', "name: '../lines' cannot be the name of a folder"),
        ('"Receipt lines"', '""', "name: '' cannot be the name of a folder"),
        ("[model]", '[model]\npackage = "a/../b"', "model.package: is not the name of a package"),
        ('file = "trace.csv"', 'file = "a\\nb"', "workload.arrivals.file: must be printable text"),
    ],
)
def test_a_broken_rule_is_named(old: str, new: str, said: str) -> None:
    assert old in STUDY
    assert said in refusal(STUDY.replace(old, new, 1))


@pytest.mark.parametrize("name", ["held-out", "late"])
def test_a_guard_on_traffic_that_reaches_into_the_held_out_part_is_taken(name: str) -> None:
    late = '[[workload.slices]]\nname = "late"\nstart = 0.3\nstop = 0.5\n'
    text = STUDY.replace("[sla]", f'{late}[[guards]]\nmetric = "p99"\nmargin = 0.1\nslice = "{name}"\n[sla]', 1)
    assert parse_study(text).guards[0].slice == name


def test_candidates_need_ids_of_their_own() -> None:
    plan = 'compile = { backend = "null", entries = [{ id = "a", kind = "dynamic", lo = [16], hi = [640] }] }'
    text = STUDY + f'[[candidates]]\nid = "today"\n{plan}\n[[candidates]]\nid = "other"\n{plan}\n'
    assert refusal(text).startswith("candidates[0].id: 'today' is the id of two plans")


def test_a_fallback_may_be_warmed_outside_its_own_range() -> None:
    text = STUDY.replace("hi = [640]", "hi = [320]").replace('"null"', '"null"\nfallback = "any"')
    study = parse_study(text + "warm = [[1, 600]]\n")
    assert study.baseline.serve.warm == ((1, 600),)


@pytest.mark.parametrize("data", [b"name = ", b"a = 1\na = 2", b"\xff\xfe", b"[[[", b"a = " + b"[" * 5000])
def test_what_is_not_toml_is_a_study_error(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "study.toml"
    path.write_bytes(data)
    with pytest.raises(StudyError) as caught:
        load_study(path)
    assert str(path) in caught.value.where


def test_a_missing_file_is_a_study_error(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="cannot read the study"):
        load_study(tmp_path / "none.toml")


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_PATHS = [
    ("name",),
    ("model", "inputs"),
    ("model", "inputs", 0, "shape"),
    ("dims",),
    ("dims", "width", "lo"),
    ("workload", "shapes", "dims"),
    ("baseline", "compile", "entries"),
    ("baseline", "serve"),
    ("envelope", "cores"),
]


@settings(deadline=None, max_examples=150)
@given(st.sampled_from(_PATHS), _VALUES)
def test_whatever_stands_at_a_key_the_answer_is_a_study_or_a_study_error(path: tuple[str | int, ...], value) -> None:
    from trimtab.store._rules import rule_faults
    from trimtab.store._strict import dotted, faults

    data = tomllib.loads(STUDY)
    node = data
    for part in path[:-1]:
        node = node[part]
    node[path[-1]] = value
    found = list(faults(data, Study))
    if found:
        assert all(dotted(fault.path).startswith(dotted(path)[:4]) for fault in found)
        return
    import msgspec

    list(rule_faults(msgspec.convert(data, Study, strict=True)))


@pytest.mark.parametrize(("text", "value"), [("90s", 90.0), ("5m", 300.0), ("1h30m", 5400.0), ("0.5h", 1800.0)])
def test_lengths_of_time(text: str, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "5", "m5", "5m5h", "-5m", "0s", "5 m", "1e9h", "９s", "99999999999h"])
def test_what_is_no_length_of_time(text: str) -> None:
    with pytest.raises(StudyError, match="not a length of time"):
        seconds(text)


def test_the_schema_accepts_the_study_and_refuses_what_the_reader_refuses() -> None:
    made = json.loads(json.dumps(schema()))
    jsonschema.Draft202012Validator.check_schema(made)
    validator = jsonschema.Draft202012Validator(made)
    data = tomllib.loads(STUDY)
    validator.validate(data)
    data["sla"]["metric"] = "p96"
    data["workload"]["arrivals"]["tiem"] = "t"
    assert sorted(error.json_path for error in validator.iter_errors(data)) == [
        "$.sla.metric",
        "$.workload.arrivals",
    ]
    assert made["$defs"]["Sla"]["description"].startswith("ONE primary metric and its bound.")


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("model", "inputs", 0, "shape", 3), 9),
        (("model", "outputs", 0), 11),
        (("baseline", "compile", "entries", 0, "lo"), 37),
        (("budget", "time"), None),
    ],
)
def test_lines_of_keys(path: tuple[str | int, ...], line: int | None) -> None:
    from trimtab.store._lines import line_of

    assert line_of(STUDY, path) == line


def test_lines_after_values_that_span_lines_and_inside_arrays_of_tables() -> None:
    from trimtab.store._lines import line_of

    text = 'a = """\nx = 1\n"""\nb = [\n  1,\n]\n"q.r".s = 2\n[[t]]\nu = 1\n[[t]]\n[t.v]\nw = 1\n'
    found = {path: line_of(text, path) for path in [("b",), ("q.r", "s"), ("t", 0, "u"), ("t", 1, "v", "w"), ("x",)]}
    assert found == {("b",): 4, ("q.r", "s"): 7, ("t", 0, "u"): 9, ("t", 1, "v", "w"): 12, ("x",): None}
