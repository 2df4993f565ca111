"""A Packet: the folder that holds all evidence of one study, and what may be read back from it.

    study.toml study.json envelope.json workload.parquet
    envelopes/<sha256>.json (of machines beside the home one, where several made it)
    plans/<plan>.json profiles/<plan>.json
    traces/<run>/{run.json,requests.parquet,batches.parquet,marks.parquet,samples.parquet}
    accounts/<run>.parquet
    workload.json plan.json compile.json replay.json ... (Findings of each stage)
    proposal.json verdict.json manifest.json
    report.html manifest-views.json (views)

Every write replaces a file at once, so a packet is readable at any moment. Names that come from a study pass
:func:`safe_name` before they are part of a path.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from trimtab.domain.envelope import Envelope, EnvelopeCheck
from trimtab.domain.figure import Findings
from trimtab.domain.noun import Noun
from trimtab.domain.packet import STAGES, Manifest, Record
from trimtab.domain.plan import Plan
from trimtab.domain.profile import CompileFailure, CompileProfile
from trimtab.domain.study import Study
from trimtab.domain.trace import RunInfo, Table, Trace
from trimtab.domain.verdict import Proposal, Verdict
from trimtab.domain.workload import Workload
from trimtab.store import codec
from trimtab.store._json import digest, read_json, write_json
from trimtab.store._write import replace_file, safe_name, write_bytes
from trimtab.store.checkpoint import Checkpoint, forget, is_done, mark_done, outputs_of
from trimtab.store.manifest import MANIFESTS, Problem, build_manifest, file_digest, no_packet, set_aside, verify

T = TypeVar("T")

__all__ = [
    "Checkpoint",
    "Packet",
    "Problem",
    "build_manifest",
    "digest",
    "file_digest",
    "forget",
    "is_done",
    "load_record",
    "mark_done",
    "outputs_of",
    "replace_file",
    "safe_name",
    "set_aside",
    "verify",
    "write_bytes",
    "write_json",
]


class _EnvelopeFile(Noun, frozen=True, kw_only=True):
    envelope: Envelope
    checks: tuple[EnvelopeCheck, ...]


class _ProfilesFile(Noun, frozen=True, kw_only=True):
    """``envelope_sha256``: the machine that made them."""

    profiles: tuple[CompileProfile, ...]
    failures: tuple[CompileFailure, ...]
    envelope_sha256: str = ""


class Packet:
    """Paths, writers and readers of one packet folder. Writers return the path written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, *parts: str) -> Path:
        """A path inside the packet; each part must be a safe name (PacketError)."""
        return self.folder.joinpath(*map(safe_name, parts))

    def trace_folder(self, run: str) -> Path:
        return self.path("traces", run)

    def telemetry_path(self, run: str) -> Path:
        """Where a replay logs its rows while it runs; not evidence, the trace is made from it."""
        return self.folder / ".progress" / safe_name(f"{run}.rows")

    def write_study(self, text: bytes, study: Study) -> tuple[Path, Path]:
        """Keep the study as the user wrote it, and as it was understood."""
        write_bytes(self.path("study.toml"), text)
        write_json(self.path("study.json"), study)
        return self.path("study.toml"), self.path("study.json")

    def write_envelope(self, envelope: Envelope, checks: Iterable[EnvelopeCheck]) -> Path:
        return self._write("envelope.json", noun=_EnvelopeFile(envelope=envelope, checks=tuple(checks)))

    def machine_path(self, sha256: str) -> Path:
        """Where the envelope of this digest is, if it is of a machine beside the one of ``envelope.json``."""
        return self.path("envelopes", f"{sha256}.json")

    def write_machine(self, envelope: Envelope) -> Path:
        return write_json(self.machine_path(digest(envelope)), envelope)

    def write_plan(self, plan: Plan) -> Path:
        return self._write("plans", f"{plan.id}.json", noun=plan)

    def write_profiles(
        self, plan: str, results: Iterable[CompileProfile | CompileFailure], envelope_sha256: str = ""
    ) -> Path:
        found = tuple(results)
        profiles = tuple(item for item in found if isinstance(item, CompileProfile))
        failures = tuple(item for item in found if isinstance(item, CompileFailure))
        file = _ProfilesFile(profiles=profiles, failures=failures, envelope_sha256=envelope_sha256)
        return self._write("profiles", f"{plan}.json", noun=file)

    def write_findings(self, findings: Findings) -> Path:
        return self._write(f"{findings.stage}.json", noun=findings)

    def write_proposal(self, proposal: Proposal) -> Path:
        return self._write("proposal.json", noun=proposal)

    def write_verdict(self, verdict: Verdict) -> Path:
        return self._write("verdict.json", noun=verdict)

    def write_workload(self, workload: Workload) -> Path:
        path = self.path("workload.parquet")
        codec.write_workload(path, workload)
        return path

    def write_trace(self, trace: Trace) -> tuple[Path, ...]:
        codec.write_trace(self.trace_folder(trace.run.id), trace)
        return self.trace_files(trace.run.id)

    def trace_files(self, run: str) -> tuple[Path, ...]:
        """The files of one run, whether they are there or not."""
        return tuple(self.trace_folder(run) / name for name in codec.TRACE_FILES)

    def write_account(self, run: str, table: Table, words: Mapping[str, tuple[str, ...]] | None = None) -> Path:
        path = self.path("accounts", f"{run}.parquet")
        codec.write_table(path, table, words)
        return path

    def read_workload(self) -> Workload:
        return codec.read_workload(self.path("workload.parquet"))

    def read_trace(self, run: str) -> Trace:
        return codec.read_trace(self.trace_folder(run))

    def read_run(self, run: str) -> RunInfo | None:
        """What a run was; None where it is not there."""
        path = self.trace_folder(run) / "run.json"
        return read_json(path, RunInfo) if path.is_file() else None

    def read_account(self, run: str) -> Table:
        return codec.read_table(self.path("accounts", f"{run}.parquet"))

    def read_envelope(self) -> tuple[Envelope, tuple[EnvelopeCheck, ...]]:
        file = read_json(self.path("envelope.json"), _EnvelopeFile)
        return file.envelope, file.checks

    def read_machine(self, sha256: str) -> Envelope:
        return read_json(self.machine_path(sha256), Envelope)

    def read_machines(self) -> tuple[Envelope, ...]:
        """Every machine of the packet, its home first."""
        others = (read_json(path, Envelope) for path in sorted((self.folder / "envelopes").glob("*.json")))
        return (self.read_envelope()[0], *others) if (self.folder / "envelope.json").is_file() else ()

    def read_plan(self, plan: str) -> Plan:
        return read_json(self.path("plans", f"{plan}.json"), Plan)

    def read_plans(self) -> tuple[Plan, ...]:
        """Every plan of the packet, by id."""
        return tuple(read_json(path, Plan) for path in sorted((self.folder / "plans").glob("*.json")))

    def read_profiles(self, plan: str) -> tuple[CompileProfile | CompileFailure, ...]:
        """What compiling each entry of ``plan`` gave: profiles first, then failures."""
        file = read_json(self.path("profiles", f"{plan}.json"), _ProfilesFile)
        return (*file.profiles, *file.failures)

    def profiled_on(self, plan: str) -> str:
        """The digest of the envelope that made the profile of ``plan``; empty: nobody wrote it down."""
        return read_json(self.path("profiles", f"{plan}.json"), _ProfilesFile).envelope_sha256

    def read_findings(self, stage: str) -> Findings:
        return read_json(self.path(f"{stage}.json"), Findings)

    def _write(self, *parts: str, noun: object) -> Path:
        return write_json(self.path(*parts), noun)


def load_record(folder: Path) -> Record:
    """All of a packet that a view may use; what was not run is absent. PacketError if a part is broken, or if there
    is not even a study. Hashes are not checked here: see :func:`verify`."""
    if not (folder / "study.json").is_file():
        raise no_packet(folder, "there is no packet here: study.json is missing")
    envelope = _optional(folder / "envelope.json", _EnvelopeFile)
    compiled = [read_json(path, _ProfilesFile) for path in sorted((folder / "profiles").glob("*.json"))]
    return Record(
        study=read_json(folder / "study.json", Study),
        findings={stage: found for stage in STAGES if (found := _optional(folder / f"{stage}.json", Findings))},
        envelope=envelope.envelope if envelope else None,
        checks=envelope.checks if envelope else (),
        plans=Packet(folder).read_plans(),
        profiles=tuple(profile for file in compiled for profile in file.profiles),
        failures=tuple(failure for file in compiled for failure in file.failures),
        runs=tuple(read_json(path, RunInfo) for path in sorted((folder / "traces").glob("*/run.json"))),
        proposal=_optional(folder / "proposal.json", Proposal),
        verdict=_optional(folder / "verdict.json", Verdict),
        manifest=_optional(folder / MANIFESTS["evidence"], Manifest),
    )


def _optional(path: Path, kind: type[T]) -> T | None:
    return read_json(path, kind) if path.exists() else None
