"""Help: each verb in one sentence, each option with what it is, the same option the same everywhere, exit codes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from trimtab import errors
from trimtab.cli.app import EXIT_CODES, STAGE_HELP, Options, app, main
from trimtab.errors import TrimtabError

VERBS: dict[str, Callable[..., int]] = {name: app[name].default_command for name in app if not name.startswith("-")}  # type: ignore[misc]
NO_JSON = {"schema"}
"""What it prints is JSON anyway."""


def described(text: str) -> dict[str, str]:
    """Parameter -> what the docstring says of it, in one line."""
    listed = inspect.cleandoc(text).partition("----------\n")[2] + "\n"
    return {name: " ".join(said.split()) for name, said in re.findall(r"^(\w+)\n((?: {4,}.*\n|\n)+)", listed, re.M)}


def parameters(verb: Callable[..., int]) -> dict[str, str]:
    """Every parameter that the verb takes -> its description; empty where there is none."""
    own = described(verb.__doc__ or "")
    found: dict[str, str] = {}
    for name in inspect.signature(verb).parameters:
        found |= described(Options.__doc__ or "") if name == "options" else {name: own.get(name, "")}
    return found


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_says_what_it_does_and_every_option_what_it_is(verb: str, capfd: pytest.CaptureFixture[str]) -> None:
    first = inspect.cleandoc(VERBS[verb].__doc__ or "").partition("\n")[0]
    assert first.endswith(".")
    said = parameters(VERBS[verb])
    assert all(said.values()), f"without a description: {[name for name, text in said.items() if not text]}"
    assert ("json" in said) is (verb not in NO_JSON)
    assert main([verb, "--help"]) == 0
    shown = capfd.readouterr().out
    assert all(f"--{name.replace('_', '-')}" in shown or name.upper() in shown for name in said)


def test_an_option_of_one_name_is_one_thing() -> None:
    """--out names a place and --budget a length of time in every verb; --json and --force read alike."""
    texts: dict[str, set[str]] = {}
    for verb in VERBS.values():
        for name, text in parameters(verb).items():
            texts.setdefault(name, set()).add(text)
    assert len(texts["json"]) <= 2
    assert all("90s" in text or "2m" in text for text in texts["budget"])
    assert all("Default:" in text for text in texts["out"])


def test_every_kind_of_fault_has_an_exit_code_of_its_own_and_both_lists_name_it() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, TrimtabError)]
    codes = {kind.__name__: kind.exit_code for kind in kinds if kind is not TrimtabError}
    assert len(set(codes.values())) == len(codes)
    readme = " ".join((Path(__file__).parents[2] / "README.md").read_text().split())
    for text in (EXIT_CODES, readme.partition("Exit codes:")[2].partition("##")[0]):
        assert {int(code) for code in re.findall(r"\b(\d+) [a-z]", text)} >= {*codes.values(), errors.INTERRUPTED}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["rum"], 'Did you mean "run"'),
        (["probe", "--jsn"], "Did you mean --json?"),
        (["run", "s.toml", "--budjet", "5m"], "Did you mean --budget?"),
        (["sign", "p", "--role", "compilr", "--key", "k"], "compiler"),
        (["init", "m.onnx"], "--trace"),
        (["run", "s.toml", "--executor", "rya"], "known: local, ray"),
    ],
)
def test_what_is_misspelt_is_answered_with_what_was_meant(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text((Path(__file__).parents[2] / "examples/ocr/study.toml").read_text())
    assert main(arguments) == 2
    told = capfd.readouterr().err
    assert said in told
    assert "fix: " in told
    assert "Token" not in told, "the parser's own words for programmers"
    assert all(verb in STAGE_HELP or verb in VERBS for verb in re.findall(r"fix: trimtab (\w+) --help", told))


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["report", "{folder}", "--budget", "5m"], 2, "--budget is for a study, not for a packet"),
        (["run", "{folder}"], 3, "this is a folder, not a study"),
        (["run", "{folder}/studdy.toml"], 3, "did you mean `study.toml`?"),
        (["run", "{folder}/study.toml", "--budget", "soon"], 2, "'soon' is not a length of time"),
        (["run", "{folder}/" + "x" * 300], 3, "File name too long"),
        (["verify", "{folder}"], 8, "no packet"),
        (["report", "{folder}/out/ocrr"], 8, "did you mean `ocr`?"),
        (["schema", "extra"], 2, "schema takes nothing more, and was given extra"),
        (["compare", "a"], 2, "compare needs NEW"),
        (["run", "s.toml", "--budget"], 2, "--budget needs a value"),
    ],
)
def test_what_is_named_wrongly_is_answered_with_what_is_there(
    arguments: list[str], code: int, said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "study.toml").write_text((Path(__file__).parents[2] / "examples/ocr/study.toml").read_text())
    (tmp_path / "out" / "ocr").mkdir(parents=True)
    (tmp_path / "out" / "ocr" / "study.json").write_text("{}")
    assert main([word.format(folder=tmp_path) for word in arguments]) == code
    told = capfd.readouterr()
    assert said in " ".join((told.err + told.out).split())


def test_an_interrupt_says_that_a_run_goes_on_and_only_a_run(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def pressed(*_: object, **__: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("trimtab.store.study.load_study", pressed)
    assert main(["run", "study.toml"]) == errors.INTERRUPTED
    assert "run the same command to go on" in capfd.readouterr().err
    monkeypatch.setattr("trimtab.loop.machine.all_backends", pressed)
    assert main(["backends"]) == errors.INTERRUPTED
    assert capfd.readouterr().err == "\ninterrupted\n"


@pytest.mark.parametrize("verb", ["run", "workload", "verify"])
def test_a_name_that_is_no_text_is_refused_at_once(verb: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "caf\udce9.toml"]) == 2
    told = capfd.readouterr().err
    assert "this name is not UTF-8 text" in told
    assert "where: caf?.toml" in told
