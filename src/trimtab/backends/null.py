"""The null backend: no network, only time. For tests of plumbing; its figures say nothing about any model.

A run takes ``base_us + per_unit_us x n x product(dims)`` microseconds, plus ``first_us`` on the first run of a shape.
``mode = "sleep"`` leaves the core idle; ``"spin"`` uses that much CPU time, so that losing the core stretches the run.
Faults strike by a rule that is either a count (``"3"``: the third run of the compiled entry) or a dim
(``"width=640"``; ``"batch=4"``). A replacement worker counts from one again.
"""

from __future__ import annotations

import os
import platform
import signal
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimtab.backends._options import failure, refuse_unknown
from trimtab.backends._shapes import check_entry, executed_of, refuse_fixed
from trimtab.domain.noun import BATCH, Executed, Ns
from trimtab.domain.plan import Entry
from trimtab.domain.ports import Ability, Arrays, BackendInfo, CompiledEntry, ModelFile
from trimtab.domain.profile import CompileFailure, CompileOptions, Inspection, Operator

PACKAGES: tuple[str, ...] = ()
EXTRA = ""

TIMES = ("base_us", "per_unit_us", "first_us", "compile_us")
FAULTS = ("crash_on_batch", "hang_on_batch", "error_on_batch", "out_of_memory_on_batch", "bad_output_on_batch")
OPTIONS: dict[str, str] = {
    **dict.fromkeys(TIMES, "microseconds, default 0"),
    **dict.fromkeys(FAULTS, "a count, or <dim>=<value>"),
    "mode": "sleep (default) | spin",
    "fail_compile": "compile ends with a failure that carries this message",
}

Pause = Callable[[Ns], None]


def make() -> NullBackend:
    return NullBackend()


class NullBackend:
    name = "null"

    def info(self) -> BackendInfo:
        return BackendInfo(
            name=self.name,
            available=True,
            why="tests of plumbing only: it computes nothing, so its figures say nothing about a model",
            versions={"python": platform.python_version(), "numpy": np.__version__},
            abilities=(
                Ability(name="computes the network", ok=False, why="outputs are row sums of the inputs"),
                Ability(name="chosen service times", ok=True, why=", ".join((*TIMES, "mode"))),
                Ability(name="injected faults", ok=True, why=", ".join((*FAULTS, "fail_compile"))),
                Ability(name="compile beside serving", ok=True, why="compiling is a wait"),
            ),
        )

    def compile(self, model: ModelFile, entry: Entry, options: CompileOptions) -> CompiledEntry | CompileFailure:
        check_entry(model, entry)
        extra = options.extra
        refusal = refuse_unknown(entry.id, extra, OPTIONS)
        if refusal:
            return refusal
        if options.precision != "default" or options.optimisation != "default":
            return failure(entry.id, "unsupported", "the null backend has no precision and no optimisation levels")
        if "fail_compile" in extra:
            return failure(entry.id, "compiler-error", extra["fail_compile"])
        try:
            pause = PAUSES[extra.get("mode", "sleep")]
            times = {name: round(float(extra.get(name, "0")) * 1e3) for name in TIMES}
            rules = {name: _rule(model, extra[name]) for name in FAULTS if name in extra}
        except (KeyError, ValueError) as error:
            return failure(entry.id, "unknown-option", f"an option has no meaning here: {error}")
        pause(times["compile_us"])
        return NullEntry(model, entry, times, pause, rules)


class NullEntry(CompiledEntry):
    """Holds what a run takes and what goes wrong, and which shapes it has run."""

    def __init__(
        self,
        model: ModelFile,
        entry: Entry,
        times: Mapping[str, Ns],
        pause: Pause,
        rules: Mapping[str, tuple[str, int]],
    ) -> None:
        self._model, self._entry = model, entry
        self._times, self._pause, self._rules = times, pause, rules
        self._seen: set[Executed] = set()
        self._runs = 0
        self._closed = False

    def run(self, inputs: Arrays) -> dict[str, NDArray[Any]]:
        if self._closed:
            raise RuntimeError(f"entry {self._entry.id!r} is closed")
        executed = executed_of(self._model, inputs)
        refuse_fixed(self._model, self._entry, executed)
        self._runs += 1
        struck = [name for name, rule in self._rules.items() if self._strikes(rule, executed)]
        for fault in struck:
            STRIKES[fault]()
        self._pause(self._service(executed) + (0 if executed in self._seen else self._times["first_us"]))
        self._seen.add(executed)
        return self._outputs(inputs, executed, np.nan if "bad_output_on_batch" in struck else 0.0)

    def inspect(self, inputs: Arrays) -> Inspection:
        executed = executed_of(self._model, inputs)
        refuse_fixed(self._model, self._entry, executed)
        kernel = next(name for name, pause in PAUSES.items() if pause is self._pause)
        operator = Operator(name="null", kind="Null", kernel=kernel, precision="none", ns=self._service(executed))
        return Inspection(executed=executed, operators=(operator,), operators_before=1, note="no network is computed")

    def close(self) -> None:
        self._closed = True

    def _service(self, executed: Executed) -> Ns:
        return self._times["base_us"] + self._times["per_unit_us"] * int(np.prod(executed))

    def _strikes(self, rule: tuple[str, int], executed: Executed) -> bool:
        what, value = rule
        if what == "count":
            return self._runs == value
        return executed[(BATCH, *self._model.dim_names).index(what)] == value

    def _outputs(self, inputs: Arrays, executed: Executed, fault: float) -> dict[str, NDArray[Any]]:
        """Each row holds the sum of its request's inputs, repeated along every axis that a crop speaks of."""
        n = executed[0]
        rows = np.full(n, fault)
        for spec in self._model.spec.inputs:
            if BATCH in spec.shape:
                axis = spec.shape.index(BATCH)
                rows += np.moveaxis(inputs[spec.name], axis, 0).reshape(n, -1).sum(axis=1, dtype=np.float64)
        size = dict(zip(self._model.dim_names, executed[1:], strict=True))
        outputs = {}
        for out in self._model.spec.outputs:
            shape = [n] + [1] * max((c.axis for c in out.crop), default=1)
            for crop in out.crop:
                shape[crop.axis] = max(1, -(-size[crop.dim] // crop.up) // crop.down)
            outputs[out.name] = np.broadcast_to(rows.reshape(n, *[1] * (len(shape) - 1)), shape).copy()
        return outputs


def _rule(model: ModelFile, text: str) -> tuple[str, int]:
    dim, sep, value = text.rpartition("=")
    if sep and dim not in (BATCH, *model.dim_names):
        raise ValueError(f"{text!r}: there is no dim {dim!r}")
    return (dim if sep else "count", int(value))


def _sleep(ns: Ns) -> None:
    if ns > 0:
        time.sleep(ns / 1e9)


def _spin(ns: Ns) -> None:
    end = time.thread_time_ns() + ns
    while time.thread_time_ns() < end:
        pass


def _crash() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _hang() -> None:
    while True:
        time.sleep(3600)


def _error() -> None:
    raise RuntimeError("this run was told to fail")


def _out_of_memory() -> None:
    raise MemoryError("this run was told to run out of memory")


def _nothing() -> None:
    """The outputs themselves are the fault."""


PAUSES: dict[str, Pause] = {"sleep": _sleep, "spin": _spin}
STRIKES: dict[str, Callable[[], None]] = dict(
    zip(FAULTS, (_crash, _hang, _error, _out_of_memory, _nothing), strict=True)
)
