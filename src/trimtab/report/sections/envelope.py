"""Envelope and versions: what the plan assumed of the machine, what was probed, and on what it all ran."""

from __future__ import annotations

from trimtab.domain.envelope import Envelope, EnvelopeCheck
from trimtab.report import words
from trimtab.report.book import Book, source
from trimtab.report.page import Block, Cell, Column, Facts, Grid, Row, Section, Split

LABELS = {
    "cores": "Cores",
    "memory_gib": "Memory, GiB",
    "quota_cores": "Quota, cores",
    "governor": "Governor",
    "power_profile": "Power profile",
    "virtual": "Virtual",
    "cpu_flags": "CPU features",
}
"""What a study's assumptions are called here; ``versions.<name>`` is a version."""
LOOKS = {"agrees": "pass", "differs": "fail", "unknown": "open"}


def section(book: Book) -> Section | None:
    checks, envelope = book.record.checks, book.record.envelope
    if not checks and envelope is None:
        return None
    left: tuple[Block, ...] = (_checks(checks),) if checks else ()
    right: tuple[Block, ...] = (Facts(pairs=_facts(envelope), title="Machine and versions"),) if envelope else ()
    return Section(
        id="envelope",
        nav="Envelope",
        eyebrow="Envelope",
        heading=_heading(checks),
        blocks=(Split(left=left, right=right),) if left and right else (*left, *right),
        source=source(artifact="envelope.json"),
    )


def _heading(checks: tuple[EnvelopeCheck, ...]) -> str:
    if not checks:
        return "Nothing was assumed of the machine, so nothing could be checked."
    differs = [_inside(check) for check in checks if check.status == "differs"]
    unknown = [_inside(check) for check in checks if check.status == "unknown"]
    open_ = f"; {words.listed(unknown)} could not be read" if unknown else ""
    if not differs:
        return f"The machine is what the plan assumed{open_}."
    return f"The machine differs from what the plan assumed in {words.listed(differs)}{open_}."


def _label(check: EnvelopeCheck) -> str:
    """The assumption in words."""
    kind, _, name = check.name.partition(".")
    return f"Version of {name}" if kind == "versions" else LABELS.get(check.name, words.opened(check.name))


def _inside(check: EnvelopeCheck) -> str:
    """The same inside a sentence, without its unit."""
    label = _label(check).partition(",")[0]
    return label if label.startswith("CPU") else label[:1].lower() + label[1:]


def _checks(checks: tuple[EnvelopeCheck, ...]) -> Grid:
    columns = (Column(label="Assumption"), Column(label="Declared"), Column(label="Probed"), Column(label=""))
    rows = tuple(
        Row(
            cells=(
                Cell(text=_label(check)),
                Cell(text=check.assumed),
                Cell(text=check.probed or "not readable"),
                Cell(text=check.status, glyph=LOOKS[check.status], look=f"{LOOKS[check.status]}-ink"),
            )
        )
        for check in checks
    )
    return Grid(columns=columns, rows=rows)


def _facts(envelope: Envelope) -> tuple[tuple[str, str], ...]:
    pairs = [
        ("CPU", envelope.cpu_model),
        ("Cores", f"{words.count(envelope.cores_online)} online, allowed {_cores(envelope.cores_allowed)}"),
        ("Memory", _memory(envelope)),
        ("Virtualisation", envelope.virtualisation),
        ("Kernel", envelope.kernel),
        ("Microcode", envelope.microcode),
        ("Firmware", envelope.firmware),
        ("Governor", envelope.governor),
        ("Power profile", envelope.power_profile),
        ("Quota", f"{words.number(envelope.quota_cores)} cores" if envelope.quota_cores is not None else ""),
        ("Python", envelope.python),
        *sorted(envelope.versions.items()),
        *((f"Pace, core {pace.core}", _pace(pace.compute_ns, pace.stream_ns)) for pace in envelope.pace),
    ]
    return tuple(pair for pair in pairs if pair[1])


def _memory(envelope: Envelope) -> str:
    limit = envelope.memory_limit_bytes
    return words.memory(envelope.memory_bytes) + (f", limit {words.memory(limit)}" if limit is not None else "")


def _pace(compute: int, stream: int) -> str:
    return f"compute {words.nanoseconds(compute)}, stream {words.nanoseconds(stream)}"


def _cores(cores: tuple[int, ...]) -> str:
    return ", ".join(str(core) for core in cores)
