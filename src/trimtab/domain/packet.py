"""A Packet's table of contents, and the Record: all of a packet that a view may use."""

from __future__ import annotations

from trimtab.domain.envelope import Envelope, EnvelopeCheck
from trimtab.domain.figure import Findings
from trimtab.domain.noun import Noun
from trimtab.domain.plan import Plan
from trimtab.domain.profile import CompileFailure, CompileProfile
from trimtab.domain.signoff import Signatures
from trimtab.domain.study import Study
from trimtab.domain.trace import RunInfo
from trimtab.domain.verdict import Proposal, Verdict

STAGES = (
    "workload",
    "plan",
    "compile",
    "replay",
    "attribute",
    "score",
    "retune",
    "validate",
    "decide",
    "packet",
    "report",
)
"""The data path, in order: each word is a module, a verb, a packet file, a report section and a glossary entry."""


class ManifestFile(Noun, frozen=True, kw_only=True):
    path: str
    sha256: str
    bytes: int


class Manifest(Noun, frozen=True, kw_only=True):
    """Every file of one kind (evidence, or views) with its digest. ``packet_schema`` counts incompatible changes;
    ``sha256`` is the digest of all the rest of it (empty: written before there was one)."""

    kind: str
    trimtab: str
    created: str
    files: tuple[ManifestFile, ...]
    packet_schema: int = 1
    sha256: str = ""


class Record(Noun, frozen=True, kw_only=True):
    """A packet in memory, without its raw columns. What is absent was not run: a view leaves its section out.

    ``doubts``: why what is here may not be what was measured, said first by every view. ``signatures`` None = nobody
    looked.
    """

    study: Study
    findings: dict[str, Findings]
    envelope: Envelope | None = None
    checks: tuple[EnvelopeCheck, ...] = ()
    plans: tuple[Plan, ...] = ()
    profiles: tuple[CompileProfile, ...] = ()
    failures: tuple[CompileFailure, ...] = ()
    runs: tuple[RunInfo, ...] = ()
    proposal: Proposal | None = None
    verdict: Verdict | None = None
    manifest: Manifest | None = None
    doubts: tuple[str, ...] = ()
    signatures: Signatures | None = None
