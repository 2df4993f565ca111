"""Everything that can be checked about a packet offline: hashes, schema, documents, signatures, policy.

Nothing in the packet is imported or run, no link is followed, no device is opened, nothing outside the folder is read.
A packet that only malice makes (links, paths that leave it, absurd sizes) is not read beyond its manifest.
"""

from __future__ import annotations

import tomllib
from datetime import datetime
from pathlib import Path

import msgspec

from trimtab.domain.noun import Noun
from trimtab.domain.packet import Record
from trimtab.domain.score import Diagnosis
from trimtab.domain.signoff import Signatures, reduced
from trimtab.domain.study import Study
from trimtab.domain.verdict import ROLE_TITLES, Proposal, Verdict
from trimtab.errors import DocumentError, PacketError, SignatureError, SignOffError, TrimtabError
from trimtab.store import sign
from trimtab.store._json import read_json
from trimtab.store._regular import open_regular, read_regular
from trimtab.store.codec import TRACE_FILES
from trimtab.store.documents import document_problems
from trimtab.store.manifest import HOSTILE, MANIFESTS, Problem, verify
from trimtab.store.packet import load_record
from trimtab.store.study import LARGEST_STUDY

_MAGIC = b"PAR1"
_ERRORS: dict[str, type[TrimtabError]] = {
    "document": DocumentError,
    "signature": SignatureError,
    "sign-off": SignOffError,
}
_OTHER_STUDY = Problem(path="study.json", kind="schema", text="is not what study.toml says")
_GRAVEST = (PacketError, DocumentError, SignatureError, SignOffError)


class Verification(Noun, frozen=True, kw_only=True):
    """What was found. ``signatures`` None = the packet could not be read that far. ``trusted``: the study from which
    the owners' keys and the policy were taken; empty = the packet's own."""

    packet: str
    problems: tuple[Problem, ...]
    files: int = 0
    decision: str = ""
    trusted: str = ""
    signatures: Signatures | None = None

    @property
    def exit_code(self) -> int:
        """0, or the code of the gravest kind of problem: packet, document, signature, sign-off."""
        kinds = {_ERRORS.get(problem.kind, PacketError) for problem in self.problems}
        return next((kind.exit_code for kind in _GRAVEST if kind in kinds), 0)


def examine(folder: Path, now: datetime, trusted: Study | None = None) -> Verification:
    """Check all of a packet. ``trusted`` is a study whose keys and policy count instead of those that the packet brings
    along. PacketError only if there is no folder."""
    problems = verify(folder)
    if (folder / MANIFESTS["views"]).exists() or (folder / MANIFESTS["views"]).is_symlink():
        problems += verify(folder, "views")
    if any(problem.kind in HOSTILE for problem in problems):
        return Verification(packet=str(folder), problems=tuple(problems))
    try:
        record = load_record(folder)
    except PacketError as error:
        broken = Problem(path=Path(error.where).name or ".", kind="schema", text=error.what)
        return Verification(packet=str(folder), problems=(*problems, broken))
    problems += _schema(folder, record)
    problems += document_problems(folder, record)
    if trusted is not None and trusted.name != record.study.name:
        text = f"the packet is of study {record.study.name}, not of {trusted.name}"
        problems.append(Problem(path="study.json", kind="signature", text=text))
    signatures, wrong = signatures_of(folder, record, now, trusted)
    problems += wrong
    if record.verdict is not None and not wrong:
        problems += _policy(record.verdict, signatures)
    return Verification(
        packet=str(folder),
        problems=tuple(problems),
        files=len(record.manifest.files) if record.manifest else 0,
        decision=record.verdict.decision if record.verdict else "",
        trusted=trusted.name if trusted else "",
        signatures=signatures,
    )


def signatures_of(
    folder: Path, record: Record, now: datetime, trusted: Study | None = None
) -> tuple[Signatures, list[Problem]]:
    """The valid signatures against the policy of the packet's study, or of a trusted one; what is wrong with the
    others."""
    policy = trusted or record.study
    valid, wrong = sign.examine(folder, record.study, policy.signoff.keys, now)
    required = tuple(dict.fromkeys(policy.signoff.require))
    return Signatures(required=required, signed=tuple(valid), reduced=reduced(policy)), wrong


def _policy(verdict: Verdict, signatures: Signatures) -> list[Problem]:
    """What a ship still lacks. A hold or a rollback changes nothing for the worse, so it needs no signature."""
    if verdict.decision != "ship":
        return []
    lacking = [
        Problem(path=sign.signature_of(role), kind="sign-off", text=f"the {ROLE_TITLES[role]} has not signed")
        for role in signatures.missing
    ]
    return lacking + [
        Problem(
            path=sign.signature_of(one.role),
            kind="sign-off",
            text=f"the {ROLE_TITLES[one.role]} signed against it: {one.dissent}",
        )
        for one in signatures.against
        if one.role in signatures.required
    ]


def _schema(folder: Path, record: Record) -> list[Problem]:
    """Files that are not what their names say. The nouns of a Record were decoded already; of columns only the frame
    is looked at: their bytes are held by their hashes."""
    problems = [] if _as_written(folder, record) else [_OTHER_STUDY]
    for name, kind in (("choice.json", Proposal), ("diagnosis.json", Diagnosis)):
        if (folder / name).exists():
            try:
                read_json(folder / name, kind)
            except PacketError as error:
                problems.append(Problem(path=name, kind="schema", text=error.what))
    listed = {file.path for file in record.manifest.files} if record.manifest else set()
    for path in sorted(listed):
        if path.endswith(".parquet") and not _framed(folder / path):
            problems.append(Problem(path=path, kind="schema", text="is no Parquet file"))
    for run in record.runs:
        for name in TRACE_FILES:
            path = f"traces/{run.id}/{name}"
            if listed and path not in listed:
                problems.append(Problem(path=path, kind="schema", text="is missing: the run is not whole"))
    return problems


def _as_written(folder: Path, record: Record) -> bool:
    """Whether ``study.json`` is what ``study.toml`` says: the text that people read is the one that was run."""
    try:
        text = read_regular(folder / "study.toml", LARGEST_STUDY).decode()
        return msgspec.convert(tomllib.loads(text), Study) == record.study
    except (PacketError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError, RecursionError):
        return False


def _framed(path: Path) -> bool:
    try:
        with open_regular(path) as file:
            head = file.read(len(_MAGIC))
            file.seek(-len(_MAGIC), 2)
            return head == _MAGIC == file.read(len(_MAGIC))
    except OSError:
        return False
