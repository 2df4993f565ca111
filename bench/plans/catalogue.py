"""What the plan bench measures: two networks in three shape bands each, and every plan that a runtime says it can do.

Which precisions and levels there are comes from the runtimes' own abilities; only what a runtime spells in its own
options is listed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from trimtab.domain.plan import CompileSpec, Entry, Optimisation, Plan, Precision
from trimtab.domain.ports import BackendInfo
from trimtab.domain.study import QualityMetric

EXAMPLES = Path(__file__).parents[2] / "examples"
LEVELS: tuple[Optimisation, ...] = ("off", "basic", "extended", "all")
LOWERED: tuple[Precision, ...] = ("bf16", "f16")
QUANTISE = ("dynamic", "static")
NOT_MEASURED = ("null",)
"""It computes nothing."""
SILENT = ("openvino",)
"""Runtimes whose own default is another precision than the network's; of the others it is f32."""

OPTIONS: dict[str, tuple[dict[str, str], ...]] = {
    "iree": (
        {"fusion": "aggressive"},
        {"fusion": "less"},
        {"convolution": "im2col"},
        {"convolution": "im2col", "data_tiling": "on"},
    ),
    "openvino": ({"snippets": "off"},),
    "torch": ({"mode": "eager"}, {"dynamic": "always"}, {"fusion": "aggressive"}),
}
"""Backend -> what it lets its user choose beside levels; each is one further f32 plan."""


class Band(NamedTuple):
    """Sizes of the network's dynamic dim, both ends inside. It is timed at ``hi``."""

    lo: int
    hi: int

    @property
    def label(self) -> str:
        return f"{self.lo}–{self.hi}"


class Network(NamedTuple):
    """``torch``: its torch network, beside the study, where the study names none."""

    name: str
    study: Path
    bands: tuple[Band, ...]
    metrics: tuple[QualityMetric, ...]
    torch: str = ""


NETWORKS = (
    Network(
        "ocr",
        EXAMPLES / "ocr" / "study.toml",
        (Band(16, 96), Band(97, 320), Band(321, 960)),
        ("argmax-agreement",),
        torch="network.py:recogniser",
    ),
    Network(
        "minilm",
        EXAMPLES / "minilm" / "study.toml",
        (Band(3, 32), Band(33, 128), Band(129, 512)),
        ("cosine", "neighbour-agreement"),
    ),
)


class Choice(NamedTuple):
    """One plan of a runtime. ``mapping``: one dynamic entry, or one padded bucket for each band."""

    backend: str
    precision: Precision
    optimisation: Optimisation
    mapping: str
    options: tuple[tuple[str, str], ...] = ()

    @property
    def id(self) -> str:
        extra = "-".join(f"{name}-{value}" for name, value in self.options)
        parts = (self.backend, self.precision, self.optimisation, extra, self.mapping)
        return "-".join(part for part in parts if part).replace("_", "-").lower()


REFERENCE = Choice("onnxruntime", "f32", "default", "dynamic")
"""What every other plan is set against."""


def choices(info: BackendInfo) -> Iterator[Choice]:
    """What ``info`` says can be done. Levels, single options and other precisions are varied one at a time, from f32 in
    one dynamic entry."""
    able = {ability.name for ability in info.abilities if ability.ok}
    plain: tuple[Precision, ...] = ("f32", "default") if info.name in SILENT else ("f32",)
    levels = LEVELS if "graph-optimisation levels" in able else ()
    if "dynamic shapes" in able:
        yield from (Choice(info.name, precision, "default", "dynamic") for precision in plain)
        yield from (Choice(info.name, "f32", level, "dynamic") for level in levels)
        yield from (
            Choice(info.name, "f32", "default", "dynamic", tuple(options.items()))
            for options in OPTIONS.get(info.name, ())
        )
        yield from (Choice(info.name, p, "default", "dynamic") for p in LOWERED if f"precision {p}" in able)
        yield from (
            Choice(info.name, "int8", "default", "dynamic", (("quantise", how),))
            for how in QUANTISE
            if {"precision int8", f"quantise {how}"} <= able
        )
    if "padded buckets" in able:
        yield from (Choice(info.name, precision, "default", "bucket") for precision in plain)


def refused(info: BackendInfo) -> Iterator[tuple[str, str, str]]:
    """(runtime, what it cannot do, why), as it says itself."""
    if not info.available:
        yield info.name, "anything", info.why
    yield from ((info.name, ability.name, ability.why) for ability in info.abilities if not ability.ok)


def plan_of(choice: Choice, network: Network) -> Plan:
    """The plan that serves every band of ``network``."""
    bands = network.bands
    if choice.mapping == "dynamic":
        entries = (Entry(id="any", kind="dynamic", lo=(bands[0].lo,), hi=(bands[-1].hi,)),)
    else:
        entries = tuple(Entry(id=f"to-{band.hi}", kind="bucket", lo=(band.lo,), hi=(band.hi,)) for band in bands)
    spec = CompileSpec(
        backend=choice.backend,
        entries=entries,
        precision=choice.precision,
        optimisation=choice.optimisation,
        options=dict(choice.options),
    )
    return Plan(id=choice.id, compile=spec)
