"""A Study: one TOML file that holds everything a run depends on (R1-R5, R34).

This module is the schema: names, types, units and meaning. ``store/study`` reads and checks the file;
``docs/study.schema.json`` is generated from here.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from trimtab.domain.envelope import Assumptions
from trimtab.domain.noun import Count, Noun, Positive, Share
from trimtab.domain.plan import THEIRS, Plan, Precision
from trimtab.domain.space import AdaptSpec, Space
from trimtab.domain.verdict import ROLES, Role

Seed = Annotated[int, Meta(ge=0)]
DType = Literal["f32", "f16", "i64", "i32", "u8", "bool"]
TimeUnit = Literal["s", "ms", "us", "ns", "iso"]
Metric = Literal["p50", "p95", "p99", "goodput"]
QualityMetric = Literal[
    "argmax-agreement", "max-error", "cosine", "neighbour-agreement", "agreement-function", "error-function"
]
ERRORS: tuple[QualityMetric, ...] = ("max-error", "error-function")
"""Quality metrics of which less is better."""
FUNCTIONS: tuple[QualityMetric, ...] = ("agreement-function", "error-function")
"""Quality metrics that the user's own function computes."""


class InputSpec(Noun, frozen=True, kw_only=True):
    """One input of the network. ``shape`` mixes sizes and names of dims (``"batch"`` is the batch axis).

    ``pad`` is the value that fills an input up to a bucket's dims. ``random``: the lowest and the highest that random
    payloads hold in an integer input (none given: 0 to 99, of u8 every value).
    """

    name: str
    shape: tuple[int | str, ...]
    dtype: DType = "f32"
    pad: float = 0.0
    random: tuple[int, int] | None = None


class Crop(Noun, frozen=True, kw_only=True):
    """Undoes padding of ``dim`` on an output: keep the first ``floor(ceil(true dim / up) / down)`` positions of
    ``axis``, at least one. ``up`` covers strided layers that round up, ``down`` pooling that rounds down."""

    axis: int
    dim: str
    up: Count = 1
    down: Count = 1


class OutputSpec(Noun, frozen=True, kw_only=True):
    name: str
    crop: tuple[Crop, ...] = ()


class DimSpec(Noun, frozen=True, kw_only=True):
    """The range of a dynamic dim that the network accepts, inclusive."""

    lo: Count
    hi: Count


class CalibrationSpec(Noun, frozen=True, kw_only=True):
    """Inputs that show what values a network's tensors take, to quantise it with. ``bank`` (empty: none) is an .npz of
    arrays named ``<input>/<key>``, used as ``scale * array + offset``; ``samples`` of its keys, in their order."""

    bank: str = ""
    scale: float = 1.0
    offset: float = 0.0
    samples: Count = 32


class ModelSpec(Noun, frozen=True, kw_only=True):
    """The network. ``path`` is relative to the study's folder or, with ``package``, ends the name of a file that an
    installed distribution ships. ``sha256`` pins the revision (empty: recorded, not checked). ``calibration`` is needed
    only by plans that quantise statically.

    ``torch`` is the same network for the torch runtime: ``net.pt2`` (an exported program) or a function that makes the
    module, ``net.py:make`` in a file beside the study or ``package.module:make`` in an installed package; its digest
    covers the file, or the package's version. A study names at least one of ``path`` and ``torch``.
    """

    revision: str
    inputs: tuple[InputSpec, ...]
    outputs: tuple[OutputSpec, ...]
    path: str = ""
    package: str = ""
    sha256: str = ""
    torch: str = ""
    torch_sha256: str = ""
    licence: str = ""
    calibration: CalibrationSpec = CalibrationSpec()


class ArrivalSource(Noun, frozen=True, kw_only=True):
    """Where the arrival times are: a CSV, JSONL or Parquet file (also .gz), its time column and unit."""

    file: str
    time: str
    unit: TimeUnit = "s"
    licence: str = ""


class ShapeSource(Noun, frozen=True, kw_only=True):
    """Where the shapes are: dim name -> column, in the arrivals' file or, with ``file``, row by row in a second one
    (reused from its start when it is shorter). ``stream`` names the column of the client."""

    dims: dict[str, str]
    file: str = ""
    stream: str = ""
    licence: str = ""


class PayloadSpec(Noun, frozen=True, kw_only=True):
    """What the requests carry. ``bank`` is an .npz of arrays named ``<input>/<key>``; ``random`` draws from ``seed``.

    An array is used as ``scale * array + offset`` in the input's dtype. Random payloads may time; they never judge
    quality.
    """

    kind: Literal["real", "rendered", "random"] = "random"
    bank: str = ""
    scale: float = 1.0
    offset: float = 0.0


class SliceSpec(Noun, frozen=True, kw_only=True):
    """A named part of the workload besides ``tune`` and ``held-out``: by share of time, streams, shape band."""

    name: str
    start: Share = 0.0
    stop: Share = 1.0
    streams: tuple[str, ...] = ()
    band: dict[str, tuple[int, int]] = {}


class WorkloadSpec(Noun, frozen=True, kw_only=True):
    """Traffic. Arrivals are scaled in time so that the mean rate becomes ``rate`` requests/s (None: as recorded).

    The first ``tune_share`` of the span is the tune slice, the rest is held out.

    ``deadlines_ms``: stream -> how long its requests may take. Order ``deadline`` serves by it, streams that are not
    named by ``sla.deadline_ms``; what counts as failed is said by ``sla.deadline_ms`` alone.

    ``target`` sends the requests to a server that is not ours, ``kserve-v2://host:port/model`` (or ``.../version``);
    the study then has no baseline and no candidates. ``target_trace``: the file in which that server writes its own
    trace (``trace_file`` of Triton), as this machine sees it; it is then told to trace during each replay. ``against``:
    a second server, which is driven in turn with the first and held against it.
    """

    arrivals: ArrivalSource
    shapes: ShapeSource
    rate: Positive | None = None
    skip: Annotated[int, Meta(ge=0)] = 0
    limit: Count | None = None
    tune_share: Share = 0.4
    payload: PayloadSpec = PayloadSpec()
    slices: tuple[SliceSpec, ...] = ()
    deadlines_ms: dict[str, Positive] = {}
    target: str = ""
    target_trace: str = ""
    against: str = ""


class Sla(Noun, frozen=True, kw_only=True):
    """ONE primary metric and its bound. Latency metrics use ``bound_ms``; goodput is the share of requests done
    within ``bound_ms`` and must reach ``goodput``. A request later than ``deadline_ms`` counts as failed."""

    metric: Metric
    bound_ms: Positive
    goodput: Share = 0.99
    deadline_ms: Positive | None = None


class QualitySpec(Noun, frozen=True, kw_only=True):
    """R3: what precision is declared, and how far outputs may move from the reference plan's.

    An ``-agreement`` or ``cosine`` must reach ``floor``; of an ``error`` it is the most. The two functions are the
    user's own, ``function = "module:name"``, beside the study or in an installed package: it takes the reference's
    outputs and the plan's outputs of one request, each a dict of arrays by name, and returns an agreement from 0 to 1,
    or an error from 0. ``samples`` requests are drawn over all shapes, then more until every entry and every shape band
    has ``samples_each``, as far as traffic has them.
    """

    precision: Precision = "f32"
    metric: QualityMetric = "argmax-agreement"
    floor: float = 0.99
    reference: str = "onnxruntime"
    samples: Count = 24
    samples_each: Count = 8
    function: str = ""


class Guard(Noun, frozen=True, kw_only=True):
    """A cell that must not get worse by more than ``margin`` (a share of the baseline). It is decided on traffic as
    recorded ("normal"), or under one of the study's conditions, named by its kind."""

    metric: Metric
    margin: Positive
    slice: str = "held-out"
    condition: str = "normal"


ConditionKind = Literal[
    "higher load",
    "one core less",
    "CPU neighbour",
    "memory neighbour",
    "cold start",
    "drifted shapes",
    "later traffic",
    "second trace",
]


class Condition(Noun, frozen=True, kw_only=True):
    """What both plans must also be replayed under. ``factor`` = how much denser the arrivals of "higher load" are.
    ``arrivals`` and ``shapes`` say where the requests of "second trace" are: as many as the held-out slice has, from
    its start, at the study's rate, with the study's payloads.

    Each costs as many replays as the held-out slice itself.
    """

    kind: ConditionKind
    factor: Annotated[float, Meta(gt=1, le=1000)] = 1.2
    arrivals: ArrivalSource | None = None
    shapes: ShapeSource | None = None


class Seeds(Noun, frozen=True, kw_only=True):
    """One named seed for each source of randomness."""

    workload: Seed = 1
    payload: Seed = 2
    simulate: Seed = 3
    bootstrap: Seed = 4


class Budget(Noun, frozen=True, kw_only=True):
    """``time`` is the wall-clock aim of ``trimtab run`` ("5m", "90s", "2h"); ``replays`` the A/A replays an arm."""

    time: str = "10m"
    replays: Count = 3
    profile_points: Annotated[int, Meta(ge=2, le=64)] = 24
    profile_repeats: Annotated[int, Meta(ge=3)] = 12
    replay_s: Positive | None = None


class SignOff(Noun, frozen=True, kw_only=True):
    """Which roles must sign before a proposal ships. Fewer than all three prints as "reduced sign-off".

    ``keys``: each role's OpenSSH public key, ``ssh-ed25519 AAAA... comment``. One key may stand for two roles only if
    ``owners`` names the same person for both. ``expires``: how long a signature holds ("90d", "12h").
    """

    require: tuple[Role, ...] = ROLES
    keys: dict[Role, str] = {}
    expires: str = "90d"


class Study(Noun, frozen=True, kw_only=True):
    """The whole study. ``dims`` fixes the order of dynamic dims everywhere. ``baseline`` is what runs today; only a
    study with ``workload.target`` has none."""

    name: str
    model: ModelSpec
    dims: dict[str, DimSpec]
    workload: WorkloadSpec
    sla: Sla
    envelope: Assumptions
    baseline: Plan = THEIRS
    owners: dict[Role, str] = {}
    quality: QualitySpec = QualitySpec()
    candidates: tuple[Plan, ...] = ()
    space: Space = Space()
    adapt: AdaptSpec = AdaptSpec()
    guards: tuple[Guard, ...] = ()
    conditions: tuple[Condition, ...] = ()
    seeds: Seeds = Seeds()
    budget: Budget = Budget()
    signoff: SignOff = SignOff()
    schema: Literal[1] = 1

    @property
    def dim_names(self) -> tuple[str, ...]:
        return tuple(self.dims)
