"""The verbs of the command line: one per stage, `run` for all of them, and the few that need no study.

Nothing is computed here. A verb calls :mod:`trimtab.loop` and shows what came back, for people or as ``--json``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cyclopts import App, CycloptsError, Parameter

from trimtab import __version__
from trimtab.cli import diagnosis, drafting, export, faults, helping, release, show, streams
from trimtab.errors import TrimtabError, UsageError

EXIT_CODES = (
    "Exit codes: 0 done, 2 wrong command, 3 study, 4 data, 5 model, 6 missing tool, 7 machine, 8 packet, 9 run, "
    "10 signature, 11 sign-off, 12 document, 130 interrupted, 141 nobody reads the output any more. "
    "`reproduce` and `compare --gate` say their outcome with 0, 1 and 2."
)

app = App(
    name="trimtab",
    help=f"How well a compiled network's mapping fits live shapes, and the smallest change that helps.\n\n{EXIT_CODES}",
    version=f"trimtab {__version__}",
    help_format="plaintext",
    suppress_keyboard_interrupt=False,  # the verbs' own end: say what was kept
    default_parameter=Parameter(negative="", show_default=False),  # each description says it
)

STAGE_HELP = {
    "plan": "Probe the machine, check what the study assumes of it, and lay out the baseline plan.",
    "compile": "Compile the baseline and the reference; profile every entry.",
    "replay": "Replay the traffic through queue, batcher and pinned cores, several times.",
    "attribute": "Split the tail into causes that sum exactly.",
    "score": "Mapping accuracy, promise accuracy, predicted against measured.",
    "retune": "Enumerate bounded changes, simulate all, confirm the few best by real replay.",
    "validate": "Baseline and candidate interleaved on held-out traffic; one cell per question.",
    "decide": "Ship, hold or roll back, with reasons.",
    "packet": "Hash all evidence into the manifest.",
}
RESUMING = ("run", "workload", *STAGE_HELP, "report", "reproduce")
"""Verbs that go on where they were interrupted."""


@Parameter(name="*")
@helping.flows
@dataclass(frozen=True)
class Options:
    """What every verb that runs stages understands.

    Parameters
    ----------
    out
        The packet's folder. Default: out/<study name> in the working directory.
    budget
        Wall-clock aim for the whole loop, such as 90s, 5m or 2h. Default: the study's.
    json
        Print the result as JSON on standard output; progress stays on standard error.
    fresh
        Forget finished stages of an earlier run in the same folder.
    running
        A packet that shipped a change of this study, which runs now: judge that change on the study's traffic, and keep
        it, hold, or roll back. Nothing is searched. The default of --out is then out/<study name>-running.
    executor
        Who compiles and replays: local, ray (a cluster on this machine, only for this run) or ray:ADDRESS (a cluster
        that runs). Default: local. docs/retune.md, "Several machines".
    """

    out: Path | None = None
    budget: str | None = None
    json: bool = False
    fresh: bool = False
    running: Path | None = None
    executor: str = "local"


def run(study: Path, *, options: Options = Options()) -> int:
    """All stages, from the traffic to the report; continues where an earlier run in the same folder stopped.

    Parameters
    ----------
    study
        The study's TOML file.
    """
    return _run_until(study, "report", options)


def _run_until(study: Path, stage: str, options: Options) -> int:
    from trimtab.cli.progress import progress
    from trimtab.loop.loop import planned_s, run_until
    from trimtab.store.study import load_study

    whole = planned_s(load_study(study), options.budget) if stage == "report" else None
    with progress(whole) as meter:
        outcome = run_until(
            study,
            stage,
            out=options.out,
            budget=options.budget,
            fresh=options.fresh,
            running=options.running,
            executor=options.executor,
            progress=meter,
        )
    show.outcome(outcome, stage, as_json=options.json)
    return 0


def _stage_verb(stage: str) -> Callable[..., int]:
    def verb(study: Path, *, options: Options = Options()) -> int:
        return _run_until(study, stage, options)

    verb.__name__ = stage
    verb.__doc__ = f"""{STAGE_HELP[stage]}

    Runs the stages before it where they are not done yet.

    Parameters
    ----------
    study
        The study's TOML file.
    """
    return verb


def workload(
    target: Path,
    *,
    column: tuple[str, ...] = (),
    strict: bool = False,
    report: Path | None = None,
    force: bool = False,
    options: Options = Options(),
) -> int:
    """Read the traffic: arrivals, bursts, shapes, drift, streams. Of a study, or of any table of arrivals.

    Parameters
    ----------
    target
        A study's TOML file, or a table of arrivals: CSV, TSV, JSONL or Parquet, each also .gz, one row a request.
    column
        role=header of a table, such as start_ms=t or shape.width=w. May be repeated.
    strict
        Refuse rows of a table that cannot be used, instead of counting them.
    report
        Write what a table shows with charts as one HTML file, too, over an earlier one of this command only.
    force
        Write the report over any file.
    """
    if target.suffix == ".toml" or target.is_dir():
        mine = {"--column": column, "--strict": strict, "--report": report, "--force": force}
        _refuse(mine, "a table of arrivals, not for a study")
        return _run_until(target, "workload", options)
    _refuse(_of_stages(options), "a study, not for a table")
    from trimtab.cli import arrivals
    from trimtab.loop.verbs import pages
    from trimtab.loop.verbs.arrivals import describe_file

    if report is None:
        _refuse({"--force": force}, "--report")
    else:
        pages.require_free(report, "workload", (target,), force=force)
    found = describe_file(target, columns=column, strict=strict)
    if report is not None:
        pages.write_traffic(report, found)
    arrivals.show(found, as_json=options.json)
    if report is not None and not options.json:
        show.lines([f"report: {report}"])
    return 0


def _of_stages(options: Options) -> dict[str, object]:
    """What was given of the options that are for running stages."""
    given: dict[str, object] = {"--out": options.out, "--budget": options.budget, "--fresh": options.fresh}
    return given | {"--running": options.running, "--executor": options.executor != "local"}


def _refuse(options: dict[str, object], what: str) -> None:
    """UsageError for the first option that is given; it is for ``what``."""
    for option, given in options.items():
        if given:
            raise UsageError(f"{option} is for {what}", fix=f"leave {option} out")


def report(target: Path, *, options: Options = Options()) -> int:
    """Show a packet in the terminal and rewrite its HTML page; given a study, run whatever is missing first.

    Exit code 8 if the packet is not what was sealed: the page says so before anything else. With --json the page
    is left as it is.

    Parameters
    ----------
    target
        A packet's folder, or a study's TOML file.
    """
    if target.is_file() or target.suffix == ".toml":
        return _run_until(target, "report", options)
    _refuse(_of_stages(options), "a study, not for a packet")
    from trimtab.loop.verbs.reporting import page_of, write_page

    record, page = page_of(target)
    code = show.record(record, page, as_json=options.json)
    if not options.json:
        write_page(target, page)
    return code


def backends(*, json: bool = False) -> int:
    """Every runtime that trimtab knows: what it can (+) and cannot (-) do on this machine, and why.

    Parameters
    ----------
    json
        Print the result as JSON.
    """
    from trimtab.loop.machine import all_backends

    show.backends(all_backends(), as_json=json)
    return 0


def probe(study: Path | None = None, *, json: bool = False) -> int:
    """What this machine is; given a study, whether that is what the study assumes.

    Parameters
    ----------
    study
        A study's TOML file (optional).
    json
        Print the result as JSON.
    """
    from trimtab.loop.machine import probe_machine

    show.envelope(*probe_machine(study), as_json=json)
    return 0


def schema() -> int:
    """Print the JSON Schema of a study, for editors."""
    from trimtab.store.study import schema as study_schema

    show.raw_json(study_schema())
    return 0


helping.add(app, helping.STUDY, drafting.init, run, probe, schema)
helping.add(app, helping.STAGES, workload, *map(_stage_verb, STAGE_HELP), report)
helping.add(app, helping.PACKET, export.export, *release.VERBS)
helping.add(app, helping.WITHOUT, diagnosis.diagnose, backends)


def main(argv: list[str]) -> int:
    """Run one command; every fault is printed here, once, and becomes an exit code by its kind."""
    streams.prepare()
    try:
        return _command(argv)
    except BrokenPipeError:
        if not streams.nobody_reads():
            raise
        return streams.NOBODY_READS
    finally:
        streams.finish()


def _command(argv: list[str]) -> int:
    as_json = "--json" in argv
    try:
        faults.require_text(argv)
        code = app(argv, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()  # now, where a full disk can still be told
    except TrimtabError as error:
        return show.error(error, as_json=as_json)
    except CycloptsError as error:
        return show.error(faults.of_command(error), as_json=as_json)
    except KeyboardInterrupt:
        return show.interrupted(resumes=bool(argv) and argv[0] in RESUMING)
    except BrokenPipeError:
        raise
    except OSError as error:
        return show.error(faults.of_system(error), as_json=as_json)
    except MemoryError:
        return show.error(faults.OUT_OF_MEMORY, as_json=as_json)
    return code if isinstance(code, int) else 0
