"""A plan's choices in OpenVINO's own words."""

from __future__ import annotations

from typing import Any

from trimtab.backends import _quantise
from trimtab.domain.profile import CompileOptions

CHOICES: dict[str, tuple[str, ...]] = {
    "bounds": ("off", "on"),
    "execution_mode": ("performance", "accuracy"),
    "snippets": ("on", "off"),
    "integer_kernels": ("on", "off"),
    "float_precision": ("f32", "bf16"),
    **_quantise.CHOICES,
}
"""Extra options and their values, the default first."""

HINTS: dict[str, tuple[str, str]] = {"f32": ("f32", "FP32"), "bf16": ("bf16", "BF16"), "f16": ("f16", "FP16")}
"""Precision -> (OpenVINO's element type, the capability that the device must list)."""

GROUP_SIZE = "DYNAMIC_QUANTIZATION_GROUP_SIZE"
"""How many values of an activation share a scale where OpenVINO rounds them to bytes by itself; 0 = it does not."""


def floats_of(options: CompileOptions) -> str:
    """What operators compute in unless they are quantised; empty = what OpenVINO chooses."""
    if options.precision == "default":
        return ""
    return options.extra.get("float_precision", "f32") if options.precision == "int8" else options.precision


def capabilities_of(options: CompileOptions) -> dict[str, str]:
    """Precision that was asked for -> the capability that the device must list for it."""
    floats = floats_of(options)
    asked = {floats: HINTS[floats][1]} if floats else {}
    return asked | ({"int8": "INT8"} if options.precision == "int8" else {})


def config_of(options: CompileOptions) -> dict[str, Any]:
    config: dict[str, Any] = {
        "PERFORMANCE_HINT": "LATENCY",
        "NUM_STREAMS": 1,
        "INFERENCE_NUM_THREADS": options.threads,
        "ENABLE_CPU_PINNING": False,  # the worker process is pinned already
    }
    floats = floats_of(options)
    if floats:
        config["INFERENCE_PRECISION_HINT"] = HINTS[floats][0]
    if "execution_mode" in options.extra:
        config["EXECUTION_MODE_HINT"] = options.extra["execution_mode"].upper()
    if options.extra.get("snippets") == "off":
        config["SNIPPETS_MODE"] = "DISABLE"
    if options.extra.get("integer_kernels") == "off":
        config |= {"LP_TRANSFORMS_MODE": False, GROUP_SIZE: 0}
    return config
